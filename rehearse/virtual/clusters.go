// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/virtual/kubernetes"
	"github.com/ironrail/ironrail/rehearse/virtual/system"
)

// kubeletConf is there on a node that has joined a cluster.
const kubeletConf = "etc/kubernetes/kubelet.conf"

// newClusters makes an API server for each endpoint that handovers name.
func (w *World) newClusters() error {
	w.clusters = map[string]*kubernetes.Cluster{}
	for _, h := range w.inv.Handovers {
		if h.Kind != "kubernetes" {
			continue
		}
		at := strings.TrimSuffix(strings.TrimPrefix(h.Text("endpoint"), "https://"), "/")
		if w.clusters[at] != nil {
			continue
		}
		v, _ := inventory.Attribute(h.Value, "token")
		ref, _ := inventory.SecretRef(v)
		c, err := kubernetes.New(kubernetes.Config{Endpoint: at, Token: w.password(ref), Clock: w.opt.Clock,
			Runs: func(node string) bool { return w.systems.Has(node, kubeletConf) }})
		if err != nil {
			return fmt.Errorf("API server %s: %w", at, err)
		}
		w.clusters[at] = c
	}
	w.systems.Clusters(func(endpoint string) system.Cluster {
		if c := w.clusters[endpoint]; c != nil {
			return c
		}
		return nil
	})
	return nil
}

// Cluster returns the API server at an endpoint, host and port.
func (w *World) Cluster(endpoint string) (*kubernetes.Cluster, bool) {
	c, ok := w.clusters[endpoint]
	return c, ok
}

// ClusterCA is the CA of the API server at an endpoint; "" where there is none.
func (w *World) ClusterCA(endpoint string) string {
	if c, ok := w.clusters[endpoint]; ok {
		return c.CA()
	}
	return ""
}

// openClusters opens the sockets of the API servers whose endpoints are addresses:
// the rack has no name server.
func (w *World) openClusters(ctx context.Context) error {
	var all []string
	for at := range w.clusters {
		all = append(all, at)
	}
	slices.Sort(all)
	for _, at := range all {
		host, _, err := net.SplitHostPort(at)
		if err != nil {
			return err
		}
		a, err := netip.ParseAddr(host)
		if err != nil {
			continue
		}
		ln, err := w.opt.Board.At(a).Listen(ctx, "tcp", at)
		if err != nil {
			return fmt.Errorf("API server %s: %w", at, err)
		}
		w.parts = append(w.parts, func(ctx context.Context) error { return w.clusters[at].Serve(ctx, ln) })
	}
	return nil
}
