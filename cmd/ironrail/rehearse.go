package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/provision/rehearsal"
	"github.com/ironrail/ironrail/provision/virtual"
	"github.com/ironrail/ironrail/provision/virtual/fault"
)

// rehearseFlags are the wishes for a rehearsal.
type rehearseFlags struct {
	files    []string
	faults   []string
	seed     uint64
	loopback bool
	speed    float64
	linger   bool
}

func (a *app) rehearseCommand() *cobra.Command {
	var f rehearseFlags
	c := &cobra.Command{
		Use:   "rehearse",
		Short: "Run the whole site on a virtual rack, with faults",
		Long: `Plan and apply the site against simulated hardware made from its own files:
BMCs, firmware, disks, operating systems, PDUs, switches and cables, with the
faults that you plant. The plan, the stages and the protocols are the very ones
of ` + "`ironrail apply`" + `; only the hardware is not there. It needs no root, no
image, no package and no network, resolves no secret, and leaves the site's
state alone.

Time is virtual: hours of waiting pass in seconds. With --loopback it is not:
every BMC and PDU answers on its own 127.x address, so that other tools can be
pointed at it, and hardware is --speed times faster than in a room.

Exit code 0 when every planted fault was found and every other node accepted;
3 when something else happened to some nodes, 1 to all of them.

What it does not model stands in docs/rehearsal.md.

Kinds of faults:
` + faultHelp(),
		Example: "  ironrail rehearse\n  ironrail rehearse --faults monday.faults\n  ironrail rehearse --fault kind=bmc-dead,node=r01-u17 --fault kind=pdu-trip,pdu=r02/a,at=install.write\n  ironrail rehearse --json | jq 'select(.type == \"summary\")'",
		Args:    usage(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return a.rehearse(c.Context(), f) },
	}
	fs := c.Flags()
	fs.StringArrayVar(&f.files, "faults", nil, "plant the faults of this `FILE` (HCL: blocks fault \"KIND\" { node = ... })")
	fs.StringArrayVar(&f.faults, "fault", nil, "plant one fault: `kind=KIND,node=NODE[,at=STEP]`")
	fs.Uint64Var(&f.seed, "seed", 1, "`NUMBER` that all chance comes from; the same number gives the same verdicts")
	fs.BoolVar(&f.loopback, "loopback", false, "real sockets on 127.x and high ports, in wall time, for up to 128 nodes")
	fs.Float64Var(&f.speed, "speed", rehearsal.DefaultSpeed, "with --loopback: how many times faster than in a room hardware is")
	fs.BoolVar(&f.linger, "linger", false, "with --loopback: keep the virtual rack running until Ctrl-C")
	return c
}

// faultHelp lists the kinds of faults.
func faultHelp() string {
	var p page
	for _, r := range fault.Rows() {
		p.linef("  %-19s %s", r.Kind, strings.Join(append(slices.Clone(r.Needs), r.Takes...), ", "))
	}
	return p.String()
}

// rehearse runs the rehearsal beside its view.
func (a *app) rehearse(ctx context.Context, f rehearseFlags) error {
	inv, diags, files := a.loadInventory()
	if len(diags) > 0 {
		a.showDiagnostics(diags, files)
	}
	if diags.HasErrors() {
		return hasErrors(diags)
	}
	faults, err := a.plant(inv, f)
	if err != nil {
		return err
	}
	show := newRehearsalView(a)
	stop, end := show.heed(ctx)
	defer end()
	var wg sync.WaitGroup
	var sum rehearsal.Summary
	o := rehearsal.Options{Seed: f.seed, Faults: faults, Loopback: f.loopback, Speed: f.speed, Linger: f.linger, Version: version(),
		OnPlan: show.planned, OnEvent: show.bus.Emit, OnReady: show.doors, Interrupted: stop}
	wg.Go(func() {
		defer show.over()
		sum, err = rehearsal.Run(ctx, inv, o)
	})
	show.follow()
	wg.Wait()
	if sum.Result.Run == "" {
		return err
	}
	a.showSummary(sum)
	return errors.Join(err, a.exitOfRehearsal(sum))
}

// plant reads the faults of files and flags and compares them with the site.
func (a *app) plant(inv *inventory.Inventory, f rehearseFlags) ([]fault.Fault, error) {
	var all []fault.Fault
	for _, path := range f.files {
		faults, src, diags := fault.Read(path)
		if len(diags) > 0 {
			a.showHCL(diags, inventory.Files{path: src})
		}
		if diags.HasErrors() {
			return nil, fmt.Errorf("%s: the faults cannot be planted", path)
		}
		all = append(all, faults...)
	}
	for _, text := range f.faults {
		one, err := fault.Parse(text)
		if err != nil {
			return nil, exit{exitUsage, fmt.Errorf("--fault: %w", err)}
		}
		all = append(all, one)
	}
	return all, fault.Fits(inv, all)
}

// rehearsalView carries what happens on virtual time to the screen, which lives
// in the real one.
type rehearsalView struct {
	app  *app
	bus  *event.Bus
	plan chan planned // at most one
}

// planned is what is about to be rehearsed.
type planned struct {
	plan *plan.Plan
	time predict.Prediction
}

func newRehearsalView(a *app) *rehearsalView {
	return &rehearsalView{app: a, bus: event.NewBus(ringSize), plan: make(chan planned, 1)}
}

// planned takes the plan. It never waits: only one is ever sent.
func (r *rehearsalView) planned(p *plan.Plan, t predict.Prediction) { r.plan <- planned{p, t} }

// doors says where the devices of a rehearsal on loopback answer.
func (r *rehearsalView) doors(all []virtual.Door) {
	for _, d := range all {
		r.app.sayf("%-24s %-9s %-18s is at %s", d.Name, d.Protocol, d.Site, d.Real)
	}
}

// over ends the stream of events.
func (r *rehearsalView) over() {
	r.bus.Close()
	close(r.plan)
}

// heed says whether Ctrl-C was pressed, until the function that it returns is
// called.
func (r *rehearsalView) heed(ctx context.Context) (stop func() bool, end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	var pressed atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-signals:
			r.app.sayf("Stopping the rehearsal.")
			pressed.Store(true)
		case <-ctx.Done():
		}
	})
	return pressed.Load, func() {
		signal.Stop(signals)
		cancel()
		wg.Wait()
	}
}

// follow shows the plan, then events until the rehearsal has ended.
func (r *rehearsalView) follow() {
	p, ok := <-r.plan
	if !ok {
		return // it ended before there was one
	}
	if !r.app.json {
		r.app.sayf("%s", planLine(p.plan))
		for _, l := range p.time.Text() {
			r.app.sayf("%s", l)
		}
		r.app.sayf("")
	}
	view := newView(r.app, p.plan).rehearsal()
	view.follow(r.bus.Subscribe(0))
}

// planLine says in one line what is rehearsed.
func planLine(p *plan.Plan) string {
	nodes := map[string]bool{}
	for _, s := range p.Steps {
		if s.Subject.Kind == "node" {
			nodes[s.Subject.Name] = true
		}
	}
	return fmt.Sprintf("Rehearsing %d steps on %d %s of site %s.", len(p.Steps), len(nodes), plural(len(nodes), "node", "nodes"), p.Site)
}

// showSummary says what came of a rehearsal.
func (a *app) showSummary(sum rehearsal.Summary) {
	if a.json {
		a.printLine(struct {
			Type string `json:"type"`
			rehearsal.Summary
		}{"summary", sum})
		return
	}
	var p page
	p.linef("")
	p.linef("%d of %d nodes accepted, %d quarantined, %d waiting.", len(sum.Accepted), len(sum.Accepted)+len(sum.Quarantined)+len(sum.Waiting), len(sum.Quarantined), len(sum.Waiting))
	for _, q := range sum.Quarantined {
		p.linef("  %s  %s: %s", q.Node, q.Part, q.Cause)
		for _, e := range q.Evidence {
			p.linef("      seen: %s", e)
		}
		p.linef("      do:   %s", q.Action)
	}
	for _, f := range sum.Findings {
		p.linef("  %s: %s", f.Part, f.Cause)
		for _, e := range f.Evidence {
			p.linef("      seen: %s", e)
		}
		p.linef("      do:   %s", f.Action)
	}
	for _, w := range sum.Waiting {
		p.linef("  %s  waits: %s", w.Node, w.Cause)
	}
	for _, f := range sum.Faults {
		found := "found"
		if !f.Found {
			found = "NOT FOUND"
		}
		p.linef("  planted %s at %s: %s", f.Kind, f.Where, found)
	}
	p.linef("Rehearsed in %s, %s on the virtual rack; a real bring-up is expected to take %s. Peak memory %s.",
		short3(sum.WallTime), short3(sum.SimulatedTime), short3(sum.PredictedTime), size(int64(sum.PeakMemory)))
	p.to(a.out)
}

// short3 writes a duration as people say it.
func short3(s rehearsal.Seconds) string {
	d := time.Duration(s)
	if d < time.Minute {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// exitOfRehearsal is the exit of a rehearsal that came to its end.
func (a *app) exitOfRehearsal(sum rehearsal.Summary) error {
	switch {
	case sum.AsExpected():
		return nil
	case len(sum.Accepted) == 0:
		return exit{code: exitFailed}
	}
	return exit{code: exitSomeFailed}
}
