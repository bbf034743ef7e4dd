// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// indirect are the nodes of a run whose rails do not reach the memory of GPUs, by
// the library's log, though each GPU has a rail below its own PCIe switch. Of nodes
// that are built in another way the library may have chosen so, and the site may
// allow it.
func (c *Test) indirect(b *grouprun.Run) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(b.Got.Indirect)) {
		i := slices.IndexFunc(b.Nodes, func(n *inventory.Node) bool { return n.Name == name })
		if i < 0 {
			continue
		}
		r, _ := target.ReadFact(c.Rec, gate.Fact, subject.OfNode(name))
		if _, ok := target.AllowedGates(b.Nodes[i])[gate.GPUDirect]; r.Near && !ok {
			list = append(list, name)
		}
	}
	return list
}

// notDirect is why a run is bad in which nodes do not use GPUDirect RDMA; "" when
// all of them do.
func (c *Test) notDirect(b *grouprun.Run) string {
	list := c.indirect(b)
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("GPUDirect RDMA is not used on %s: what its GPUs send goes through host memory", result.NameSome(list))
}

// SuspectIndirect blames the nodes that do not use GPUDirect RDMA; false when there
// are none.
func (c *Test) SuspectIndirect(b *grouprun.Run) bool {
	list := c.indirect(b)
	if b.Err != nil || len(list) == 0 {
		return false
	}
	for _, node := range list {
		if slices.Contains(c.Suspects, node) {
			continue
		}
		c.Suspects = append(c.Suspects, node)
		c.Findings = append(c.Findings, stage.Finding{
			Suspects: []stage.Suspect{{Subject: subject.OfNode(node), Part: "GPUDirect RDMA"}},
			Cause:    fmt.Sprintf("GPUDirect RDMA is not used on %s, though each of its GPUs has a rail below its own PCIe switch: what they send goes through host memory", node),
			Evidence: []string{"all-reduce over " + result.NameSome(target.NodeNames(b.Nodes)), b.Got.Indirect[node], b.Reference(c.Rec)},
			Action: fmt.Sprintf("Look on %s at nvidia_peermem or dma-buf, at ACS and the IOMMU, and at what sets %s (/etc/nccl.conf); then apply again.",
				node, strings.Join([]string{"NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_DMABUF_ENABLE"}, ", ")),
		})
	}
	return true
}
