// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/rebuild"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// inMemory makes the nodes of a site keep their systems in memory.
func inMemory(inv *inventory.Inventory) *inventory.Inventory {
	for _, i := range inv.Images {
		i.OS, i.Kind, i.Storage = i.Kind, inventory.KindDiskless, nil
	}
	for _, n := range inv.Nodes {
		n.Disks = nil
	}
	return inv
}

// blankDisks reports the disks that something was written to.
func blankDisks(inv *inventory.Inventory, w *virtual.World) (err error) {
	for _, n := range inv.Nodes {
		v, _ := w.Node(n.Name)
		for _, d := range v.Metal().Disks() {
			if c := d.Counters(); c.Writes > 0 || c.Erases > 0 {
				err = errors.Join(err, fmt.Errorf("disk %s of %s: %+v", d.Name(), n.Name, c))
			}
		}
	}
	return err
}

// TestDiskless brings up a site of eight whose nodes keep their systems in memory. The controller dies in
// each of their steps; a node that loses its power is brought back by a rebuild; no plan erases, and
// nothing is written to a disk.
func TestDiskless(t *testing.T) {
	t.Parallel()
	const lost = "r01-u09"
	var kills []string
	for _, step := range []string{"install.inspect", "install.write", "install.configure", "install.boot", "drivers"} {
		kills = append(kills, "kind=controller-kill,at="+step)
	}
	inv := inMemory(load(t, demo, nil))
	o := rehearsal.Options{Seed: 4, Faults: planted(t, kills...)}
	o.Then = func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		if p, err := l.Plan(ctx, provision.PlanOptions{Refresh: true}); err != nil || !p.Empty() {
			t.Errorf("a second plan: %v, %v", ids(p), err)
		}
		if d, err := l.Drift(ctx, observe.DriftOptions{}); err != nil || len(brief(d)) > 0 {
			t.Errorf("drift: %v, %v", brief(d), err)
		}
		v, _ := l.World.Node(lost)
		if err := v.Chassis().Press(chassis.ForceOff); err != nil {
			return err
		}
		time.Sleep(time.Minute)
		p, _, err := l.Rebuild(ctx, &rebuild.Request{Nodes: []string{lost}, Reason: "power was lost", By: "kim"})
		if err != nil {
			return err
		}
		for _, s := range p.Steps {
			if s.Erases != "" || s.May.Has(plan.Erase) {
				t.Errorf("step %s erases %q", s.ID, s.Erases)
			}
		}
		if n, out := accepted(ctx, l); n != len(inv.Nodes) {
			t.Errorf("%d are accepted after the rebuild; not %s", n, strings.Join(out, "; "))
		}
		return errors.Join(decommissioned(ctx, t, l), blankDisks(inv, l.World))
	}
	sum, err := rehearsal.Run(context.Background(), inv, o)
	if err != nil {
		t.Fatal(err)
	}
	if !sum.AsExpected() || len(sum.Accepted) != len(inv.Nodes) || sum.Runs != 1+len(kills) {
		t.Errorf("%d runs\n%s", sum.Runs, verdicts(sum))
	}
}

// decommissioned takes a node out of the site: it is switched off, and no disk is wiped.
func decommissioned(ctx context.Context, t *testing.T, l *rehearsaltest.Later) error {
	inv, err := without(t)
	if err == nil {
		err = l.Edit(ctx, inMemory(inv))
	}
	if err != nil {
		return err
	}
	p, err := l.Plan(ctx, provision.PlanOptions{Decommission: []string{gone}, Targets: []string{gone}})
	if err != nil {
		return err
	}
	if len(p.Erase.Nodes) > 0 || slices.Contains(ids(p), gone+"/install.wipe") || !slices.Contains(ids(p), gone+"/install.off") {
		t.Errorf("decommission erases %v by %v", p.Erase.Nodes, ids(p))
	}
	if res, err := l.Apply(ctx, p); err != nil || res.Outcome != state.RunDone {
		return fmt.Errorf("decommission: %s, %v", res.Outcome, err)
	}
	if n, _ := l.World.Node(gone); n.Chassis().Power() != chassis.Off {
		t.Errorf("power is %v", n.Chassis().Power())
	}
	return nil
}

// TestDisklessModules: kernel modules of GPUs are built on the controller, and not on each node at
// each start; no module of the kernel's own is in their way.
func TestDisklessModules(t *testing.T) {
	t.Parallel()
	for _, site := range []string{"mi300x-roce", "hgx-h100"} {
		t.Run(site, func(t *testing.T) {
			t.Parallel()
			inv := inMemory(load(t, "../../examples/"+site, nil))
			for _, n := range inv.Nodes {
				n.Drivers = slices.DeleteFunc(slices.Clone(n.Drivers), func(d *inventory.Driver) bool { return d.Kind == "doca" })
			}
			for _, h := range inv.Hardware { // a node without a system on disk has no settings of NICs
				for i := range h.NICs {
					h.NICs[i].LinkType, h.NICs[i].OptionROM = "", nil
				}
			}
			built := map[string]bool{}
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 7, OnEvent: func(e event.Event) {
				if strings.Contains(e.Text, "kernel modules come built and signed") {
					built[e.Node] = true
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if len(sum.Accepted) != len(inv.Nodes) || len(built) != len(inv.Nodes) {
				t.Errorf("kernel modules came built to %v\n%s", built, verdicts(sum))
			}
		})
	}
}

// TestDisklessRoom: a node without the memory for its image is named before its system would run.
func TestDisklessRoom(t *testing.T) {
	t.Parallel()
	inv := inMemory(load(t, demo, nil))
	for _, h := range inv.Hardware {
		h.Memory.Size = 2 << 30
	}
	sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) > 0 || !strings.Contains(verdicts(sum), "MiB of memory") {
		t.Errorf("accepted %v\n%s", sum.Accepted, verdicts(sum))
	}
}
