// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// TestAnotherDiskBoots: a system that runs from another disk than the one that was
// written is a finding with both serial numbers, though its marker is right: a copy
// of the disk has it too.
func TestAnotherDiskBoots(t *testing.T) {
	t.Parallel()
	c := whole()
	c.root = &wire.Disk{Name: "sdb", Model: "PM9A3", Serial: "OLD7"}
	c.order = &wire.BootOrder{Current: 2, Entries: []wire.BootEntry{{Number: 2, Name: "UEFI OS"}}}
	res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
	n := res.Nodes[0]
	if n.Outcome != apply.NodeQuarantined || n.Finding == nil {
		t.Fatalf("node is %s: %+v", n.Outcome, n)
	}
	if f := n.Finding; f.Cause != "the firmware boots another disk than the one that was written" || len(f.Evidence) != 1 ||
		!strings.Contains(f.Evidence[0], `runs from disk sdb (PM9A3, serial "OLD7"); its image was written to disk vda (, serial "D1"); the firmware started it by Boot0002 "UEFI OS"`) ||
		!strings.Contains(f.Action, "D1") || !strings.Contains(f.Action, "OLD7") {
		t.Errorf("finding %+v", f)
	}
	c = whole()
	c.root = &wire.Disk{Name: "nvme1n1", Serial: "D1"} // the same disk by another name
	if res, next := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil); res.Outcome != state.RunDone || !next.Empty() {
		t.Errorf("the right disk: %s: %+v", res.Outcome, res.Steps)
	}
}

// TestDiskOfBefore: a node that keeps its system in memory is not held against the disk that it was
// installed on before.
func TestDiskOfBefore(t *testing.T) {
	t.Parallel()
	n := site().Nodes[0]
	f, err := DiskFact.New(subject.OfNode("n1"), wire.Disk{Name: "sda", Serial: "OLD1"}, "")
	if err != nil {
		t.Fatal(err)
	}
	known, sys := knownFacts{f.Key: f}, System{Root: &wire.Disk{Name: "sdb", Serial: "OLD2"}}
	if checkRootDisk(known, n, sys) == nil {
		t.Error("another disk is not seen")
	}
	n.Image.Kind, n.Disks = inventory.KindDiskless, nil
	if err := checkRootDisk(known, n, sys); err != nil {
		t.Error(err)
	}
}

// TestDisklessReinstalls: the write of a system in memory erases nothing, and is a reinstallation all the
// same.
func TestDisklessReinstalls(t *testing.T) {
	t.Parallel()
	for _, diskless := range []bool{false, true} {
		inv := site()
		if diskless {
			inv.Nodes[0].Image.Kind, inv.Nodes[0].Disks = inventory.KindDiskless, nil
		}
		steps, diags := New(inv, map[string]string{"os": digest}, Dependencies{}).Plan(memo{})
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		for _, st := range steps {
			write := st.ID == StepOf("n1", Write)
			if st.Reinstalls != (write && diskless) || st.May.Has(plan.Erase) != (write && !diskless) {
				t.Errorf("diskless %t: %s reinstalls %t, erases %q", diskless, st.ID, st.Reinstalls, st.Erases)
			}
		}
	}
}

// TestBootOrderIsNoRefusal: firmware that does not take its boot order stops nothing.
func TestBootOrderIsNoRefusal(t *testing.T) {
	t.Parallel()
	c := whole()
	c.order = &wire.BootOrder{First: wire.BootDisk, Problem: "the firmware keeps the order 0000"}
	res, _ := bringUp(t, c, fixedImages{}, plan.Options{MaxErase: 1}, nil)
	if res.Outcome != state.RunDone {
		t.Errorf("outcome %s: %+v", res.Outcome, res.Steps)
	}
	if c.first != "" {
		t.Errorf("a node with a BIOS was asked for the boot order %q", c.first)
	}
	inv := site()
	n := inv.Nodes[0]
	n.Hardware.Boot, n.Hardware.BootOrder = inventory.BootUEFI, "network"
	if p := New(inv, nil, Dependencies{}).hostSettings(n, wire.Disk{}); p.BootOrder != wire.BootNetwork {
		t.Errorf("a node with UEFI is asked for %q", p.BootOrder)
	}
}
