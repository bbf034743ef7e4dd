// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
)

// IsLone reports whether a step of a group is about one node that is tested again, without any other: those in service are
// not drained for it, and may run jobs.
func IsLone(st plan.Step) bool {
	g := st.Group
	return g != nil && len(g.Focus) == 1 && len(g.Members) == 1
}

// UnmeasuredRails says which rails of a node that is tested without any other are not measured, and the command that
// would measure them, by which nodes were accepted; "": the node has none.
func UnmeasuredRails(inv *inventory.Inventory, n *inventory.Node, isAccepted func(*inventory.Node) bool) string {
	var rails []string
	for _, f := range fabric.Of(n) {
		if text := railsOn(n, f); text != "" {
			rails = append(rails, text+" of fabric "+f.Name)
		}
	}
	if len(rails) == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of %s not measured: no other node is tested with it, and nodes in service are left in peace", strings.Join(rails, " and "), n.Name+" "+isOrAre(rails))
	if with := partnerOf(inv, n, isAccepted); with != nil {
		return fmt.Sprintf("%s. `ironrail test %s %s` drains both and measures them; a third node tells whose a bad rail is", text, n.Name, with.Name)
	}
	return text + ". They can be measured once another node of its role is in service"
}

func isOrAre(rails []string) string {
	if len(rails) == 1 && strings.HasPrefix(rails[0], "rail ") {
		return "is"
	}
	return "are"
}

// railsOn lists the rails of a node on a fabric: "rail 3", "rails 0 to 7", "rails 0, 2".
func railsOn(n *inventory.Node, f *inventory.Fabric) string {
	var list []int
	for _, nic := range n.Hardware.NICs {
		for _, p := range nic.Ports {
			if nic.Fabric == f && !slices.Contains(list, p.Rail) {
				list = append(list, p.Rail)
			}
		}
	}
	slices.Sort(list)
	switch last := len(list) - 1; {
	case last < 0:
		return ""
	case last == 0:
		return fmt.Sprintf("rail %d", list[0])
	case last > 1 && list[last]-list[0] == last:
		return fmt.Sprintf("rails %d to %d", list[0], list[last])
	}
	words := make([]string, len(list))
	for i, r := range list {
		words[i] = fmt.Sprint(r)
	}
	return "rails " + strings.Join(words, ", ")
}

// partnerOf is the accepted node that stands nearest to another by the site's order, of its validation block and rack
// where there is one; nil: there is none.
func partnerOf(inv *inventory.Inventory, n *inventory.Node, isAccepted func(*inventory.Node) bool) (best *inventory.Node) {
	place, nearest := slices.Index(inv.Nodes, n), 0
	for i, m := range inv.Nodes {
		if m == n || m.Validation == nil || m.Validation != n.Validation || !isAccepted(m) {
			continue
		}
		far := max(i-place, place-i)
		if m.Rack != n.Rack {
			far += len(inv.Nodes)
		}
		if best == nil || far < nearest {
			best, nearest = m, far
		}
	}
	return best
}
