// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/oob"
)

// The actions on a node that leaves the site.
const (
	Leave = "leave" // netboot the ramdisk, to wipe from there
	Wipe  = "wipe"
	Off   = "off"
)

// wipeLimit is longer than any disk takes to discard all that it has.
const (
	wipeLimit = 2 * time.Hour
	offLimit  = 10 * time.Minute
)

// wipedFact is what was wiped of a node that leaves.
const wipedFact = fact.Name[wire.WipeResult]("install.wiped")

// retireSteps take a node out of the site: its ramdisk, the identity gate, its
// disks, its power. Its hardware is not compared: a node may leave because it is
// broken. One that kept its system in memory has no disk that is known to be its own: it is switched
// off.
func (s *Stage) retireSteps(n *inventory.Node, inMemory bool) []plan.Step {
	me := subject.OfNode(n.Name)
	step := func(action, title string, may plan.EffectSet, limit, expected time.Duration, needs ...plan.Need) plan.Step {
		return plan.Step{ID: StepOf(n.Name, action), Stage: Name, Action: plan.Delete, Subject: me, Title: title, Needs: needs, May: may,
			Decl: stage.Source(n.Decl), Deadline: plan.Budget{Limit: limit, Expected: expected}, Version: Version, DepthKey: n.Name}
	}
	reach := plan.Effects(plan.Power, plan.Config)
	leave := step(Leave, "power on and boot the install ramdisk, to wipe from there", reach, bootLimit, 45*time.Second,
		plan.Need{Step: oob.StepOf(n.Name), On: plan.Success})
	if n.HandedOver() {
		leave.Needs = append(leave.Needs, plan.Need{Step: DrainStep(n.Name), On: plan.Success})
	}
	leave.Uses = []plan.Use{{Resource: "inrush/" + n.Rack.Name, Units: 1, Hold: plan.UntilReleased}}
	leave.Yields = []fact.Key{AttemptFact.Of(me), IdentityFact.Of(me)}

	wipe := step(Wipe, "identify the node once more and wipe its disks", plan.Effects(plan.Power, plan.Config, plan.Erase), wipeLimit, time.Minute,
		plan.Need{Step: StepOf(n.Name, Leave), On: plan.Success})
	wipe.Erases = "EVERYTHING on the disks of " + n.Name + " that are known to be its own" // ShowDisks says which
	wipe.Yields = []fact.Key{wipedFact.Of(me)}
	off := step(Off, "power off", reach, offLimit, 10*time.Second, plan.Need{Step: StepOf(n.Name, Wipe), On: plan.Success})
	if inMemory {
		off.Title, off.Needs = "power off: its system was in memory, and no disk is wiped", slices.Clone(leave.Needs)
		return []plan.Step{off}
	}
	return []plan.Step{leave, wipe, off}
}

// wipe passes the identity gate, in this very boot of the ramdisk, and then wipes
// the disks that the hardware block names, as one journaled effect. Doing it again
// is harmless: there is nothing left to lose, and the gate is passed again.
func (s *Stage) wipe(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	g, hw, err := s.identified(ctx, run, n, st)
	if err != nil {
		return err
	}
	disks, err := s.planned(ctx, run, n, st, hw)
	if err != nil {
		return err
	}
	var names []string
	for _, d := range disks {
		names = append(names, fmt.Sprintf("%s (%s)", d.Name, d.Serial))
	}
	var res wire.WipeResult
	key := n.Name + "/" + g.Attempt + "/wipe"
	err = run.Effect(ctx, stage.Effect{Key: key, Kind: plan.Erase, Repeatable: true, Does: fmt.Sprintf("wipe disks %s of %s", strings.Join(names, ", "), n.Name),
		Probe: func(context.Context) (stage.Probe, string, error) {
			return stage.NotDone, "the agent answers the same key with the same result", nil
		},
		Do: func(ctx context.Context) error {
			out, err := s.do(ctx, run, n, wire.Wipe, key, wire.WipeParams{Disks: disks})
			if err != nil {
				return err
			}
			if err := json.Unmarshal(out, &res); err != nil {
				return errkind.New(errkind.Internal, "wipe: the agent's answer: %w", err)
			}
			return learnFact(ctx, run, wipedFact, n, res)
		}})
	if err != nil {
		return s.blameWipe(ctx, run, n, err)
	}
	for _, d := range res.Disks {
		run.Emit(event.Event{Type: event.Evidence, Text: wipedWords(d)})
	}
	return s.phase(ctx, run, n, Verified, "wiped")
}

// planned returns the disks that are wiped: those that are known to be the node's
// own, which must be among those that the plan shows.
func (s *Stage) planned(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, hw wire.Hardware) ([]wire.Disk, error) {
	last, target, err := knownFor(run, n, st)
	if err != nil {
		return nil, err
	}
	if err := learnFact(ctx, run, HardwareFact, n, hw); err != nil {
		return nil, err
	}
	disks, stay := disksToWipe(n, hw, last)
	var extra []wire.Disk
	for _, d := range disks {
		if !target.has(d) && (last.key == "" || d.Marker != last.key) {
			extra = append(extra, d)
		}
	}
	if len(extra) > 0 {
		return nil, errkind.New(errkind.Refused, "the plan does not show every disk that would be wiped now: %s", describeDisks(extra)).
			Do("Nothing was wiped. Look whether a disk was replaced or exchanged; then plan again: the new plan shows the disks that are there now.")
	}
	if len(disks) == 0 {
		return nil, errkind.New(errkind.NotFound, "no disk is known to be that of %s%s", n.Name, describeOthers(hw.Disks, nil)).
			Do(fmt.Sprintf("Wipe its disks by hand; then `ironrail decommission %s --forget-only`.", n.Name))
	}
	for _, d := range stay {
		run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("disk %s (%s, serial %s) is not known to be that of %s and stays as it is", d.Name, d.Model, d.Serial, n.Name)})
	}
	for _, d := range target.Disks {
		if !slices.ContainsFunc(disks, func(is wire.Disk) bool { return sameShown(d, is) }) {
			run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("disk serial %s, which the plan shows, is not there and was not wiped", orUnknown(nameOf(d)))})
		}
	}
	return disks, nil
}

// wipedWords says honestly what was done to a disk.
func wipedWords(d wire.Wiped) string {
	how := "discarded whole, and zeroed at its ends"
	if !d.Discarded {
		how = "zeroed at its ends only"
	}
	text := fmt.Sprintf("disk %s (serial %s): %s; this is no certified sanitisation", d.Name, d.Serial, how)
	if d.Note != "" {
		text += "; " + d.Note
	}
	return text
}

// disksToWipe are the disks that are known to be a node's own: that of its last
// install, with its marker or named, and those of disk blocks that exactly as many
// disks fit as they count. Others are those that stay: none is taken since it merely
// fits.
func disksToWipe(n *inventory.Node, hw wire.Hardware, known lastInstall) (disks, others []wire.Disk) {
	on, own := known.place(n, hw)
	all := shareDisks(n.Hardware, hw, on, own)
	take := known.layout(hw)
	if own != nil {
		take[*own] = true
	}
	for _, d := range n.Hardware.Disks {
		if own == nil && known.last != nil && diskFits(d, *known.last) {
			continue // the system disk is gone: what fits in its place is another
		}
		if there := all.of[d.Name]; len(all.twice) == 0 && len(there) <= max(1, d.Count) {
			for _, got := range there {
				take[got] = true
			}
		}
	}
	for _, d := range disksByPlace(hw.Disks) {
		if foreign := d.Marker != "" && !known.marks(n, d); take[d] && !foreign || known.key != "" && d.Marker == known.key {
			disks = append(disks, d)
		} else {
			others = append(others, d)
		}
	}
	return disks, others
}

// blameWipe turns a failed wipe into a finding about the disk.
func (s *Stage) blameWipe(ctx context.Context, run stage.Run, n *inventory.Node, err error) error {
	p, ok := errors.AsType[*wire.PartError](err)
	if !ok || ctx.Err() != nil || p.Part != wire.PartDisk {
		return err
	}
	action := errkind.Action(err)
	if action == "" {
		action = "Take the disk out and destroy it by your own rules; what was on it may still be there."
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "disk"}}, Cause: "a disk cannot be wiped", Evidence: []string{err.Error()}, Action: action}
	return errors.Join(run.Blame(ctx, f), err)
}

// off switches the power off and believes only the BMC's own answer.
func (s *Stage) off(ctx context.Context, run stage.Run, n *inventory.Node) error {
	at, _ := s.w.Boots.Current(n.Name)
	if err := s.phase(ctx, run, n, Ended, "switched off, to leave the site"); err != nil {
		return err
	}
	control, err := s.control(ctx, n)
	if err != nil {
		return err
	}
	is, err := control.PowerState(ctx)
	if err != nil {
		return err
	}
	if is == bmc.PowerOff {
		return nil
	}
	if err := s.restoreBootDevice(ctx, run, n, at); err != nil {
		return err
	}
	err = run.Effect(ctx, stage.Effect{Key: n.Name + "/" + at.ID + "/off", Kind: plan.Power,
		Does: "power off " + n.Name, Repeatable: true,
		Probe: func(ctx context.Context) (stage.Probe, string, error) {
			is, err := control.PowerState(ctx)
			if is == bmc.PowerOff {
				return stage.Done, "power is off", err
			}
			return stage.NotDone, "power is on", err
		},
		Do: func(ctx context.Context) error {
			out, err := control.SetPower(ctx, bmc.Off)
			if err == nil && out.Verdict == bmc.Contradicted {
				return errkind.New(errkind.Mismatch, "power off: the BMC reports: %s", out.Evidence)
			}
			return err
		}})
	if err == nil {
		if is, err = control.PowerState(ctx); err == nil && is != bmc.PowerOff {
			err = errkind.New(errkind.Mismatch, "the BMC was told to switch off, and reports that power is %q", is)
		}
	}
	return blameBMC(ctx, run, n, "the BMC does not switch the power off", err)
}
