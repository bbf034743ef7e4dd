// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// FirmwareFact is the boot id (random(4)) of a start of a node's installed system that its
// firmware made.
const FirmwareFact = fact.Name[string]("install.firmware")

// KexecFact is the boot attempt (Attempt.ID) whose ramdisk has the kernel of the installed system
// loaded; "" where it could not.
const KexecFact = fact.Name[string]("install.kexec")

// firmwareStep is the step of a node whose ramdisk starts the installed system: it proves that the
// firmware does as well. known says whether that was recorded.
func firmwareStep(n *inventory.Node, known bool) plan.Step {
	me := subject.OfNode(n.Name)
	st := plan.Step{ID: StepOf(n.Name, Firmware), Stage: Name, Subject: me, Title: "have the firmware start the installed system, where none of its restarts has done so yet", May: plan.Effects(plan.Power),
		Needs: []plan.Need{{Step: StepOf(n.Name, Boot), On: plan.Success, Triggers: true}}, Decl: stage.Source(inventory.PlaceOf(n.Hardware.Ranges, "kexec", n.Hardware.Decl)), Inherited: !known,
		Reads: []fact.Key{DiskFact.Of(me), WriteFact.Of(me)}, Yields: []fact.Key{FirmwareFact.Of(me)}, Deadline: plan.Budget{Limit: diskLimit * boots(n), Expected: 2 * time.Second, Slow: 10 * time.Minute}, Version: Version, DepthKey: n.Name}
	for _, d := range n.Drivers {
		st.Needs = append(st.Needs, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success})
	}
	return st
}

// WeaveFirmware puts the steps that prove the firmware's boot into their place: after the drivers
// and what else of stage settles restarts a node, before everything that follows those.
func WeaveFirmware(inv *inventory.Inventory, steps []plan.Step, settles func(*inventory.Node) (plan.StepID, bool)) []plan.Step {
	of, settled := map[plan.StepID][]plan.Need{}, map[plan.StepID][]plan.Need{}
	for _, n := range inv.Nodes {
		if !provesFirmware(n) {
			continue
		}
		proof := []plan.Need{{Step: StepOf(n.Name, Firmware), Triggers: true}}
		of[StepOf(n.Name, Boot)] = proof
		for _, d := range n.Drivers {
			of[plan.StepID(n.Name+"/drivers."+d.Name)] = proof
		}
		if id, ok := settles(n); ok {
			settled[StepOf(n.Name, Firmware)] = []plan.Need{{Step: id, On: plan.Success}}
		}
	}
	plan.AddNeeds(steps, settled)
	plan.Interpose(steps, of, func(st *plan.Step) bool {
		return st.Stage == "fabric" || st.Stage == "mounts" || st.Stage == "validate"
	})
	return steps
}

// ProvesFirmware reports whether a site has steps that prove the firmware's boot.
func ProvesFirmware(inv *inventory.Inventory) bool {
	return slices.ContainsFunc(inv.Nodes, provesFirmware)
}

func provesFirmware(n *inventory.Node) bool {
	return n.Hardware != nil && n.Hardware.Kexec && n.Image != nil && !n.Retired
}

// observeFirmware asks the system of a node what started it.
func (s *Stage) observeFirmware(ctx context.Context, run stage.Run, n *inventory.Node) (stage.Observation, error) {
	by, id, err := s.startedBy(ctx, n)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown, Evidence: err.Error()}, nil
	case by == kexec:
		return stage.Observation{State: stage.Differs, Evidence: "its ramdisk started it"}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: "its firmware started it"}, learnFact(ctx, run, FirmwareFact, n, id)
}

// What starts a system.
const (
	firmware = "firmware"
	kexec    = "kexec"
)

// startedBy asks the system of a node what started it, and which start it is.
func (s *Stage) startedBy(ctx context.Context, n *inventory.Node) (by, id string, err error) {
	id, err = onnode.BootID(ctx, s.w.Nodes, n.Name)
	if err != nil {
		return "", "", err
	}
	line, err := onnode.Do(ctx, s.w.Nodes, n.Name, "cat", "/proc/cmdline")
	if err != nil {
		return "", "", err
	}
	if slices.Contains(strings.Fields(string(line)), wire.KexecArgument) {
		return kexec, id, nil
	}
	return firmware, id, nil
}

// proveFirmware restarts a node whose ramdisk started its system, and waits until it runs from the
// disk that was written again.
func (s *Stage) proveFirmware(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	by, before, err := s.startedBy(ctx, n)
	if err != nil {
		return err
	}
	if by == firmware {
		return learnFact(ctx, run, FirmwareFact, n, before)
	}
	err = run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s-%s", st.ID, before), Kind: plan.Power, Does: "restart " + n.Name + " by its firmware", Repeatable: true,
		Probe: func(ctx context.Context) (stage.Probe, string, error) {
			switch _, now, err := s.startedBy(ctx, n); {
			case err != nil:
				return stage.Doubt, "the node does not answer", nil
			case now != before:
				return stage.Done, "it runs since another start", nil
			}
			return stage.NotDone, "it runs since the same start", nil
		},
		Do: func(ctx context.Context) error {
			err := onnode.Exec(ctx, s.w.Nodes, n.Name, "systemctl", "reboot")
			if k := errkind.Of(err); k == errkind.Unreachable || k == errkind.Timeout {
				return nil // the connection may go with the system
			}
			return err
		}})
	if err != nil {
		return err
	}
	run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: "the firmware starts it"})
	return s.awaitFirmware(ctx, run, n, before)
}

// awaitFirmware waits until a node runs since another start than before.
func (s *Stage) awaitFirmware(ctx context.Context, run stage.Run, n *inventory.Node, before string) error {
	began := run.Clock().Now()
	for {
		now := run.Clock().Now()
		switch err := run.Clock().Sleep(ctx, pollPause(now.Sub(began))); {
		case ctx.Err() != nil:
			return s.noLogin(context.WithoutCancel(ctx), run, n, errkind.New(errkind.Timeout, "the installed system ran, started by the ramdisk, and has not come up since its firmware was to start it %s ago", now.Sub(began).Round(time.Second)).
				Do(fmt.Sprintf("Read the serial console of %s: its boot order may lead elsewhere, or its firmware waits for a key.", n.Name)))
		case err != nil:
			return err
		}
		try, cancel := context.WithTimeout(ctx, 15*time.Second)
		by, id, err := s.startedBy(try, n)
		cancel()
		if err != nil || id == before {
			continue
		}
		if by == kexec {
			return errkind.New(errkind.Mismatch, "node %s was restarted, and not by its firmware: something loads a kernel for kexec at shutdown", n.Name).
				Do("Switch off what does (LOAD_KEXEC in /etc/default/kexec), or remove kexec from the hardware block.")
		}
		sys, err := s.system(ctx, n.Name)
		if err != nil {
			continue
		}
		if other := checkRootDisk(run, n, sys); other != nil {
			return s.blameRootDisk(ctx, run, n, other)
		}
		return learnFact(ctx, run, FirmwareFact, n, id)
	}
}
