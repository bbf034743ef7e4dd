// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/hub"
)

// ensureAgent returns the agent of a live boot attempt of the node. When there
// is none it opens an attempt, sets the boot device, powers the node, and waits
// for the agent's hello. All of it is resumable: what an earlier process did of
// the same attempt is not done again. A node that gave up netbooting while no
// controller was there gets one fresh attempt.
func (s *Stage) ensureAgent(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) (hub.Grant, wire.Identity, error) {
	at, resumed, err := s.attempt(ctx, run, n, st)
	if err != nil {
		return hub.Grant{}, wire.Identity{}, err
	}
	id, here := s.w.Hub.Connected(at.grant())
	if !here {
		id, err = s.bringUp(ctx, run, n, st, at)
		if resumed && errors.Is(err, errSilent) {
			run.Emit(event.Event{Type: event.Note, Text: "the boot attempt of an earlier run failed; a fresh one is opened"})
			if err = s.waitAlone(ctx, run, n); err == nil {
				at, err = s.open(ctx, run, n, PowerCycle)
			}
			if err == nil {
				id, err = s.bringUp(ctx, run, n, st, at)
			}
		}
	}
	if errors.Is(err, errSilent) {
		if c, taken := s.takenAddress(n, at); taken {
			s.w.Hub.Conflict(at.grant(), c)
			err = &c
		}
	}
	err = blameUntagged(ctx, run, n, id, s.blameConflict(ctx, run, n, err))
	if errors.Is(err, errSilent) || errors.Is(err, errOff) {
		err = s.noHello(ctx, run, n, at, errors.Is(err, errOff))
	}
	if err != nil {
		return hub.Grant{}, wire.Identity{}, err
	}
	markSettled(run, st)
	return at.grant(), id, learnFact(ctx, run, IdentityFact, n, id)
}

// markSettled gives back what the step holds until its node's supplies have settled.
func markSettled(run stage.Run, st plan.Step) {
	for _, u := range st.Uses {
		if u.Hold == plan.UntilReleased {
			run.Release(u.Resource)
		}
	}
}

// bringUp powers the node for an attempt and waits for its agent.
func (s *Stage) bringUp(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, at Attempt) (wire.Identity, error) {
	if err := s.start(ctx, run, n, at); err != nil {
		return wire.Identity{}, err
	}
	return s.waitHello(ctx, run, n, st, at)
}

// attempt returns the node's live attempt, which an earlier step or run opened,
// or opens one. An attempt of another image is not continued: its effects are those of that
// image, and are journaled as done.
func (s *Stage) attempt(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step) (at Attempt, resumed bool, err error) {
	at, ours, err := readFact(run, AttemptFact, n.Name)
	if err != nil {
		return at, false, err
	}
	if want := s.imageFor(n); ours && at.live(run.Clock().Now()) && (at.Image == "" || want == "" || at.Image == want) {
		s.w.Boots.Set(at)
		if back, err := s.leads(ctx, run, n, at); back || err != nil {
			return at, true, err
		}
	}
	by, err := s.powerBy(ctx, n)
	if err != nil {
		return at, false, err
	}
	if by == PowerCycle {
		if refusal := mayInterrupt(n, st, ours); refusal != nil {
			if at, err = s.recognise(ctx, run, n, st, refusal); err != nil || at.ID != "" {
				return at, false, err
			}
		}
	}
	if err := s.waitAlone(ctx, run, n); err != nil {
		return at, false, err
	}
	at, err = s.open(ctx, run, n, by)
	return at, false, err
}

// powerBy is how a node comes to boot: it is switched on, or power-cycled where it has power.
func (s *Stage) powerBy(ctx context.Context, n *inventory.Node) (PowerBy, error) {
	control, err := s.control(ctx, n)
	if err != nil {
		return "", err
	}
	power, err := control.PowerState(ctx)
	if err != nil || power == bmc.PowerOff {
		return PowerOn, err
	}
	return PowerCycle, nil
}

// leads reports whether a live attempt may still bring the node's agent, or has.
// One whose node was switched off since does not, nor one whose disk is verified
// and whose agent is gone: a new attempt brings it back.
func (s *Stage) leads(ctx context.Context, run stage.Run, n *inventory.Node, at Attempt) (bool, error) {
	if _, here := s.w.Hub.Connected(at.grant()); here {
		return true, nil
	}
	if at.Phase == Open {
		return !s.switchedOff(ctx, run, n), nil
	}
	return s.agentReturns(ctx, run, at)
}

// open makes a new attempt the node's current one, durably.
func (s *Stage) open(ctx context.Context, run stage.Run, n *inventory.Node, by PowerBy) (Attempt, error) {
	at := newAttempt(n.Name, by, run.Clock().Now())
	at.Image = s.imageFor(n)
	if err := learnFact(ctx, run, AttemptFact, n, at); err != nil {
		return at, err
	}
	s.w.Boots.Set(at)
	return at, nil
}

// imageFor is the digest of the image that a node is to get; "": none.
func (s *Stage) imageFor(n *inventory.Node) string {
	if n.Image == nil {
		return ""
	}
	return s.digest[n.Image.Name]
}

// mayInterrupt refuses to power-cycle a node that runs and that this state never
// touched, unless the operator asked for its replacement by name.
func mayInterrupt(n *inventory.Node, st plan.Step, ours bool) error {
	if ours || st.Action == plan.Replace || st.Action == plan.Delete {
		return nil
	}
	return errkind.New(errkind.Refused, "%s is powered on, and nothing in this state says that ironrail may interrupt it", n.Name).
		Do(fmt.Sprintf("`ironrail adopt %s` records it as it runs; `ironrail rebuild %s` reinstalls it; or power it off by hand if it is idle.", n.Name, n.Name))
}

func (s *Stage) control(ctx context.Context, n *inventory.Node) (Control, error) {
	if s.w.BMC == nil {
		return nil, errkind.New(errkind.Internal, "install was made without BMCs")
	}
	return s.w.BMC(ctx, n.Name)
}

// start sets the boot device and powers the node, each as a journaled effect of
// this attempt.
func (s *Stage) start(ctx context.Context, run stage.Run, n *inventory.Node, at Attempt) error {
	control, err := s.control(ctx, n)
	if err != nil {
		return err
	}
	err = run.Effect(ctx, stage.Effect{Key: n.Name + "/" + at.ID + "/boot-device", Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("boot %s from the network once (%s)", n.Name, n.Hardware.Boot), Do: func(ctx context.Context) error { return s.setBoot(ctx, run, n, control) }})
	if err != nil {
		return blameBMC(ctx, run, n, "the BMC does not set the boot device", err)
	}
	e := stage.Effect{Key: n.Name + "/" + at.ID + "/power", Kind: plan.Power, Does: fmt.Sprintf("power %s %s", at.Power, n.Name),
		Probe: func(ctx context.Context) (stage.Probe, string, error) { return s.probePower(ctx, control, n, at) }}
	action := bmc.On
	if at.Power == PowerCycle {
		action = bmc.Cycle
	}
	e.Do = func(ctx context.Context) error {
		out, err := control.SetPower(ctx, action)
		if err == nil && out.Verdict == bmc.Contradicted {
			return errkind.New(errkind.Mismatch, "power %s: the BMC reports: %s", at.Power, out.Evidence)
		}
		return err
	}
	return blameBMC(ctx, run, n, "the BMC does not switch the power", run.Effect(ctx, e))
}

// blameBMC turns an error of the node's BMC into a finding about it. It passes
// over no error, an interruption, and what the engine itself refuses.
func blameBMC(ctx context.Context, run stage.Run, n *inventory.Node, cause string, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if kind := errkind.Of(err); kind == errkind.Interrupted || kind == errkind.Internal {
		return err
	}
	action := errkind.Action(err)
	if action == "" {
		action = "Look at the BMC's own page and its event log; a BMC that does not keep settings needs a reset, or newer firmware."
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "BMC"}}, Cause: cause, Evidence: []string{err.Error()}, Action: action}
	return errors.Join(run.Blame(ctx, f), err)
}

// setBoot sets the boot device once. What cannot be read back is proven by its
// effect: the agent's hello.
func (s *Stage) setBoot(ctx context.Context, run stage.Run, n *inventory.Node, control Control) error {
	b := bmc.Boot{Device: bmc.PXE, Once: true, UEFI: n.Hardware.Boot != inventory.BootBIOS}
	if n.Hardware.Boot == inventory.BootUEFIHTTP && n.BMC.Protocol == string(bmc.Redfish) {
		b.Device = bmc.HTTP // IPMI has no such device: there PXE lets the firmware choose
	}
	out, err := control.SetBoot(ctx, b)
	if err != nil {
		return err
	}
	if out.Persistent {
		if err := s.notePersistent(ctx, run, n, out); err != nil {
			return err
		}
	}
	switch out.Verdict {
	case bmc.Contradicted:
		return errkind.New(errkind.Mismatch, "the BMC accepted the boot device and kept another: %s", out.Evidence).
			Do("Set network boot once by the BMC's own page, and update the BMC's firmware.")
	case bmc.Unverifiable:
		run.Emit(event.Event{Type: event.Note, Text: "boot device set; this BMC does not confirm it (" + out.Evidence + "); the node's boot proves it"})
	}
	return nil
}

// notePersistent records that the attempt has to put the boot device back.
func (s *Stage) notePersistent(ctx context.Context, run stage.Run, n *inventory.Node, out bmc.Outcome) error {
	at, ok := s.w.Boots.Current(n.Name)
	if !ok || at.Persistent {
		return nil
	}
	at.Persistent = true
	if err := learnFact(ctx, run, AttemptFact, n, at); err != nil {
		return err
	}
	s.w.Boots.Set(at)
	run.Emit(event.Event{Type: event.Note, Text: "the BMC keeps network boot for every boot, not for the next one only (" + out.Evidence + "); it is put back before the node boots its disk"})
	return nil
}

// restoreBootDevice takes a network boot back that the BMC keeps for every boot: by
// clearing it, or, where the BMC refuses that (sushy-tools with libvirt), by asking for
// the disk. A BMC that takes neither is a note: this controller sends the node to its
// disk whenever it asks, but another may not.
func (s *Stage) restoreBootDevice(ctx context.Context, run stage.Run, n *inventory.Node, at Attempt) error {
	if !at.Persistent {
		return nil
	}
	control, err := s.control(ctx, n)
	if err != nil {
		return err
	}
	return run.Effect(ctx, stage.Effect{Key: n.Name + "/" + at.ID + "/boot-device-restored", Kind: plan.Config, Repeatable: true,
		Does: "take back the network boot of " + n.Name + ", which its BMC keeps for every boot",
		Do: func(ctx context.Context) error {
			var why []string
			for _, b := range []bmc.Boot{{Device: bmc.None}, {Device: bmc.Disk, UEFI: n.Hardware.Boot != inventory.BootBIOS}} {
				out, err := control.SetBoot(ctx, b)
				switch {
				case ctx.Err() != nil:
					return err
				case err == nil && out.Verdict == bmc.Verified:
					return nil
				case err != nil:
					why = append(why, err.Error())
				default:
					why = append(why, out.Evidence)
				}
			}
			run.Emit(event.Event{Type: event.Note, Text: "the BMC keeps network boot for every boot and does not let it be taken back (" + strings.Join(why, "; ") + "); set the disk first by the BMC's own page"})
			return nil
		}})
}

// probePower tells whether the power action of this attempt happened: after
// "on" the node has power; after "cycle" it was seen to boot since.
func (s *Stage) probePower(ctx context.Context, control Control, n *inventory.Node, at Attempt) (stage.Probe, string, error) {
	state, err := control.PowerState(ctx)
	if err != nil {
		return stage.Doubt, "", err
	}
	if state == bmc.PowerOff {
		return stage.NotDone, "power is off", nil
	}
	if at.Power == PowerOn {
		return stage.Done, "power is on, and was off when the attempt was opened", nil
	}
	if _, ok := s.w.Hub.Connected(at.grant()); ok || len(s.w.Evidence(n.Name, at.Opened)) > 0 {
		return stage.Done, "the node was seen to boot since the attempt was opened", nil
	}
	return stage.NotDone, "power is on and the node was not seen to boot", nil
}

// phase moves the node's attempt on.
func (s *Stage) phase(ctx context.Context, run stage.Run, n *inventory.Node, p Phase, why string) error {
	at, ok := s.w.Boots.Current(n.Name)
	if !ok || at.Phase == p {
		return nil
	}
	at.Phase, at.Reason = p, why
	if err := learnFact(ctx, run, AttemptFact, n, at); err != nil {
		return err
	}
	s.w.Boots.Set(at)
	if p == Ended {
		s.w.Hub.Drop(at.grant())
	}
	return nil
}
