// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// PowerState is whether a node has power.
type PowerState string

// The power states; PowerUnknown is the zero value.
const (
	PowerUnknown PowerState = ""
	PowerOn      PowerState = "on"
	PowerOff     PowerState = "off"
)

// PowerAction is a change of a node's power.
type PowerAction uint8

// The power actions. The zero value is none and is refused.
const (
	_       PowerAction = iota
	On                  // power on; nothing is sent to a node that is on
	Off                 // hard off; nothing is sent to a node that is off
	SoftOff             // ask the operating system to shut down, and wait for it
	Cycle               // off, wait, on; only on when the node is off
	Reset               // hard reset without loss of power; refused when the node is off
)

// String returns the action's name.
func (a PowerAction) String() string {
	switch a {
	case On:
		return "on"
	case Off:
		return "off"
	case SoftOff:
		return "soft"
	case Cycle:
		return "cycle"
	case Reset:
		return "reset"
	}
	return fmt.Sprintf("power(%d)", uint8(a))
}

// state returns the state in which the action ends.
func (a PowerAction) state() PowerState {
	if a == Off || a == SoftOff {
		return PowerOff
	}
	return PowerOn
}

// How long a change of power may take until the BMC reports it. A hard change
// shows within 1 to 10 s on real BMCs; an operating system that stops jobs and
// unmounts disks takes minutes.
const (
	settleHard = 30 * time.Second
	settleSoft = 5 * time.Minute
	pollFirst  = 200 * time.Millisecond // first wait between two questions
	pollMost   = 2 * time.Second        // longest wait between two questions
)

// busyTries is how often a command is sent that the BMC answered with "node
// busy" (IPMI's code C0h, Redfish's 409): that answer says that nothing was done.
// iDRAC 10 refuses "on" so for some seconds after an "off".
const busyTries = 8

// PowerState asks for the power state. Lost answers are asked for again.
func (s *Session) PowerState(ctx context.Context) (PowerState, error) {
	state, err := s.powerState(ctx)
	return state, s.target.wrap("get power", err)
}

// powerState asks through bmclib, with one new session when the old one is gone.
func (s *Session) powerState(ctx context.Context) (state PowerState, err error) {
	err = s.again(ctx, func() error {
		text, err := s.lib.GetPowerState(ctx)
		state = PowerState(text)
		return plain(err)
	})
	return state, err
}

// SetPower changes the power and waits until the BMC reports the new state, at
// most 30 s (SoftOff: 5 min) and within ctx. What already is as asked for is
// left alone. No command is sent twice, except that after the answer "busy";
// when an answer gets lost, the state that is read back decides.
//
// An error of kind Timeout beside an Outcome with Sent > 0 means that nobody
// knows whether the command was carried out.
func (s *Session) SetPower(ctx context.Context, a PowerAction) (Outcome, error) {
	_, sent := s.drv.used()
	out, err := s.setPower(ctx, a)
	_, after := s.drv.used()
	out.Sent = after - sent
	return out, s.target.wrap("power "+a.String(), err)
}

func (s *Session) setPower(ctx context.Context, a PowerAction) (Outcome, error) {
	if a < On || a > Reset {
		return Outcome{}, errkind.New(errkind.Internal, "%s is no power action", a)
	}
	now, err := s.steady(ctx)
	if err != nil {
		return Outcome{}, fmt.Errorf("read before: %w", err)
	}
	switch {
	case a == Cycle, a == Reset && now == PowerOn && s.drv.powerHabits().noReset:
		return s.cycle(ctx, now)
	case a == Reset:
		return s.reset(ctx, now)
	case now == a.state():
		return Outcome{Verdict: Verified, Evidence: fmt.Sprintf("power was already %s", now)}, nil
	}
	return s.change(ctx, a)
}

// ShutDown asks the operating system to shut down, once, and does not wait for it: the caller
// reads the power. A node that is off is left alone. A lost answer is no error; the power
// then says whether the node heard it.
func (s *Session) ShutDown(ctx context.Context) (Outcome, error) {
	_, sent := s.drv.used()
	out, err := s.shutDown(ctx)
	_, after := s.drv.used()
	out.Sent = after - sent
	return out, s.target.wrap("power "+SoftOff.String(), err)
}

func (s *Session) shutDown(ctx context.Context) (Outcome, error) {
	now, err := s.steady(ctx)
	if err != nil {
		return Outcome{}, fmt.Errorf("read before: %w", err)
	}
	if now == PowerOff {
		return Outcome{Verdict: Verified, Evidence: "power was already off"}, nil
	}
	switch err := s.command(ctx, SoftOff); {
	case err != nil && !isLost(err):
		return Outcome{Evidence: "the command was refused"}, err
	case err != nil:
		return Outcome{Evidence: "the shutdown was asked for, and the BMC did not answer"}, nil
	}
	return Outcome{Evidence: "the shutdown was asked for"}, nil
}

// steady asks for the state until it is on or off: Redfish has states between
// them, in which BMCs refuse commands or forget them.
func (s *Session) steady(ctx context.Context) (PowerState, error) {
	start := s.clk.Now()
	for {
		now, err := s.powerState(ctx)
		if err != nil || now != PowerUnknown {
			return now, err
		}
		if s.clk.Now().Sub(start) >= settleHard {
			return now, errkind.New(errkind.Refused, "the power is neither on nor off for %s", settleHard).
				Do("Look at the node; reset the BMC if its power state stays so.")
		}
		if err := s.clk.Sleep(ctx, pollMost); err != nil {
			return now, classify(ctx, err)
		}
	}
}

// change sends one command and waits for its effect.
func (s *Session) change(ctx context.Context, a PowerAction) (Outcome, error) {
	err := s.command(ctx, a)
	if err != nil && !isLost(err) {
		return Outcome{Evidence: "the command was refused"}, err
	}
	settle := settleHard
	if a == SoftOff {
		settle = settleSoft
	}
	return s.settle(ctx, a.state(), settle, err)
}

// command sends one power command, again only after "busy".
func (s *Session) command(ctx context.Context, a PowerAction) error {
	for try := 1; ; try++ {
		_, err := s.lib.SetPowerState(ctx, a.String())
		err = plain(err)
		if try == busyTries || !isCode(err, types.CodeNodeBusy) && !errors.Is(err, redfish.ErrBusy) {
			return err
		}
		if err := s.clk.Sleep(ctx, pollMost); err != nil {
			return classify(ctx, err)
		}
	}
}

// settle asks for the state until it is want. lost is the error of a command
// whose answer did not come; it is the result when the state does not change.
func (s *Session) settle(ctx context.Context, want PowerState, longest time.Duration, lost error) (Outcome, error) {
	start := s.clk.Now()
	var now PowerState
	var err error
	for wait := pollFirst; ; wait = min(wait*2, pollMost) {
		now, err = s.powerState(ctx)
		spent := s.clk.Now().Sub(start).Round(100 * time.Millisecond)
		switch {
		case err == nil && now == want:
			text := fmt.Sprintf("power reads %s after %s", now, spent)
			if lost != nil {
				text += ", though the command was not answered"
			}
			return Outcome{Verdict: Verified, Evidence: text}, nil
		case errkind.Of(err) == errkind.Auth && err != nil, ctx.Err() != nil:
			return Outcome{Evidence: "power cannot be read back"}, classify(ctx, errors.Join(err, ctx.Err()))
		case spent >= longest:
			return s.unsettled(now, spent, err, lost)
		}
		if err := s.clk.Sleep(ctx, wait); err != nil {
			return Outcome{Evidence: fmt.Sprintf("power reads %s after %s", now, spent)}, classify(ctx, err)
		}
	}
}

// unsettled is the result of a wait that ended without the wanted state.
func (s *Session) unsettled(now PowerState, spent time.Duration, err, lost error) (Outcome, error) {
	switch {
	case err != nil:
		return Outcome{Evidence: fmt.Sprintf("power cannot be read back for %s", spent)}, err
	case lost != nil:
		return Outcome{Evidence: fmt.Sprintf("no answer; power still reads %s after %s", now, spent)}, lost
	}
	return Outcome{Verdict: Contradicted, Evidence: fmt.Sprintf("power still reads %s after %s", now, spent)}, nil
}

// cycle is off, read back, wait, on, read back: four observed steps instead of
// the BMC's own "power cycle" (Chassis Control 2). Of that, nobody can say after
// a lost answer or a crash whether it was done, since the state is "on" before
// and after; and a command that follows too early cancels its second half (seen
// on ipmi_sim). With separate steps the state tells what is left to do, and the
// BMC sees exactly one off and one on. The price: when the controller dies
// between the two, the node stays off until the run is resumed.
func (s *Session) cycle(ctx context.Context, now PowerState) (Outcome, error) {
	if now == PowerOff {
		out, err := s.change(ctx, On)
		out.Evidence = "power was off; " + out.Evidence
		return out, err
	}
	if err := s.learnQuirks(ctx); err != nil {
		return Outcome{}, err
	}
	off, err := s.change(ctx, Off)
	if err != nil || off.Verdict != Verified {
		return off, err
	}
	if err := s.clk.Sleep(ctx, s.drv.powerHabits().dwell); err != nil {
		return Outcome{Evidence: off.Evidence + "; left off"}, classify(ctx, err)
	}
	now, err = s.powerState(ctx)
	if err != nil {
		return Outcome{Evidence: off.Evidence + "; left off"}, err
	}
	if now == PowerOn {
		return Outcome{Verdict: Verified, Evidence: off.Evidence + "; then it came on by itself"}, nil
	}
	on, err := s.change(ctx, On)
	on.Evidence = "off: " + off.Evidence + "; on: " + on.Evidence
	return on, err
}

// reset sends one hard reset. The state is "on" before and after, so only the
// node itself can prove it.
func (s *Session) reset(ctx context.Context, now PowerState) (Outcome, error) {
	if now != PowerOn {
		return Outcome{Evidence: "power was off"}, errkind.New(errkind.Refused, "the node is off and cannot be reset").
			Do("Power it on instead.")
	}
	if err := s.command(ctx, Reset); err != nil {
		return Outcome{Evidence: "power was on"}, err
	}
	return Outcome{Verdict: Unverifiable, Evidence: "the reset was accepted; only the node's boot can prove it"}, nil
}
