// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/bimodal"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/target"
)

// UndecidedFact is what the last comparison of its role left open about a node.
const UndecidedFact = fact.Name[bimodal.Undecided]("validate.speeds_of_node")

// split is a role that is in two groups by one of the kinds.
type split struct {
	bimodal.Groups
	of   bimodal.Of
	more []string // what else is so in the same two groups
}

// ofGroups are the words for the groups of a row.
func (r RoleReport) ofGroups(row Row) bimodal.Of {
	of := bimodal.Of{Role: r.Role, Limit: row.Check, Format: func(v float64) string { return format(row.Check, v) }}
	switch row.Check {
	case floor.HostCPU:
		of.Part, of.Does = cpuPart, "take for a billion operations"
	case floor.HostMemory:
		of.Part, of.Does = memoryPart, "reach in it"
	default:
		of.Part, of.Does = "disks "+row.Of, "are read, each at its slowest, at"
	}
	return of
}

// splits are the groups of a report, each once: NUMA nodes are of one host, and CPUs that are slow
// explain a slow memory.
func (r RoleReport) splits() (list []split) {
	for _, row := range r.Rows {
		if row.Groups == nil {
			continue
		}
		one := split{Groups: *row.Groups, of: r.ofGroups(row)}
		i := slices.IndexFunc(list, func(s split) bool {
			return s.Same(one.Groups) && s.of.Limit != floor.DiskRead && row.Check != floor.DiskRead
		})
		if i < 0 {
			list = append(list, one)
			continue
		}
		list[i].more = append(list[i].more, fmt.Sprintf("%s of %s: %s to %s, and %s to %s, in the same two groups", row.Check, row.Of,
			format(row.Check, one.Low.Least), format(row.Check, one.Low.Most), format(row.Check, one.High.Least), format(row.Check, one.High.Most)))
	}
	return list
}

// isLimited reports whether the site says of each node in the groups what is good.
func (s split) isLimited(nodes []*inventory.Node) bool {
	return !slices.ContainsFunc(nodes, func(n *inventory.Node) bool {
		if !s.Has(n.Name) {
			return false
		}
		if n.Validation == nil {
			return true
		}
		_, limited := n.Validation.Limit(s.of.Limit)
		return !limited
	})
}

// judgeGroups makes a finding of each two groups of the role, and notes for each node that the step is
// about what keeps it out. A limit of the site decides instead of it.
func (r *RoleReport) judgeGroups(ctx context.Context, j *target.Job, about []*inventory.Node) error {
	causes := map[string]string{}
	var traits bimodal.Traits // read once, where there is a split
	for _, s := range r.splits() {
		if s.isLimited(j.Group.Nodes) {
			r.Notes = append(r.Notes, s.Text(s.of)+": the limit of the site decides")
			continue
		}
		if traits == nil {
			traits = bimodal.ReadTraits(j.Run, j.Group.Nodes)
		}
		f := s.Finding(s.of, traits, about)
		f.Evidence = append(f.Evidence, s.more...)
		if slices.ContainsFunc(about, func(n *inventory.Node) bool { return s.Has(n.Name) }) {
			if err := j.Run.Blame(ctx, f); err != nil {
				return err
			}
		}
		for _, n := range about {
			if s.Has(n.Name) && causes[n.Name] == "" {
				causes[n.Name] = s.Why(s.of)
			}
		}
	}
	return bimodal.Learn(ctx, j.Run, UndecidedFact, about, causes)
}
