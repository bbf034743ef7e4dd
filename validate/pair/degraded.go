// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
)

// degradedPorts are the ports that counted errors during a pair test, by node and rail.
func (v verdict) degradedPorts() []rail.DegradedPort {
	ends := slices.Concat(slices.Collect(maps.Values(v.ends))...)
	slices.SortFunc(ends, func(a, b rail.End) int {
		return cmp.Or(strings.Compare(a.Node.Name, b.Node.Name), strings.Compare(a.Fabric, b.Fabric), cmp.Compare(a.Port.Rail, b.Port.Rail), strings.Compare(a.Port.Device, b.Port.Device))
	})
	return rail.DegradedPorts(ends, v.before, v.after, v.took)
}

// isAmong reports whether a port belongs to parts that are blamed: to a node of
// theirs, or to what its rail shares.
func isAmong(p rail.DegradedPort, parts []isolate.Part) bool {
	return slices.ContainsFunc(parts, func(part isolate.Part) bool {
		return part.Node == p.Node.Name || part.Fabric == p.Fabric && (part.Scope == isolate.Everything || part.Scope == isolate.Shared && part.Rail == p.Port.Rail)
	})
}

// blameDegraded blames ports that made errors and that no slow transfer has led to:
// retransmission hides a bad cable from a bandwidth until there are many of them.
// A bad transfer between two nodes that are good with others is evidence where one
// of its ends is such a port; the transfers that are left are returned.
func (v verdict) blameDegraded(ctx context.Context, rep *result.Report, blamed []isolate.Part, between []isolate.Measurement) ([]isolate.Measurement, error) {
	ports := slices.DeleteFunc(v.degradedPorts(), func(p rail.DegradedPort) bool {
		return slices.Contains(rep.Suspects, p.Node.Name) || isAmong(p, blamed)
	})
	for _, f := range rail.DegradedFindings(ports) {
		for _, p := range ports {
			if subject.OfNode(p.Node.Name) != f.Suspects[0].Subject {
				continue
			}
			between = slices.DeleteFunc(between, func(m isolate.Measurement) bool {
				ours := m.Fabric == p.Fabric && m.Rail == p.Port.Rail && (m.From == p.Node.Name || m.To == p.Node.Name)
				if ours {
					t := v.transferOf(m)
					f.Evidence = append(f.Evidence, t.Name()+": "+t.Outcome())
				}
				return ours
			})
		}
		rep.Suspects = append(rep.Suspects, f.Suspects[0].Subject.Name)
		if err := v.p.Rec.Blame(ctx, f); err != nil {
			return nil, err
		}
	}
	return between, nil
}
