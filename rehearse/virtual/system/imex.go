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

// inClique are those members of a run that can use the NVLink of the first one's domain
// with one another: memory of other nodes is mapped by IMEX, through the device of a
// channel. The library of the others goes over the network, and says nothing of it (NCCL,
// src/mnnvl.cc: no handles of the fabric).
func inClique(members []*node) (list []*node) {
	for _, n := range members {
		if id := n.clusterUUID(); id != "" && id == members[0].clusterUUID() && n.units.of(imexUnit) == "active" && (n.cfg.NoChannel == nil || !n.cfg.NoChannel()) {
			list = append(list, n)
		}
	}
	return list
}

// overDomain is what an all-reduce shows over the NVLink of so many trays of four GPUs, in
// bytes per second. Read, of GB200: 838 GB/s of 2 trays, 882 of 4, 835 to 847 of 18. Belief
// between them.
func overDomain(trays int) float64 {
	read := [][2]float64{{2, 838e9}, {4, 882e9}, {18, 841e9}}
	at := float64(trays)
	for i := 1; i < len(read); i++ {
		if low, high := read[i-1], read[i]; at <= high[0] {
			return low[1] + (high[1]-low[1])*(at-low[0])/(high[0]-low[0])
		}
	}
	return read[len(read)-1][1]
}

// cliqueLog is what the library's log says of NVLink between nodes: each rank that uses it
// says with how many. It reports whether all of them do.
func (j job) cliqueLog(b *strings.Builder, members []*node) (all bool) {
	if !j.perf.multiNode {
		return false
	}
	list := inClique(members)
	if len(list) < 2 {
		return false
	}
	for i, n := range list {
		for k := range j.slots {
			_, _ = fmt.Fprintf(b, "%s:%d:4188 [%d] NCCL INFO MNNVL 1 cliqueId %x cliqueSize %d cliqueRank %d\n", n.hostname(), 4100+k, k, nvlinkClique, len(list)*j.slots, i*j.slots+k)
		}
	}
	if len(list) < len(members) {
		return false
	}
	if j.perf.program != perfProgram {
		return true
	}
	_, _ = fmt.Fprintf(b, "%s:4100:4188 [0] NCCL INFO AllReduce: %d Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..23}\n", members[0].hostname(), j.perf.size)
	return true
}
