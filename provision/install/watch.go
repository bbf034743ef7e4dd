// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// errSilent ends a wait for a node that was not heard of for too long.
var errSilent = errors.New("the node is silent")

// waitHello waits for the agent; errSilent when the node does nothing, or the
// step's deadline has come, errOff when it was switched off. When the operator
// stops the run, the attempt stays open and is resumed.
func (s *Stage) waitHello(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, at Attempt) (wire.Identity, error) {
	wait, giveUp := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.watchBoot(wait, giveUp, run, n, st, at) })
	id, err := s.w.Hub.Wait(wait, at.grant())
	giveUp(nil)
	wg.Wait()
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		err = errSilent
	}
	return id, err
}

// watchBoot tells what the node is seen to do, and gives up early on a node that
// stays silent for longer than its model needs.
func (s *Stage) watchBoot(ctx context.Context, giveUp context.CancelCauseFunc, run stage.Run, n *inventory.Node, st plan.Step, at Attempt) {
	now := run.Clock().Now()
	p := s.watchProgress(n, st, now, "waits for the node's first DHCP request")
	settling, last := now.Add(settles), BootEvent{}
	var power powerWatch
	for run.Clock().Sleep(ctx, time.Second) == nil {
		now := run.Clock().Now()
		if !settling.IsZero() && now.After(settling) {
			markSettled(run, st)
			settling = time.Time{}
		}
		p.poll(now)
		news := false
		if seen := s.w.Evidence(n.Name, at.Opened); len(seen) > 0 && seen[len(seen)-1] != last {
			last, news = seen[len(seen)-1], true
			p.set(last.Time, last.String())
		}
		p.report(run, now, news || p.lastReported == "")
		switch {
		case p.isSilent(now):
			giveUp(errSilent)
			return
		case power.isPowerOff(ctx, s, n, p.at, now):
			giveUp(errOff)
			return
		}
	}
}

// silenceLimit is how long a node may be silent between power-on, its boot
// services and its agent, before it counts as stuck: three quarters of what the
// step that boots it may take, which follows from what nodes of its kind took on
// this site.
func silenceLimit(n *inventory.Node, st plan.Step) time.Duration {
	times := time.Duration(1)
	if actionOf(st) == Boot {
		times = boots(n)
	}
	if n.Hardware.BootTimeout > 0 {
		return time.Duration(n.Hardware.BootTimeout) * times
	}
	const most = 15 * time.Minute
	if a := actionOf(st); a == Netboot || a == Boot {
		return min(st.Deadline.Limit*3/4, most*times)
	}
	return most
}

// noHello ends the attempt and blames what the evidence points at. It records
// under a context of its own: that of the step is over.
func (s *Stage) noHello(ctx context.Context, run stage.Run, n *inventory.Node, at Attempt, off bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	seen := s.w.Evidence(n.Name, at.Opened)
	lines, _ := s.printed(n.Name)
	d := Diagnose(n, seen, lines)
	if off {
		d = noPower(d)
	}
	at.Phase, at.Reason = Ended, d.Cause
	s.w.Boots.Set(at)
	if err := learnFact(ctx, run, AttemptFact, n, at); err != nil {
		return err
	}
	if _, took := findOtherServer(seen); took && !off && s.w.BootNetwork != nil {
		return &stage.BlockedError{Err: errkind.New(errkind.Refused, "%s", d.Cause).Do(d.Action)}
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: d.Part}}, Cause: d.Cause, Evidence: d.Evidence, Action: d.Action}
	if err := run.Blame(ctx, f); err != nil {
		return err
	}
	return errkind.New(errkind.Timeout, "%s", d.Cause).Do(d.Action)
}
