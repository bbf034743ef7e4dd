package validate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/isolate"
)

// worn are the ports that counted errors during a pair test, by node and rail.
func (v verdict) worn() []wornPort {
	ends := slices.Concat(slices.Collect(maps.Values(v.ends))...)
	slices.SortFunc(ends, func(a, b end) int {
		return cmp.Or(strings.Compare(a.node.Name, b.node.Name), strings.Compare(a.fabric, b.fabric), cmp.Compare(a.port.Rail, b.port.Rail), strings.Compare(a.port.Device, b.port.Device))
	})
	return wornOf(ends, v.before, v.after, v.took)
}

// among reports whether a port belongs to parts that are blamed: to a node of
// theirs, or to what its rail shares.
func (p wornPort) among(parts []isolate.Part) bool {
	return slices.ContainsFunc(parts, func(part isolate.Part) bool {
		return part.Node == p.node.Name || part.Scope == isolate.Shared && part.Fabric == p.fabric && part.Rail == p.port.Rail
	})
}

// blameWorn blames ports that made errors and that no slow transfer has led to:
// retransmission hides a bad cable from a bandwidth until there are many of them.
// A bad transfer between two nodes that are good with others is evidence where one
// of its ends is such a port; the transfers that are left are returned.
func (v verdict) blameWorn(ctx context.Context, rep *Report, blamed []isolate.Part, between []isolate.Measurement) ([]isolate.Measurement, error) {
	ports := slices.DeleteFunc(v.worn(), func(p wornPort) bool {
		return slices.Contains(rep.Suspects, p.node.Name) || p.among(blamed)
	})
	for _, f := range wornFindings(ports) {
		for _, p := range ports {
			if subject.OfNode(p.node.Name) != f.Suspects[0].Subject {
				continue
			}
			between = slices.DeleteFunc(between, func(m isolate.Measurement) bool {
				ours := m.Fabric == p.fabric && m.Rail == p.port.Rail && (m.From == p.node.Name || m.To == p.node.Name)
				if t := v.transferOf(m); ours {
					f.Evidence = append(f.Evidence, t.name()+": "+describe(t))
				}
				return ours
			})
		}
		rep.Suspects = append(rep.Suspects, f.Suspects[0].Subject.Name)
		if err := v.p.rec.Blame(ctx, f); err != nil {
			return nil, err
		}
	}
	return between, nil
}
