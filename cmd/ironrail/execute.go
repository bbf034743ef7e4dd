// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/status"
	"github.com/ironrail/ironrail/web/metrics"
)

// ringSize is how many events late listeners still get.
const ringSize = 20000

// execute runs an approved plan with its services, its control socket and its
// view, and says how it ended.
func (a *app) execute(ctx context.Context, site *provision.Site, own ownership, o provision.RunOptions) error {
	if own.lent != nil {
		return a.executeThere(ctx, site, own.lent, o)
	}
	drain := make(chan struct{})
	o.Drain = drain
	say := func(text string) { o.Bus.Emit(event.Event{Type: event.Note, Text: text}) }
	ctx, stop := watchInterrupts(ctx, drain, say)
	defer stop()
	scrapes, err := a.listenMetrics()
	if err != nil {
		return err
	}
	defer scrapes.close()
	socket, err := own.Listen()
	if err != nil {
		return err
	}
	receivers, err := a.openNotices(site, o.Bus)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	run, err := site.Begin(ctx, o)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	backend := run.Backend(o.Bus, own.Identity)
	side, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := control.Serve(side, socket, backend, thisVersion()); err != nil {
			say("warning: " + err.Error())
		}
	})
	log := &event.Log{Dir: filepath.Join(a.stateDir(), "events"), Trouble: func(err error) { say("warning: events are not kept: " + err.Error()) }}
	wg.Go(func() { _ = log.Follow(side, o.Bus.Subscribe(0)) }) // it has said its trouble
	wg.Go(func() { newView(a, o.Plan).predicted(a.shown).follow(o.Bus.Subscribe(0)) })
	if a.page != nil {
		a.page.CountServices(run.Counters)
	}
	scrapes.serve(side, &wg, say, run, o.Bus, metrics.Source{Version: thisVersion(), Status: backend.Status,
		Report: func(ctx context.Context) (report.Input, error) {
			return run.Site().Report(ctx, o.Store, thisVersion(), a.now().UTC())
		}})
	receivers.follow(ctx, &wg)
	res, err := run.Run(ctx)
	receivers.closeBus()
	end()
	wg.Wait()
	receivers.complain()
	if res.Run != "" {
		a.saveReport(context.WithoutCancel(ctx), run.Site(), o.Store)
	}
	return a.ended(ctx, run.Site(), o.Store, res, err)
}

// watchInterrupts drains at the first Ctrl-C and stops at the second, until the
// function that it returns is called. A terminal that hangs up is a Ctrl-C; output
// that nobody reads any more, such as that of a tee which the same Ctrl-C has ended,
// is no reason to die in the middle of a node.
func watchInterrupts(ctx context.Context, drain chan<- struct{}, say func(string)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	broken := make(chan os.Signal, 1) // never read: who asks for SIGPIPE gets an error from the write (os/signal)
	signal.Notify(broken, syscall.SIGPIPE)
	var wg sync.WaitGroup
	wg.Go(func() { handleSignals(ctx, signals, drain, cancel, say) })
	return ctx, func() {
		signal.Stop(signals)
		signal.Stop(broken)
		cancel(nil)
		wg.Wait()
	}
}

// handleSignals closes drain at the first signal and cancels at the second.
func handleSignals(ctx context.Context, signals <-chan os.Signal, drain chan<- struct{}, cancel context.CancelCauseFunc, say func(string)) {
	select {
	case <-ctx.Done():
		return
	case <-signals:
	}
	say("Running steps are let end and nothing new starts. Ctrl-C again stops at once; `ironrail apply` goes on later.")
	close(drain)
	select {
	case <-ctx.Done():
	case <-signals:
		say("Stopping at once.")
		cancel(errkind.New(errkind.Interrupted, "stopped by the operator"))
	}
}

// ended reports a run that has ended, well or not, and turns it into an exit
// code. err is about the run as a whole.
func (a *app) ended(ctx context.Context, site *provision.Site, store state.Reader, res apply.Result, err error) error {
	if res.Run == "" {
		return err
	}
	left, lerr := provision.StillUnmanaged(context.WithoutCancel(ctx), store, res.Unmanaged)
	if err = errors.Join(err, lerr); lerr == nil {
		res.Unmanaged = left
	}
	if a.json {
		a.printResult(res)
	} else {
		width, lines := screenOf(a.out)
		writeResult(a.out, res, status.Places(site.Inv), width, lines)
	}
	if err != nil {
		return err
	}
	return a.exitOf(res)
}

// exitOf is the exit of a run whose records are whole.
func (a *app) exitOf(res apply.Result) error {
	switch res.Outcome {
	case state.RunDone:
		if plan.HasUnmanagedTargets(res.Unmanaged) {
			return exit{code: exitChanges}
		}
		return nil
	case state.RunDrained, state.RunInterrupted:
		a.sayf("Stopped before the end. `ironrail apply` goes on from here.")
		return exit{code: exitInterrupted}
	}
	for _, n := range res.Nodes {
		if n.Outcome == apply.NodeDone {
			return exit{code: exitSomeFailed}
		}
	}
	return exit{code: exitFailed}
}
