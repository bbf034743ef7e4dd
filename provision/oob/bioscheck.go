// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// How settings are waited for: BMCs show them at the end of a self-test, some only
// a minute later.
const (
	biosPoll = 15 * time.Second
	biosLag  = 2 * time.Minute  // from the end of a self-test until the BMC shows what is in force
	biosPOST = 25 * time.Minute // a reboot with its self-test, twice where a board trains memory anew
	sshWait  = 10 * time.Minute // from there to a login
)

// checkBIOS reads the settings back. Where they still wait for a self-test, since
// the node was in service and nothing of the plan rebooted it, it is rebooted,
// once.
func (s *Stage) checkBIOS(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) error {
	f, err := s.firmware(ctx, n.Name)
	if err != nil {
		return s.reportBMC(ctx, run, n, err)
	}
	now, pending, err := f.read(ctx)
	if err != nil {
		return s.reportBMC(ctx, run, n, err)
	}
	want := n.Hardware.BIOS
	if len(lackingSettings(want, now)) == 0 {
		return nil
	}
	limit := biosLag
	before := ""
	if isPending(want, now, pending) {
		before = s.bootID(ctx, n.Name)
		if err := s.rebootFor(ctx, run, n, st, f, before); err != nil {
			return err
		}
		limit = biosPOST
	}
	if err := s.inForce(ctx, run, n, f, limit); err != nil {
		return err
	}
	if before == "" {
		return nil
	}
	return s.backUp(ctx, run, n, before)
}

// inForce waits until the settings are in force.
func (s *Stage) inForce(ctx context.Context, run stage.Run, n *inventory.Node, f firmware, limit time.Duration) error {
	began := run.Clock().Now()
	run.Emit(event.Event{Type: event.StepProgress, Text: "waits for the self-test that takes up the BIOS settings", Until: began.Add(limit)})
	var wrong []string
	for {
		now, _, err := f.read(ctx)
		if err == nil {
			if wrong = lackingSettings(n.Hardware.BIOS, now); len(wrong) == 0 {
				return nil
			}
		} else if errkind.Of(err) == errkind.Auth {
			return s.reportBMC(ctx, run, n, err)
		} else {
			wrong = []string{err.Error()} // it restarts with its node, or is busy with the self-test
		}
		if run.Clock().Now().Sub(began) > limit {
			return s.notInForce(ctx, run, n, "BIOS settings of hardware."+n.Hardware.Name+" are not in force after a self-test", wrong,
				errkind.New(errkind.Mismatch, "not in force: %s", strings.Join(wrong, "; ")))
		}
		if err := run.Clock().Sleep(ctx, biosPoll); err != nil {
			return err
		}
	}
}

// rebootFor reboots a node for its settings: by its own system where that answers,
// so that its disks are left in order, else by its BMC. One that keeps its system in memory is not:
// nothing would be left of it.
func (s *Stage) rebootFor(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, f firmware, bootID string) error {
	if n.Diskless() {
		return errkind.New(errkind.Refused, "the BIOS settings of %s wait for a self-test, and its system is in memory: nothing would be left of it", n.Name).
			Do(fmt.Sprintf("`ironrail rebuild %s` boots it again, and its firmware takes them up.", n.Name))
	}
	asked := SettingsRequest{}
	if x, ok := run.Fact(settingsRequestFact.Of(st.Subject)); ok {
		var err error
		if asked, err = settingsRequestFact.Get(x); err != nil {
			return err
		}
	}
	return run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/reboot-%s", st.ID, asked.ID), Kind: plan.Power,
		Does: fmt.Sprintf("reboot %s, so that its firmware takes up the BIOS settings", n.Name),
		Probe: func(ctx context.Context) (stage.Probe, string, error) {
			_, pending, err := f.read(ctx)
			switch {
			case err != nil:
				return stage.Doubt, err.Error(), nil
			case len(pending) == 0:
				return stage.Done, "no setting waits any more", nil
			}
			return stage.NotDone, formatSettings(len(pending)) + " still waiting for a self-test", nil
		},
		Do: func(ctx context.Context) error {
			if bootID != "" {
				if err := onnode.Exec(ctx, s.nodes, n.Name, "systemctl", "reboot"); err == nil || errkind.Of(err) == errkind.Unreachable || errkind.Of(err) == errkind.Timeout {
					return nil // the connection may go with the system: it is not cut off on top of that
				}
			}
			state, err := f.handle.PowerState(ctx)
			if err != nil {
				return err
			}
			how := bmc.Cycle
			if state == bmc.PowerOff {
				how = bmc.On
			}
			_, err = f.handle.SetPower(ctx, how)
			return err
		}})
}

// bootID asks the installed system which boot it is; "" when it does not answer.
func (s *Stage) bootID(ctx context.Context, node string) string {
	if s.nodes == nil {
		return ""
	}
	id, err := onnode.BootID(ctx, s.nodes, node)
	if err != nil {
		return ""
	}
	return id
}

// backUp waits until the system of a rebooted node answers again.
func (s *Stage) backUp(ctx context.Context, run stage.Run, n *inventory.Node, before string) error {
	began := run.Clock().Now()
	run.Emit(event.Event{Type: event.StepProgress, Text: "waits for SSH on " + n.Address.String(), Until: began.Add(sshWait)})
	for {
		if id := s.bootID(ctx, n.Name); id != "" && id != before {
			return nil
		}
		if run.Clock().Now().Sub(began) > sshWait {
			return s.notInForce(ctx, run, n, "the node does not come back after the reboot for its BIOS settings", []string{"SSH does not answer at " + n.Address.String()},
				errkind.New(errkind.Timeout, "%s does not answer SSH after its reboot", n.Name).Do("Read the console of "+n.Name+": a BIOS setting may keep it from booting."))
		}
		if err := run.Clock().Sleep(ctx, 5*time.Second); err != nil {
			return err
		}
	}
}
