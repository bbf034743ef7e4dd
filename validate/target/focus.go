// SPDX-License-Identifier: Apache-2.0

package target

import (
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
)

// A test may be about a few nodes of its group: they are new, were repaired, or
// were changed. The others are in service. A few of them are partners: with two,
// whatever is bad with both speaks against the new node, and what is bad with one
// against that one.

// PartnersOfOne is how many nodes in service a new node is tested with.
const PartnersOfOne = 2

// InFocus splits nodes by whether the step is about them.
func InFocus(st plan.Step, nodes []*inventory.Node) (focus, with []*inventory.Node) {
	if st.Group == nil || len(st.Group.Focus) == 0 {
		return nodes, nil
	}
	about := make(map[subject.ID]bool, len(st.Group.Focus))
	for _, m := range st.Group.Focus {
		about[m] = true
	}
	for _, n := range nodes {
		if about[subject.OfNode(n.Name)] {
			focus = append(focus, n)
		} else {
			with = append(with, n)
		}
	}
	return focus, with
}

// ReportOf returns what the report of a test belongs to. That of a test in focus
// has a name of its own, so that what the others were accepted on stands.
func ReportOf(st plan.Step, name fact.Name[result.Report], set string) subject.ID {
	for _, k := range st.Yields {
		if k.Name == string(name) {
			return k.Subject
		}
	}
	return result.OfGroup(set)
}
