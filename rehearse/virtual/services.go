// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"

	"github.com/ironrail/ironrail/rehearse/virtual/rpc"
)

// endpointAt is where the service of an endpoint listens; the language has checked it.
func endpointAt(endpoint string) netip.AddrPort {
	u, err := url.Parse(endpoint)
	if err != nil {
		return netip.AddrPort{}
	}
	host := u.Host
	if u.Port() == "" {
		host += ":443"
	}
	at, _ := netip.ParseAddrPort(host)
	return at
}

// openServices opens the sockets of the services that answer for BMCs, one for each
// place where one listens.
func (w *World) openServices(ctx context.Context) error {
	var places []netip.AddrPort
	for _, n := range w.inv.Nodes {
		if at := endpointAt(n.BMC.Endpoint); at.IsValid() && w.nodes[n.Name] != nil && !slices.Contains(places, at) {
			places = append(places, at)
		}
	}
	for _, at := range places {
		ln, err := w.opt.Board.At(at.Addr()).Listen(ctx, "tcp", at.String())
		if err != nil {
			return fmt.Errorf("service %s: %w", at, err)
		}
		o := rpc.Options{Address: at.Addr(), Now: w.opt.Clock.Now, Node: func(host string) (rpc.Node, bool) { return w.served(at, host) }}
		w.parts = append(w.parts, func(ctx context.Context) error { return rpc.Serve(ctx, ln, o) })
	}
	return nil
}

// served is the node of a BMC's address, by the service that answers for it.
func (w *World) served(at netip.AddrPort, host string) (rpc.Node, bool) {
	for _, n := range w.inv.Nodes {
		if node := w.nodes[n.Name]; node != nil && n.BMC.Address.String() == host && endpointAt(n.BMC.Endpoint) == at {
			return rpc.Node{Chassis: node.chassis, Secret: w.password(n.BMC.Password)}, true
		}
	}
	return rpc.Node{}, false
}
