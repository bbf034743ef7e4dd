// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"strings"
)

// openLicense is that of the open module of NVIDIA, as modinfo shows it.
const openLicense = "Dual MIT/GPL"

// driverFiles are those that NVIDIA's driver makes beside its module.
const driverFiles = "proc/driver/"

// nvidiaVersion is /proc/driver/nvidia/version of the module in a file.
func nvidiaVersion(fields map[string]string, machine string) string {
	kind := "NVIDIA UNIX " + machine + " Kernel Module"
	if fields["license"] == openLicense {
		kind = "NVIDIA UNIX Open Kernel Module for " + machine
	}
	return fmt.Sprintf("NVRM version: %s  %s  Release Build\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14+deb12u1)\n", kind, fields["version"])
}

// direct reports whether NICs reach the memory of the node's GPUs: by
// nvidia_peermem, by dma-buf of the open driver (its kernel has it), or by amdgpu,
// which has it built in.
func (n *node) direct() bool {
	if n.loaded("nvidia") {
		return n.loaded("nvidia_peermem") || strings.Contains(n.fs.Text("proc/driver/nvidia/version"), "Open Kernel Module")
	}
	return n.loaded("amdgpu")
}

// network is what the library's log says of the network, when it is asked for: the
// devices of each node, and one connection of each of its ranks in each direction
// (NCCL 2.28, net_ib.cc and transport/net.cc).
func (j job) network(b *strings.Builder, members []*node) {
	ranks, overNVLink := len(members)*j.slots, j.cliqueLog(b, members)
	for i, n := range members {
		rails := j.rails(n)
		if len(rails) == 0 {
			continue
		}
		host := n.hostname()
		fmt.Fprintf(b, "%s:4100:4188 [0] NCCL INFO NET/IB : Using", host)
		for r, p := range rails {
			link := "IB"
			if n.fs.Text("sys/class/infiniband", p.RDMA, "ports/1/link_layer") == "Ethernet" {
				link = "RoCE"
			}
			fmt.Fprintf(b, " [%d]%s:1/%s", r, p.RDMA, link)
		}
		fmt.Fprintf(b, " [RO]; OOB %s<0>\n", n.cfg.Address)
		if !n.direct() {
			for r, p := range rails {
				fmt.Fprintf(b, "%s:4100:4188 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA %d '%s'\n", host, r, p.RDMA)
			}
		}
		for k := range j.slots {
			me, way := i*j.slots+k, fmt.Sprintf("NET/IB/%d", k*len(rails)/j.slots)
			if n.direct() {
				way += "/GDRDMA"
			}
			if overNVLink {
				way = "P2P/MNNVL"
			}
			fmt.Fprintf(b, "%s:%d:4188 [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] [receive] via %s\n", host, 4100+k, k, k, (me-j.slots+ranks)%ranks, k, me, k, way)
			fmt.Fprintf(b, "%s:%d:4188 [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] [send] via %s\n", host, 4100+k, k, k, me, k, (me+j.slots)%ranks, k, way)
		}
	}
}
