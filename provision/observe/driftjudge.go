// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/drift"
)

// compareAccepted compares what was seen with what was accepted.
func (l *driftLook) compareAccepted(ctx context.Context, seen []nodeObservation) (Drift, error) {
	d := Drift{At: l.o.Now.UTC(), Nodes: len(seen), Changes: []drift.Change{}, Unknown: []drift.Unknown{}, Notes: []drift.Note{}}
	sets, err := l.sets(ctx, seen)
	if err != nil {
		return d, err
	}
	judged := map[string]bool{}
	var snaps []drift.Snapshot
	for _, x := range seen {
		snaps = append(snaps, x.Snapshot)
		d.Unknown = append(d.Unknown, l.unknown(x)...)
		base, ok, err := drift.ReadBaseline(ctx, l.store, x.Node)
		if err != nil {
			return d, err
		}
		if !ok {
			d.Notes = append(d.Notes, drift.Note{Node: x.Node, Text: fmt.Sprintf("it is not known how %s was when it was accepted; `ironrail drift --accept %s --reason WHY` takes it as it is", x.Node, x.Node)})
		} else {
			judged[x.Node] = base.Verified || base.By != ""
			found := drift.Compare(base, x.Snapshot, sets)
			d.Links.count(base, found)
			d.Changes = append(d.Changes, l.wanted(found)...)
		}
		d.Changes = append(append(d.Changes, settings(x, base.At)...), changesOf(x, base.At)...)
	}
	d.Notes = append(d.Notes, drift.Majority(snaps, l.roleOf, func(n string) bool { return judged[n] }, sets)...)
	drift.Sort(d.Changes)
	for i := range d.Changes {
		d.Changes[i].Port = l.portOf(d.Changes[i])
	}
	return d, nil
}

// portOf is the site's name of a port that a change is about; "" for another part.
func (l *driftLook) portOf(c drift.Change) string {
	n, ok := l.Inv.Node(c.Node)
	if !ok || n.Hardware == nil || c.Part == "" {
		return ""
	}
	at, _, _ := strings.Cut(c.Part, " ")
	for _, nic := range n.Hardware.NICs {
		for i, p := range nic.Ports {
			if p.PCI == at {
				return fmt.Sprintf("%s/%d", nic.Name, i)
			}
		}
	}
	return ""
}

// settings are the steps of which the world is not as the site has it.
func settings(x nodeObservation, since time.Time) (all []drift.Change) {
	for _, a := range x.settled {
		if a.State == stage.Differs {
			_, name, _ := strings.Cut(string(a.Step.ID), "/")
			all = append(all, drift.Change{Node: x.Node, Kind: drift.Settings, Name: name, Was: "as the site has it", Is: a.Evidence, Since: since,
				Action: fmt.Sprintf("`ironrail plan --refresh --target %s` shows the step that puts it right", x.Node)})
		}
	}
	return all
}

// unknown lists what could not be seen and was asked for. A node that does not
// answer is one line.
func (l *driftLook) unknown(x nodeObservation) (all []drift.Unknown) {
	reported := map[string]bool{}
	dead := slices.ContainsFunc(x.Gaps, func(g wire.Gap) bool { return g.Kind == wire.ItemHardware })
	for _, g := range x.Gaps {
		if dead && g.Kind == drift.Cables {
			continue // it cannot listen either
		}
		if l.wants(g.Kind) && !reported[g.Why] && !optional(g) {
			reported[g.Why] = true
			all = append(all, drift.Unknown{Node: x.Node, Kind: g.Kind, Why: g.Why})
		}
	}
	return append(all, x.blind...)
}

// optional reports whether a gap is one that a node of its kind always has.
func optional(g wire.Gap) bool {
	return strings.HasPrefix(g.Why, "IPMI does not") || g.Kind == drift.Cables && strings.HasPrefix(g.Why, "no port has heard") || strings.HasPrefix(g.Why, "its BMC was not asked")
}

// wanted keeps the changes of kinds that were asked for.
func (l *driftLook) wanted(list []drift.Change) []drift.Change {
	return slices.DeleteFunc(list, func(c drift.Change) bool { return !l.wants(c.Kind) })
}

// sets reads every list that a comparison needs.
func (l *driftLook) sets(ctx context.Context, seen []nodeObservation) (drift.Sets, error) {
	all := map[string]drift.Set{}
	need := func(s drift.Snapshot) error {
		for _, digest := range s.Sets {
			if _, ok := all[digest]; ok {
				continue
			}
			set, err := drift.SetOf(ctx, l.store, digest)
			if err != nil {
				return err
			}
			if set != nil {
				all[digest] = set
			}
		}
		return nil
	}
	for _, x := range seen {
		for digest, set := range x.lists {
			all[digest] = set
		}
	}
	for _, x := range seen {
		base, _, err := drift.ReadBaseline(ctx, l.store, x.Node)
		if err == nil {
			err = need(base)
		}
		if err == nil {
			err = need(x.Snapshot)
		}
		if err != nil {
			return nil, err
		}
	}
	return func(digest string) drift.Set { return all[digest] }, nil
}

func (l *driftLook) roleOf(node string) string {
	n, ok := l.Inv.Node(node)
	if !ok || n.Role == nil {
		return ""
	}
	return n.Role.Name
}

// count adds the links of a baseline, and those of them that changed.
func (c *LinkCount) count(base drift.Snapshot, found []drift.Change) {
	all, changed, lower := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, i := range base.Items {
		if i.Kind == wire.ItemLink {
			all[i.Part] = true
		}
	}
	for _, x := range found {
		if x.Kind != wire.ItemLink && x.Kind != drift.Errors && x.Kind != drift.Cables {
			continue
		}
		changed[x.Part] = true
		if x.Lower {
			lower[x.Part] = true
		}
	}
	c.Total, c.Changed, c.Lower = c.Total+len(all), c.Changed+len(changed), c.Lower+len(lower)
}
