package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/apply"
	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/state"
)

// ringSize is how many events late listeners still get.
const ringSize = 20000

// applyFlags are the approvals of apply and rebuild.
type applyFlags struct {
	planFlags
	file    string
	approve bool
	erase   int
	fresh   bool
}

func (a *app) applyCommand() *cobra.Command {
	var f applyFlags
	c := &cobra.Command{
		Use:   "apply [PLAN]",
		Short: "Do what the plan says, with live progress",
		Long: `Show the plan and, once approved, do it. A run that was stopped or killed is
resumed: what was done is not done again, and what is in doubt is looked at first.

Ctrl-C once starts nothing new and lets running steps end; twice stops them.
Either way, run ` + "`ironrail apply`" + ` again to go on. From a second terminal,
` + "`status`, `why NODE`, `hold NODE`, `events --follow`" + ` answer meanwhile.

Erasing more nodes than the site's max_erase needs the number, typed or given
with --erase; --auto-approve does not replace it. Nodes in service are erased
only by --replace or rebuild.`,
		Example: "  ironrail apply\n  ironrail apply monday.plan\n  ironrail apply --auto-approve --erase 12",
		Args:    usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.file = args[0]
			}
			return a.apply(c.Context(), f)
		},
	}
	f.add(c)
	f.addApproval(c)
	c.Flags().BoolVar(&f.fresh, "new-plan", false, "do not resume an unfinished plan; make a new one")
	return c
}

// addApproval defines the flags that approve without a question.
func (f *applyFlags) addApproval(c *cobra.Command) {
	c.Flags().BoolVar(&f.approve, "auto-approve", false, "do not ask; the erase budget holds all the same")
	c.Flags().IntVar(&f.erase, "erase", 0, "approve erasing this many nodes, past the site's max_erase")
}

// apply owns the state from here to its end.
func (a *app) apply(ctx context.Context, f applyFlags) error {
	site, files, err := a.load()
	if err != nil {
		return err
	}
	owner, err := control.Acquire(a.stateDir(), "apply", time.Now())
	if errkind.Of(err) == errkind.Refused {
		return exit{exitOwned, err}
	}
	if err != nil {
		return err
	}
	defer owner.Release()
	store, err := state.Open(provision.StatePath(a.dir))
	if err != nil {
		return err
	}
	defer store.Close()
	fence, err := store.Claim(ctx, owner.String())
	if err != nil {
		return err
	}
	p, resume, err := a.choosePlan(ctx, site, files, store, f)
	if err != nil {
		return err
	}
	writePlan(a.talk(), p)
	if p.Empty() || len(p.Refusals) > 0 {
		return refused(p)
	}
	approved, err := a.approve(p, f, resume)
	if err != nil {
		return err
	}
	o := provision.RunOptions{Plan: p, Store: store, Fence: fence, Bus: event.NewBus(ringSize), Resume: resume, EraseApproved: approved}
	return a.execute(ctx, site, owner, o)
}

// talk is where the plan is shown while stdout may be a stream of JSON.
func (a *app) talk() interface{ Write([]byte) (int, error) } {
	if a.json {
		return a.err
	}
	return a.out
}

// choosePlan resumes what was interrupted, reads a saved plan, or makes one.
func (a *app) choosePlan(ctx context.Context, site *provision.Site, files inventory.Files, store state.Store, f applyFlags) (*plan.Plan, bool, error) {
	if f.file != "" {
		p, err := readPlan(f.file)
		if err != nil {
			return nil, false, err
		}
		return p, false, a.bindLineage(ctx, p, store)
	}
	if !f.fresh && len(f.replace) == 0 && len(f.targets) == 0 {
		p, run, err := state.Unfinished(ctx, store)
		if err != nil {
			return nil, false, err
		}
		if p != nil {
			why, err := site.Outdated(ctx, store, p)
			if err != nil {
				return nil, false, err
			}
			if why == "" {
				fmt.Fprintf(a.err, "Run %s was stopped before its end; its plan is resumed. Steps that are done are not repeated.\n", run.ID)
				return p, true, nil
			}
			fmt.Fprintf(a.err, "Run %s was stopped before its end, and the site has changed since (%s): a new plan is made.\n", run.ID, event.Escape(why))
		}
	}
	p, diags, err := site.Plan(ctx, store, provision.PlanOptions{Replace: f.replace, Targets: f.targets, Now: time.Now()})
	if len(diags) > 0 {
		a.showHCL(diags, files)
	}
	if err == nil && diags.HasErrors() {
		err = errors.New("the site cannot be planned as it stands")
	}
	return p, false, err
}

// bindLineage lets a plan that was made before there was any state be the first
// one of a state in which nothing was done.
func (a *app) bindLineage(ctx context.Context, p *plan.Plan, store state.Store) error {
	if p.Lineage != "" {
		return nil
	}
	_, version, err := state.Get[state.Run](ctx, store, state.LastRun)
	if err == nil && version == state.Absent {
		p.Lineage = store.Info().Lineage
	}
	return err
}

// refused ends an apply whose plan has nothing to do or may not be done.
func refused(p *plan.Plan) error {
	if len(p.Refusals) == 0 {
		return nil
	}
	return exit{exitFailed, errkind.New(errkind.Refused, "nothing was done: the plan has %d refused %s", len(p.Refusals), plural(len(p.Refusals), "step", "steps")).
		Do(p.Refusals[0].Action)}
}

// approve asks, unless flags have answered. The number of erased nodes past the
// budget is never implied.
func (a *app) approve(p *plan.Plan, f applyFlags, resume bool) (erase int, err error) {
	n := len(p.Erase.Nodes)
	if n > p.Erase.Budget && f.erase != n {
		if f.approve || f.erase != 0 {
			return 0, exit{exitFailed, errkind.New(errkind.Refused, "this plan erases %d nodes; the site allows %d at once", n, p.Erase.Budget).
				Do(fmt.Sprintf("Give the number if that is meant: --erase %d. --auto-approve does not stand for it.", n))}
		}
		return n, a.ask(fmt.Sprintf("erase %d nodes", n))
	}
	if f.approve || resume {
		return n, nil
	}
	return n, a.ask("yes")
}

// ask wants the operator to type a word.
func (a *app) ask(word string) error {
	if !isTerminal(a.in) {
		return exit{exitFailed, errkind.New(errkind.Refused, "this needs an answer, and standard input is not a terminal").Do("Add --auto-approve after reading the plan.")}
	}
	fmt.Fprintf(a.err, "\nType %q to do this: ", word)
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != word {
		return exit{exitFailed, errors.New("not approved; nothing was done")}
	}
	return nil
}

// execute runs an approved plan with its services, its control socket and its
// view, and says how it ended.
func (a *app) execute(ctx context.Context, site *provision.Site, owner *control.Owner, o provision.RunOptions) error {
	drain := make(chan struct{})
	o.Drain = drain
	ctx, stop := a.interrupts(ctx, drain)
	defer stop()
	run, err := site.Begin(ctx, o)
	if err != nil {
		return err
	}
	log := &event.Log{Dir: filepath.Join(a.stateDir(), "events")}
	socket, err := owner.Listen()
	if err != nil {
		return err
	}
	side, end := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := control.Serve(side, socket, run.Backend(o.Bus, owner.Identity), version()); err != nil {
			fmt.Fprintf(a.err, "warning: %s\n", event.Escape(err.Error()))
		}
	})
	wg.Go(func() { log.Follow(side, o.Bus.Subscribe(0)) })
	v := newView(a, site.Inv, o.Plan)
	wg.Go(func() { v.follow(o.Bus.Subscribe(0)) })
	res, err := run.Run(ctx)
	o.Bus.Close()
	end()
	wg.Wait()
	if err != nil {
		return err
	}
	return a.ended(ctx, site, o.Store, res)
}

// interrupts drains at the first Ctrl-C and stops at the second.
func (a *app) interrupts(ctx context.Context, drain chan<- struct{}) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			if n == 0 {
				fmt.Fprintln(a.err, "\nDraining: running steps are let end, nothing new starts. Ctrl-C again stops at once.")
				close(drain)
				continue
			}
			cancel(errkind.New(errkind.Interrupted, "stopped by the operator"))
			return
		}
	})
	return ctx, func() {
		cancel(nil)
		signal.Stop(signals)
		wg.Wait()
	}
}

// ended reports a finished run and turns it into an exit code.
func (a *app) ended(ctx context.Context, site *provision.Site, store state.Store, res apply.Result) error {
	ctx = context.WithoutCancel(ctx)
	if a.json {
		if err := a.printJSON(res); err != nil {
			return err
		}
	} else {
		writeResult(a.out, res)
	}
	a.saveReport(ctx, site, store)
	switch res.Outcome {
	case state.RunDone:
		return nil
	case state.RunDrained, state.RunInterrupted:
		fmt.Fprintln(a.err, "Stopped before the end. `ironrail apply` goes on from here.")
		return exit{code: exitInterrupted}
	}
	for _, n := range res.Nodes {
		if n.Outcome == apply.NodeDone {
			return exit{code: exitSomeFailed}
		}
	}
	return exit{code: exitFailed}
}
