// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/provision/resident"
)

// executeThere has the owner that stays run an approved plan, shows it, and says how it ended.
func (a *app) executeThere(ctx context.Context, site *provision.Site, lent *onrecord.Borrowed, o provision.RunOptions) error {
	begun, err := lent.Begin(ctx, control.RunRequest{Sum: o.Plan.Sum, Resume: o.Resume, Approval: o.Approval}, o.Plan, site.Keys.Plan)
	if err != nil {
		return err
	}
	a.sayf("serve runs the plan. It goes on when this command or its terminal is gone; `ironrail apply --attach` shows it again.")
	return a.followRun(ctx, site, lent.Owner(), begun, o.Plan, lent)
}

// followRun shows a run of the owner until its end, and exits as the run ended.
func (a *app) followRun(ctx context.Context, site *provision.Site, c *control.Client, begun control.RunBegun, p *plan.Plan, r *onrecord.Borrowed) error {
	bus := event.NewBus(ringSize)
	ctx, stop := a.passInterrupts(ctx, c, func(text string) { bus.Emit(event.Event{Type: event.Note, Text: text}) })
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { newView(a, p).predicted(a.shown).follow(bus.Subscribe(0)) })
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	wg.Go(func() { copyEvents(following, c, begun, bus) })
	end, gone := c.Result(ctx, begun.Run)
	if gone != nil {
		unfollow() // an owner that is up again knows no end of that run
	}
	err := end.Err()
	wg.Wait()
	switch {
	case gone != nil:
		return a.lost(ctx, begun.Run)
	case end.Result.Run == "":
		return err
	}
	if r != nil {
		r.Refresh()
		return a.ended(ctx, site, r, end.Result, err)
	}
	reader, closeState, rerr := a.openReader()
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	defer closeState()
	return a.ended(ctx, site, reader, end.Result, err)
}

// lost says that the end of a run was not seen.
func (a *app) lost(ctx context.Context, run string) error {
	if ctx.Err() != nil {
		return exit{code: exitInterrupted}
	}
	return errkind.New(errkind.Interrupted, "the owner of the state has ended, and run %s with it", run).
		Do("`ironrail apply` goes on from here once it is up again.")
}

// copyEvents copies the events of a run to a bus until its end, and ends that.
func copyEvents(ctx context.Context, c *control.Client, begun control.RunBegun, bus *event.Bus) {
	defer bus.Close()
	over := errors.New("over")
	next := begun.From
	for ctx.Err() == nil {
		err := c.Events(ctx, next, true, func(e event.Event) error {
			next = e.Seq + 1
			if resident.IsEnd(e, begun.Run) {
				return over
			}
			bus.Emit(e)
			return nil
		})
		if errors.Is(err, over) || errkind.Of(err) == errkind.Unreachable {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second): // it was too slow for the owner, which has closed the line
		}
	}
}

// passInterrupts has the owner drain the run at the first Ctrl-C and stop it at the second,
// until the function that it returns is called. A terminal that hangs up ends this command,
// and not the run.
func (a *app) passInterrupts(ctx context.Context, c *control.Client, say func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGTERM, syscall.SIGHUP)
	var wg sync.WaitGroup
	wg.Go(func() {
		ask := []struct {
			say string
			do  func(context.Context) error
		}{
			{"The run is stopped: running steps are let end and nothing new starts. Ctrl-C again stops at once; `ironrail apply` goes on later.", c.Drain},
			{"Stopping at once.", c.Stop},
		}
		for _, x := range ask {
			select {
			case <-ctx.Done():
				return
			case <-gone:
				cancel()
				return
			case <-signals:
			}
			say(x.say)
			if err := x.do(ctx); err != nil {
				say("warning: " + errkind.Line(err))
			}
		}
		select {
		case <-ctx.Done():
		case <-gone:
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(gone)
		cancel()
		wg.Wait()
	}
}

// attach shows the run that the owner of the state does.
func (a *app) attach(ctx context.Context, cmd *cobra.Command, f applyFlags) error {
	var others []string
	cmd.LocalNonPersistentFlags().VisitAll(func(x *pflag.Flag) {
		if x.Changed && x.Name != "attach" {
			others = append(others, "--"+x.Name)
		}
	})
	if len(others) > 0 || f.file != "" {
		return wrongUsage(cmd, fmt.Errorf("--attach shows a run that was begun, and takes no plan and no option of one: %s", strings.TrimSpace(strings.Join(append(others, f.file), " "))))
	}
	who, owned, err := control.FindOwner(a.stateDir())
	if err != nil {
		return err
	}
	if !owned || !who.Resident {
		return errkind.New(errkind.NotFound, "there is no serve whose run could be shown").Do("`ironrail status` says what is done; `ironrail events --follow` shows an apply that runs by itself.")
	}
	c := control.NewClient(a.stateDir())
	now, err := c.Status(ctx)
	if err != nil {
		return err
	}
	if now.Run == nil {
		return errkind.New(errkind.NotFound, "no run is active").Do("`ironrail status` says how the last one ended.")
	}
	site, _, err := a.openReadOnly()
	if err != nil {
		return err
	}
	p, err := a.planOf(ctx, now.Run.Plan)
	if err != nil {
		return err
	}
	return a.followRun(ctx, site, c, control.RunBegun{Run: now.Run.Run, From: now.First}, p, nil)
}

// planOf reads the plan of the run that is active.
func (a *app) planOf(ctx context.Context, id string) (*plan.Plan, error) {
	r, closeState, err := a.openReader()
	if err != nil {
		return nil, err
	}
	defer closeState()
	p, _, err := state.ReadUnfinishedPlan(ctx, r)
	if err == nil && (p == nil || p.ID != id) {
		err = fmt.Errorf("plan %s is not in the state: the run has just ended", id)
	}
	return p, err
}
