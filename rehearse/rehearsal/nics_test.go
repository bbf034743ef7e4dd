// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// withROM is the site of eight nodes with the link type of its rails, with their option
// ROMs on or off, and with the program that sets them.
func withROM(t *testing.T, on bool) *inventory.Inventory {
	inv := load(t, demo, nil)
	for _, d := range inv.Drivers {
		d.Packages = append(d.Packages, "mstflint")
	}
	for _, h := range inv.Hardware {
		for i := range h.NICs {
			if h.NICs[i].HCA {
				h.NICs[i].LinkType, h.NICs[i].OptionROM = "ethernet", &on
			}
		}
	}
	return inv
}

// TestNICSettings brings a site up of which a card was delivered as InfiniBand, changes a
// setting of all of them, and holds the change to a drained cold cycle and new tests, with
// nothing installed.
func TestNICSettings(t *testing.T) {
	t.Parallel()
	var steps []string
	var res apply.Result
	delivered := func(_ context.Context, w *virtual.World) error {
		return errors.Join(w.DeliverOtherType("r01-u09", "rail/1"), w.DeliverOtherType("r01-u09", "rail/6"))
	}
	sum, err := rehearsal.Run(context.Background(), withROM(t, true), rehearsal.Options{Seed: 5, OnRack: delivered, Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		if p, err := l.Plan(ctx, provision.PlanOptions{}); err != nil || !p.Empty() {
			t.Errorf("a second plan: %v, %v", ids(p), err)
		}
		if err := l.Edit(ctx, withROM(t, false)); err != nil {
			return err
		}
		p, err := l.Plan(ctx, provision.PlanOptions{})
		if err != nil {
			return err
		}
		steps = ids(p)
		res, err = l.Apply(ctx, p)
		if err != nil {
			return err
		}
		if p, err := l.Plan(ctx, provision.PlanOptions{Refresh: true}); err != nil || !p.Empty() {
			t.Errorf("a plan after the change: %v, %v", ids(p), err)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if sum.Outcome != "done" || len(sum.Findings) > 0 {
		t.Errorf("bring-up: %s, %+v", sum.Outcome, sum)
	}
	if all := strings.Join(steps, " "); strings.Contains(all, "install.") || strings.Contains(all, "drivers.") || !strings.Contains(all, "r01-u09/nics.settings") || !strings.Contains(all, "r01-u09/fabric.compute") || !strings.Contains(all, "validate.accept") || !strings.Contains(all, "handover.drain") {
		t.Errorf("planned: %s", all)
	}
	for _, n := range res.Nodes {
		if !n.Accepted {
			t.Errorf("%s: %+v", n.Name, n.Finding)
		}
	}
}

// withSplit is the site of eight nodes whose cards are split into two: rails 0 and 1 are ports
// of one card, and so on.
func withSplit(t *testing.T) *inventory.Inventory {
	inv := load(t, demo, nil)
	for _, d := range inv.Drivers {
		d.Packages = append(d.Packages, "mstflint")
	}
	for _, h := range inv.Hardware {
		for i := range h.NICs {
			n := &h.NICs[i]
			if !n.HCA || len(n.Ports)%2 != 0 {
				continue
			}
			n.LinkType, n.Model, n.Split = "ethernet", "ConnectX-8", 2
			for k := 1; k < len(n.Ports); k += 2 {
				n.Ports[k].PCI = strings.TrimSuffix(n.Ports[k-1].PCI, "0") + "1"
			}
		}
	}
	return inv
}

// TestPortSplit brings a site up whose cards show their second port after they were split, and
// of which one does not take it: its node is taken out with the card, the others listen after
// the split, and a second plan is empty.
func TestPortSplit(t *testing.T) {
	t.Parallel()
	var heard int
	o := rehearsal.Options{Seed: 5, Faults: planted(t, "kind=nic-setting-lost,node=r01-u09,port=rail/2"), Then: func(ctx context.Context, r *rehearsal.Rehearsal) error {
		l := rehearsaltest.Of(r)
		facts, err := state.ReadFacts(ctx, l.Store)
		if err != nil {
			return err
		}
		f := facts[cabling.NeighboursFact.Of(subject.OfNode("r01-u01"))]
		list, err := cabling.NeighboursFact.Get(f)
		if err != nil {
			return err
		}
		for _, x := range list {
			if strings.HasSuffix(x.PCI, ".1") {
				heard++
			}
		}
		if p, err := l.Plan(ctx, provision.PlanOptions{Refresh: true, Targets: []string{"r01-u01"}}); err != nil || !p.Empty() {
			t.Errorf("a second plan: %v, %v", ids(p), err)
		}
		return nil
	}}
	sum, err := rehearsal.Run(context.Background(), withSplit(t), o)
	if err != nil {
		t.Fatal(err)
	}
	if !sum.AsExpected() || len(sum.Quarantined) != 1 || sum.Quarantined[0].Node != "r01-u09" || !strings.Contains(sum.Quarantined[0].Cause, "a NIC does not keep what is set") {
		t.Errorf("%+v", sum)
	}
	if heard != 4 {
		t.Errorf("second ports of r01-u01 heard %d switches", heard)
	}
}
