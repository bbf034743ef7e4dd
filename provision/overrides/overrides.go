// SPDX-License-Identifier: Apache-2.0

// Package overrides reads what the state overrides of a site's files: the nodes that a
// rollback pinned to an earlier image, the chassis that were replaced, and the nodes
// that are decommissioned although no file has them any more. It makes of both the
// inventory that is desired, and never changes the one that was loaded.
package overrides

import (
	"context"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/inventory"
)

// Request is what a command overrides beside what the state has recorded: nothing of
// it is in force before it is recorded. The zero value requests nothing.
type Request struct {
	Decommission []string     // nodes, by name
	Pins         []Pin        // of a rollback; they come before those of the state
	Chassis      *Replacement // of a rebuild; it comes before that of the state
}

// Desired is the inventory as it is desired: the site's files with every override
// applied. It is immutable and safe for concurrent use.
type Desired struct {
	Files *inventory.Inventory // as it was loaded
	Inv   *inventory.Inventory // with the overrides; Files itself where there are none
	Links []*roce.Links        // point-to-point addresses of Inv

	Pins           []Pin           // by node
	Replaced       []Replacement   // in force, by node
	Superseded     []Replacement   // that the site's files have caught up with, or contradict
	Decommissioned map[string]bool // nodes of Inv that are in no file
	// Orphaned are nodes that are in no file and that nobody decommissions, where a
	// scheduler keeps them: there may be jobs on them. They are not in Inv.
	Orphaned []*inventory.Node
}

// None is a site without overrides.
func None(files *inventory.Inventory, links []*roce.Links) *Desired {
	return &Desired{Files: files, Inv: files, Links: links, Decommissioned: map[string]bool{}}
}

// Read reads the overrides of a state and applies them to a copy of the inventory, with
// those of a request. links are the addresses of files. It changes neither.
func Read(ctx context.Context, r state.Reader, files *inventory.Inventory, links []*roce.Links, q Request) (*Desired, error) {
	d := None(files, links)
	var err error
	if d.Pins, err = readPins(ctx, r, q.Pins); err != nil {
		return nil, err
	}
	chassis, err := d.readReplacements(ctx, r, q.Chassis)
	if err != nil {
		return nil, err
	}
	retired := slices.Compact(slices.Sorted(slices.Values(q.Decommission)))
	if len(d.Pins)+len(chassis)+len(retired) == 0 {
		return d, nil
	}
	d.Inv = files.Copy()
	for name, c := range chassis {
		n, _ := d.Inv.Node(name)
		n.Serial, n.UUID, n.BootMAC = c.Serial, c.UUID, c.BootMAC
	}
	applyPins(d.Inv, d.Pins)
	tombstones := make([]*inventory.Node, 0, len(retired))
	for _, name := range retired {
		n, image, err := d.tombstone(ctx, r, name)
		if err != nil {
			return nil, err
		}
		if n.Hardware.SecureBoot {
			keepSigned(d.Inv, image)
		}
		tombstones, d.Decommissioned[name] = append(tombstones, n), true
	}
	d.Inv.Nodes = append(d.Inv.Nodes, tombstones...)
	slices.SortFunc(d.Inv.Nodes, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	d.Links = roce.Addresses(d.Inv)
	return d, nil
}

// keepSigned makes the image of a node that boots with Secure Boot and leaves again what it was
// while the node was in the files: one with signed loaders, from whose ramdisk the node is wiped. inv is
// a copy; its images are not.
func keepSigned(inv *inventory.Inventory, name string) {
	at := slices.IndexFunc(inv.Images, func(i *inventory.Image) bool { return i.Name == name })
	if at < 0 || inv.Images[at].SecureBoot {
		return
	}
	was, signed := inv.Images[at], *inv.Images[at]
	signed.SecureBoot, inv.Images[at] = true, &signed
	for _, n := range inv.Nodes {
		if n.Image == was {
			n.Image = &signed
		}
	}
}

// WithOrphaned is d with its orphaned nodes, of those that are gone from the site's
// files. One that cannot be declared again, such as one whose chassis has another name
// now, is kept by no scheduler.
func (d *Desired) WithOrphaned(ctx context.Context, r state.Reader, gone []string) *Desired {
	out := *d
	out.Orphaned = nil
	for _, name := range gone {
		if d.Decommissioned[name] {
			continue
		}
		if n, _, err := d.tombstone(ctx, r, name); err == nil && n.Handover != nil {
			out.Orphaned = append(out.Orphaned, n)
		}
	}
	return &out
}

// Gone lists the nodes that the state knows and the site's files do not have. A node
// that has another name now is not gone.
func (d *Desired) Gone(prior plan.Prior) (list []string) {
	moved := map[string]bool{}
	for _, m := range d.Files.Moves {
		moved[m.From] = true
	}
	for name := range prior.Nodes {
		if _, ok := d.Files.Node(name); ok || moved[name] {
			continue
		}
		if _, done := prior.Steps[forgetStep(name)]; !done || d.Decommissioned[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// Apply puts the overrides into the options of a plan.
func (d *Desired) Apply(prior plan.Prior, opt *plan.Options) {
	opt.Retired, opt.Orphaned = d.Decommissioned, d.Gone(prior)
	for _, n := range d.Inv.Nodes {
		if n.Retired && n.Protect {
			opt.Protected[n.Name] = true
		}
	}
	for _, p := range d.Pins {
		if _, ok := d.Files.Node(p.Node); ok {
			delete(opt.RoleOf, p.Node) // a rollout passes it by
		}
	}
	if len(opt.Targets) == 0 && len(opt.Replace) == 0 && len(d.Decommissioned) > 0 {
		opt.Targets = map[string]bool{} // nothing else was asked for
	}
	if opt.Targets != nil { // who names a node to decommission means it
		for name := range d.Decommissioned {
			opt.Targets[name] = true
		}
	}
}

// PinWarnings say which nodes do not follow the site's files, and until when.
func (d *Desired) PinWarnings() (list []string) {
	for _, p := range d.Pins {
		if _, ok := d.Files.Node(p.Node); ok {
			list = append(list, p.Warning())
		}
	}
	return list
}

// readObjects reads all objects of a kind, by name.
func readObjects[T any](ctx context.Context, r state.Reader, kind string) (map[string]T, error) {
	out := map[string]T{}
	err := state.Each(ctx, r, kind, func(k state.Key, v T) { out[k.Name] = v })
	return out, err
}
