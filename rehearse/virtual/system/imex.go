// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

const (
	imexUnit   = "nvidia-imex"
	imexNodes  = "etc/nvidia-imex/nodes_config.cfg"
	imexConfig = "etc/nvidia-imex/config.cfg"

	nvlinkClique = 32766 // of a domain that its switches did not partition
)

// clusterUUID is that of the node's NVLink domain; "" without one.
func (n *node) clusterUUID() string {
	if n.cfg.Domain == "" || !n.joined("nvidia", "nvlink") {
		return ""
	}
	sum := sha256.Sum256([]byte("NVLink domain " + n.cfg.Domain))
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// prolog writes the list of nodes as the last job had it: without the last of the
// domain. A prolog of jobs does so before each start of the service.
func (n *node) prolog() {
	lines := strings.Fields(n.fs.Text(imexNodes))
	if n.cfg.Prolog == nil || !n.cfg.Prolog() || len(lines) < 2 {
		return
	}
	_ = n.tree.write(imexNodes, []byte(strings.Join(lines[:len(lines)-1], "\n")+"\n"), 0o644)
}

// imexCtl is nvidia-imex-ctl -N -j: the IMEX services of the nodes that this one's
// nodes_config.cfg lists. One is ready when it runs with the same list.
func imexCtl(_ context.Context, c call) int {
	if strings.Join(c.Argv[1:], " ") != "-N -j" {
		_, _ = fmt.Fprintln(c.Err, "nvidia-imex-ctl: unknown arguments")
		return 1
	}
	if c.n.units.of(imexUnit) != "active" || !strings.Contains("\n"+c.n.fs.Text(imexConfig), "\nIMEX_CMD_ENABLED=1") {
		_, _ = fmt.Fprintln(c.Err, "Unable to connect to the IMEX service at localhost:50005")
		return 1
	}
	list := c.n.fs.Text(imexNodes)
	type peer struct {
		Status  string `json:"status"`
		Host    string `json:"host"`
		Version string `json:"version"`
	}
	nodes, ready := map[string]peer{}, 0
	for i, line := range strings.Fields(list) {
		p := peer{Status: "UNAVAILABLE", Host: line}
		if a, err := netip.ParseAddr(line); err == nil {
			if far := c.n.cfg.Site.at(a); far != nil && far.units.of(imexUnit) == "active" && far.fs.Text(imexNodes) == list {
				p.Status, p.Version = "READY", far.nvidiaDriver()
				ready++
			}
		}
		nodes[strconv.Itoa(i)] = p
	}
	status := "UP"
	if ready < len(nodes) {
		status = "DEGRADED"
	}
	out, err := json.MarshalIndent(map[string]any{"nodes": nodes, "status": status}, "", "  ")
	if err != nil {
		return 1
	}
	c.print(string(out) + "\n")
	return 0
}
