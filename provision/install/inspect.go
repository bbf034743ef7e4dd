// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/oob"
)

// inspect asks the agent for the hardware, passes the identity gate, compares
// the hardware with its block, and chooses the disk.
func (s *Stage) inspect(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	_, hw, err := s.identified(ctx, run, n, st)
	if err != nil {
		return err
	}
	last, target, err := knownFor(run, n, st)
	if err != nil {
		return err
	}
	faults := compareHardware(n, hw, last)
	if f := s.compareModuleKey(n, hw.SecureBoot); f != nil {
		faults = append(faults, *f)
	}
	if len(faults) > 0 {
		was, _, err := readFact(run, HardwareFact, n.Name)
		if err != nil {
			return err
		}
		nameSlots(faults, was, hw)
		return blameHardware(ctx, run, n, faults)
	}
	noteSecureBoot(run, n, hw.SecureBoot)
	// What was seen is kept whatever comes of the choice: the next plan shows the
	// disk that is there now.
	if err := learnFact(ctx, run, HardwareFact, n, hw); err != nil {
		return err
	}
	if n.Diskless() {
		return s.checkDrivers(run, n, hw, nil)
	}
	to, err := chooseDisks(n, hw, last)
	if err == nil {
		err = target.shown(n, to)
	}
	if err == nil && !n.Disks.Whole() {
		_, err = layoutOf(n, to, "", false) // before anything is erased: is there room for it?
	}
	if err != nil {
		return blameDisk(ctx, run, n, err)
	}
	if err := s.checkDrivers(run, n, hw, disksIn(to)); err != nil {
		return err
	}
	if !n.Disks.Whole() {
		if err := learnFact(ctx, run, DisksFact, n, to); err != nil {
			return err
		}
	}
	return learnFact(ctx, run, DiskFact, n, to[0].Disk)
}

// identified asks the agent, which is brought back first where it is gone, what
// hardware it sees, and passes the identity gate.
func (s *Stage) identified(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) (hub.Grant, wire.Hardware, error) {
	g, _, err := s.ensureAgent(ctx, run, n, st)
	if err != nil {
		return g, wire.Hardware{}, err
	}
	hw, err := s.readHardware(ctx, run, g.Attempt, n)
	if err != nil {
		return g, hw, s.blameConflict(ctx, run, n, err)
	}
	report, _, err := readFact(run, oob.ReportFact, n.Name)
	if err != nil {
		return g, hw, err
	}
	return g, hw, s.gate(ctx, run, n, hw, report)
}

// readHardware asks the agent of an attempt what hardware it sees. Each look has a key
// of its own: what was true before a write is not true after it. An agent that still
// works for an earlier run answers when it has ended that.
func (s *Stage) readHardware(ctx context.Context, run stage.Run, attempt string, n *inventory.Node) (hw wire.Hardware, err error) {
	q := newQueued(run)
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { q.watch(ctx, cancel) })
	defer wg.Wait()
	defer cancel(nil)
	at, _ := s.w.Boots.Current(n.Name)
	out, err := s.w.Hub.Do(ctx, at.grant(), wire.Task{Key: attempt + "/inspect-" + newNonce(), Kind: wire.Inspect}, q.progress)
	if err != nil {
		return hw, fmt.Errorf("inspect: %w", err)
	}
	if err := json.Unmarshal(out, &hw); err != nil {
		return hw, errkind.New(errkind.Internal, "inspect: the agent's report: %w", err)
	}
	return hw, nil
}

// gate is the identity gate: of system serial, SMBIOS UUID, boot MAC and the
// serial that the BMC reports, at least two must agree with the inventory, and
// none may disagree.
func (s *Stage) gate(ctx context.Context, run stage.Run, n *inventory.Node, hw wire.Hardware, bmc oob.Report) error {
	agree, disagree := compareIdentity(n, hw, bmc)
	if len(agree) >= 2 && len(disagree) == 0 {
		return nil
	}
	if missing := lostBootNIC(n, hw); len(agree) >= 2 && len(disagree) == 1 && len(missing) > 0 {
		return blameHardware(ctx, run, n, missing)
	}
	cause := "this chassis is not the one in the inventory"
	if len(disagree) == 0 {
		cause = "too little says which chassis this is: two of serial, UUID, boot MAC and BMC serial must agree"
	}
	action := fmt.Sprintf("Compare the label of the chassis in rack %s unit %d with the row of %s in the site's list. Nothing was erased.", n.Rack.Name, n.Unit, n.Name)
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "identity"}}, Cause: cause,
		Evidence: append(disagree, "agrees: "+strings.Join(agree, ", ")), Action: action}
	if err := run.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Mismatch, "identity gate: %s: %s", cause, strings.Join(disagree, "; ")).Do(action)
}

// lostBootNIC are the NICs that are missing where no interface has the boot MAC: a card that
// left the bus after the network boot takes that MAC along, and says nothing against a chassis
// whose serial numbers agree. None: the boot NIC is there, or no other is missing.
func lostBootNIC(n *inventory.Node, hw wire.Hardware) []Fault {
	if n.Hardware == nil || n.BootMAC.IsZero() || slices.ContainsFunc(hw.NICs, func(nic wire.NIC) bool { return nic.MAC == n.BootMAC }) {
		return nil
	}
	return compareNICs(n, hw)
}

// compareIdentity lists what agrees with the inventory and what does not. What either
// side does not know says nothing.
func compareIdentity(n *inventory.Node, hw wire.Hardware, bmc oob.Report) (agree, disagree []string) {
	judge := func(what, want, got string) {
		switch {
		case want == "" || got == "":
		case strings.EqualFold(want, got):
			agree = append(agree, what)
		default:
			disagree = append(disagree, fmt.Sprintf("%s is %q; the inventory says %q", what, got, want))
		}
	}
	judge("system serial", n.Serial, hw.Identity.Serial)
	judge("SMBIOS UUID", n.UUID, hw.Identity.UUID)
	judge("BMC's serial", n.Serial, bmc.Serial)
	if !n.BootMAC.IsZero() {
		found := "absent"
		for _, nic := range hw.NICs {
			if nic.MAC == n.BootMAC {
				found = nic.MAC.String()
			}
		}
		judge("boot MAC", n.BootMAC.String(), found)
	}
	return agree, disagree
}
