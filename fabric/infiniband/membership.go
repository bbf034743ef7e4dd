// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// checkMembership warns of nodes with ports on a fabric that has partitions, and in
// none of them: once for each role, at its place. opensm makes their ports limited
// members of the default partition, and two limited members cannot talk.
func checkMembership(inv *inventory.Inventory, f *inventory.Fabric) (found diag.List) {
	if len(f.Partitions) == 0 {
		return nil
	}
	alone := map[*inventory.Role][]string{}
	for _, n := range inv.Nodes {
		if onFabric(n, f) && !slices.ContainsFunc(n.Partitions, func(p inventory.Partition) bool { return p.Fabric == f }) {
			alone[n.Role] = append(alone[n.Role], n.Name)
		}
	}
	var names []string
	for _, p := range f.Partitions {
		names = append(names, fmt.Sprintf("%q", f.Name+"/"+p.Name))
	}
	for _, r := range inv.Roles {
		if nodes := alone[r]; len(nodes) > 0 {
			found.Add("fabric.partition", r.Decl, "Nodes in no partition of their fabric", fmt.Sprintf("Fabric %q has partitions, and none of them holds %s of role %q. A port outside of all partitions reaches the subnet manager and no other node. Give the role, or the node's override, partitions = [...], of %s.",
				f.Name, diag.Few(nodes, len(nodes)), r.Name, strings.Join(names, ", "))).Also("the fabric", f.Decl).Of(nodes...).Warn()
		}
	}
	return found
}

// onFabric reports whether a node has a port on a fabric.
func onFabric(n *inventory.Node, f *inventory.Fabric) bool {
	return n.Hardware != nil && slices.ContainsFunc(n.Hardware.NICs, func(nic inventory.NIC) bool { return nic.Fabric == f && len(nic.Ports) > 0 })
}
