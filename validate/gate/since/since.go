// SPDX-License-Identifier: Apache-2.0

// Package since finds what of a node is not as it was at its health checks: models, firmware,
// settings, and what its ports counted.
package since

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/uniform"
)

// Counts are what the ports of a node had counted when it was looked at. They start anew
// with the node.
type Counts struct {
	At     time.Time      `json:"at"`
	BootID string         `json:"boot_id,omitempty"`
	Ports  []wire.Counter `json:"ports,omitempty"`
}

// CountsOf takes the counters out of what the agent told.
func CountsOf(b wire.Baseline, at time.Time) *Counts {
	if len(b.Counters) == 0 {
		return nil
	}
	return &Counts{At: at, BootID: b.BootID, Ports: b.Counters}
}

// byPort gives the counters of each port by their names.
func (c *Counts) byPort() map[string]rail.PortCounters {
	all := map[string]rail.PortCounters{}
	for _, x := range c.Ports {
		if all[x.Part] == nil {
			all[x.Part] = rail.PortCounters{}
		}
		all[x.Part][x.Name] = x.Value
	}
	return all
}

const doCounted = "Clean and reseat the cable of this port, and look at its transceivers and its switch port; then apply again."

// ComparePorts finds the ports, by their PCI addresses, that counted more between two looks than
// a good link does. A node that was booted in between counts from there.
func ComparePorts(was, is *Counts, names map[string]string) (faults []judge.Fault) {
	if was == nil || is == nil {
		return nil
	}
	before, now, took := was.byPort(), is.byPort(), is.At.Sub(was.At)
	for _, part := range slices.Sorted(maps.Keys(now)) {
		from, name := before[part], names[part]
		if was.BootID != is.BootID {
			from = zeroed(now[part])
		}
		if rose := rail.WornCounters(from, now[part], took); len(rose) > 0 && name != "" {
			faults = append(faults, judge.Fault{Part: name, Action: doCounted,
				Cause:    fmt.Sprintf("%s counted %s since the health checks: its link makes errors, or was down", name, strings.Join(rose, ", ")),
				Evidence: []string{fmt.Sprintf("%s: %s in %s", part, strings.Join(rose, ", "), took.Round(time.Second))}})
		}
	}
	return faults
}

// NamePorts says what the ports of a node's fabrics are called, by PCI address.
func NamePorts(h *inventory.Hardware, fabrics []string) map[string]string {
	all := map[string]string{}
	for i := range h.NICs {
		nic := &h.NICs[i]
		if nic.Fabric == nil || !slices.Contains(fabrics, nic.Fabric.Name) {
			continue
		}
		for _, p := range nic.Ports {
			all[p.PCI] = fmt.Sprintf("rail %d of %s (NIC at %s)", p.Rail, nic.Fabric.Name, p.PCI)
		}
	}
	return all
}

// zeroed are the same counters at the start.
func zeroed(c rail.PortCounters) rail.PortCounters {
	out := rail.PortCounters{}
	for name := range c {
		out[name] = 0
	}
	return out
}

const (
	doChanged = "Find out what changed it since the node was tested, then run `ironrail apply` again: a node is accepted as it was tested."
	// mostShown is how long a value may be in a sentence, bytes.
	mostShown = 120
)

// CompareTraits says what of a node's models, firmware and settings is not as it was when it
// was tested. What one of the two looks does not report is not compared.
func CompareTraits(was, is []uniform.Trait) (faults []judge.Fault) {
	before, now := uniform.GroupTraits(was), uniform.GroupTraits(is)
	for _, k := range slices.SortedFunc(maps.Keys(now), uniform.About.Compare) {
		old, known := before[k]
		from, to := valuesOf(old), valuesOf(now[k])
		row := uniform.Row{Key: k.Key, Of: k.Of}
		if !known || slices.Equal(from, to) || row.Kind().Elsewhere {
			continue
		}
		if k.Key == uniform.NICs && slices.ContainsFunc(faults, func(f judge.Fault) bool { return strings.HasPrefix(f.Part, "NIC at ") }) {
			continue // the sum of those that are named
		}
		c := describeChange(row, old, now[k])
		c.Action = doChanged
		faults = append(faults, c)
	}
	return faults
}

// describeChange says of which parts a value is not what it was, where the parts tell.
func describeChange(row uniform.Row, old, now []uniform.Trait) judge.Fault {
	was, is := map[string]string{}, map[string]string{} // values by part
	for _, t := range old {
		for _, p := range t.Parts {
			was[p] = t.Value
		}
	}
	var gone, other []string
	for _, t := range now {
		for _, p := range t.Parts {
			is[p] = t.Value
			if before := cmp.Or(was[p], old[0].Value); before != t.Value {
				other = append(other, p)
			}
		}
	}
	for p := range was {
		if _, there := is[p]; !there && len(is) > 0 {
			gone = append(gone, p)
		}
	}
	slices.Sort(gone)
	from, to := clip(strings.Join(valuesOf(old), ", ")), clip(strings.Join(valuesOf(now), ", "))
	f := judge.Fault{Part: row.Kind().Part, Evidence: []string{fmt.Sprintf("%s: %s at the health checks, %s at acceptance", row.Name(), from, to)}}
	switch {
	case len(gone) > 0:
		f.Part = uniform.Parts(gone)
		f.Cause = fmt.Sprintf("%s: it was there when the node was tested, and is not any more (%s: %s)", f.Part, row.Name(), clip(was[gone[0]]))
	case len(other) > 0:
		f.Part = uniform.Parts(other)
		f.Cause = fmt.Sprintf("%s: %s is %s, and was %s when the node was tested", f.Part, row.Name(), clip(is[other[0]]), clip(cmp.Or(was[other[0]], old[0].Value)))
	default:
		f.Cause = fmt.Sprintf("%s: %s is %s, and was %s when the node was tested", f.Part, row.Name(), to, from)
	}
	return f
}

// valuesOf are the values of one thing, sorted; with the parts that have them where there
// are several.
func valuesOf(list []uniform.Trait) (all []string) {
	for _, t := range list {
		v := t.Value
		if len(list) > 1 && len(t.Parts) > 0 {
			v += " in " + strings.Join(t.Parts, ", ")
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return all
}

// clip cuts a long value, such as a kernel's command line.
func clip(v string) string {
	if len(v) <= mostShown {
		return v
	}
	return strings.ToValidUTF8(v[:mostShown], "") + "…"
}
