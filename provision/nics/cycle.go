// SPDX-License-Identifier: Apache-2.0

package nics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// How long things take.
const (
	// offTime is how long a node stays without power: capacitors drain, so that the cards
	// load what was set. People who do it by ipmitool wait 20 to 30 seconds.
	offTime = 30 * time.Second
	askTime = 15 * time.Second // for one answer of the node
	askPoll = 5 * time.Second
	// backTime is how long a node may take from power-on to a login: a self-test that
	// trains memory, and the boot after it.
	backTime = 35 * time.Minute
)

// started reports whether the services of a system have started, well or not: drivers load
// and fabric managers start after the first login.
func (s *Stage) started(ctx context.Context, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	out, err := s.nodes.Run(ctx, node, onnode.Command{Argv: []string{"systemctl", "is-system-running"}}) // its status is 0 of "running" alone
	switch strings.TrimSpace(string(out.Stdout)) {
	case "initializing", "starting":
		return false
	}
	return err == nil
}

// cycle switches a node off and on, once for each boot of its system, and waits for the
// next one. A reset does not do for all cards: they load their settings when they get power.
func (s *Stage) cycle(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, leaving string) error {
	control, err := s.power(ctx, n.Name)
	if err != nil {
		return err
	}
	run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: "power off and on, so that the NICs take up their settings"})
	err = run.Effect(ctx, stage.Effect{Key: fmt.Sprintf("%s/cycle-%s", st.ID, leaving), Kind: plan.Power,
		Does: fmt.Sprintf("power %s off and on, so that its NICs take up their settings", n.Name),
		Probe: func(ctx context.Context) (stage.Probe, string, error) {
			id, err := onnode.BootID(ctx, s.nodes, n.Name)
			switch {
			case err == nil && id == leaving:
				return stage.NotDone, "the system that was to be switched off still runs", nil
			case err == nil:
				return stage.Done, "another boot of the system runs", nil
			}
			state, err := control.PowerState(ctx)
			if err == nil && state == bmc.PowerOff {
				return stage.NotDone, "the power is off", nil
			}
			return stage.Doubt, "the node has power and does not answer", nil
		},
		// Again is harmless: the node is out of service, and boots from its disk.
		Repeatable: true,
		Do:         func(ctx context.Context) error { return offAndOn(ctx, run, control) }})
	if err != nil {
		return err
	}
	for _, u := range st.Uses {
		if u.Hold == plan.UntilReleased {
			defer run.Release(u.Resource)
		}
	}
	return s.backUp(ctx, run, n, leaving)
}

// offAndOn has the system shut down, cuts the power where it does not, and switches on.
func offAndOn(ctx context.Context, run stage.Run, control Power) error {
	if _, err := control.SetPower(ctx, bmc.SoftOff); err != nil {
		if kind := errkind.Of(err).Base(); kind == errkind.Auth || ctx.Err() != nil {
			return err
		}
		if _, err := control.SetPower(ctx, bmc.Off); err != nil {
			return err
		}
	}
	if err := run.Clock().Sleep(ctx, offTime); err != nil {
		return errkind.Begun(err)
	}
	_, err := control.SetPower(ctx, bmc.On)
	return errkind.Begun(err)
}

// backUp waits until the system of the next boot answers, and has started.
func (s *Stage) backUp(ctx context.Context, run stage.Run, n *inventory.Node, before string) error {
	most := backTime
	if n.Hardware.BootTimeout > 0 {
		most = n.Hardware.BootTimeout
	}
	began := run.Clock().Now()
	run.Emit(event.Event{Type: event.StepProgress, Text: "waits for SSH on " + n.Address.String(), Until: began.Add(most)})
	for {
		id, err := onnode.BootID(ctx, s.nodes, n.Name)
		if err == nil && id != before && s.started(ctx, n.Name) {
			return nil
		}
		if run.Clock().Now().Sub(began) > most {
			const action = "Read the console of the node and its power at the BMC; then run `ironrail apply`, which continues from there."
			f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name)}}, Cause: "the node does not come back after the power cycle for its NICs' settings",
				Evidence: []string{fmt.Sprintf("SSH does not answer at %s for %s", n.Address, most)}, Action: action}
			return errors.Join(run.Blame(ctx, f), errkind.New(errkind.Timeout, "%s does not answer SSH after its power cycle", n.Name).Do(action))
		}
		if err := run.Clock().Sleep(ctx, askPoll); err != nil {
			return err
		}
	}
}
