// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/gaps"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// rehearsalView carries what happens on virtual time to the screen, which lives
// in the real one.
type rehearsalView struct {
	app          *app
	verbose      bool
	bus          *event.Bus
	plan         chan planned           // at most one
	end          chan rehearsal.Summary // at most one, of a virtual rack that lingers
	all          []virtual.Endpoint
	summaryShown bool      // the summary stands on the screen
	gaps         gaps.List // what the files ask for and do not get
	places       ending.Places
	kept         string // the folder that the rehearsal is kept in; empty: nothing is
}

// planned is what is about to be rehearsed.
type planned struct {
	plan *plan.Plan
	time predict.Prediction
}

func newRehearsalView(a *app, verbose bool) *rehearsalView {
	return &rehearsalView{app: a, verbose: verbose, bus: event.NewBus(ringSize), plan: make(chan planned, 1), end: make(chan rehearsal.Summary, 1)}
}

// why is the command that knows the findings of a rehearsal that is kept.
func (r *rehearsalView) why() string {
	if r.kept == "" {
		return ""
	}
	return "ironrail -C " + r.kept + " why"
}

// planned takes the plan. It never waits: only one is ever sent.
func (r *rehearsalView) planned(p *plan.Plan, t predict.Prediction) { r.plan <- planned{p, t} }

// lingers takes the summary while the virtual rack stays up. It never waits.
func (r *rehearsalView) lingers(sum rehearsal.Summary) {
	r.end <- sum
	r.bus.Close()
}

// over ends the stream of events.
func (r *rehearsalView) over() {
	r.bus.Close()
	close(r.plan)
	close(r.end)
}

// watchStop says whether Ctrl-C was pressed, until the function that it returns is
// called. A second one ends the process at once.
func (r *rehearsalView) watchStop(ctx context.Context) (stop func() bool, end func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(ctx)
	var pressed atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-signals:
			signal.Stop(signals)
			r.bus.Emit(event.Event{Type: event.Note, Text: "Stopping the rehearsal. Ctrl-C again ends it at once."})
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

// follow shows the plan, then events until the rehearsal has ended, and then the
// summary where the virtual rack lingers.
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
	newView(r.app, p.plan).predicted(p.time).rehearsal(r.verbose).follow(r.bus.Subscribe(0))
	if sum, ok := <-r.end; ok {
		r.app.showSummary(sum, r)
		r.summaryShown = true
		r.app.sayf("")
		r.app.sayf("The virtual rack stays up until Ctrl-C. To look at it:")
		for _, l := range toolCommands(r.all) {
			r.app.sayf("  %s", l)
		}
	}
}

// planLine says in one line what is rehearsed.
func planLine(p *plan.Plan) string {
	nodes := map[string]bool{}
	for _, s := range p.Steps {
		if s.Subject.Kind == subject.Node {
			nodes[s.Subject.Name] = true
		}
	}
	return fmt.Sprintf("Rehearsing %d steps on %d %s of site %s.", len(p.Steps), len(nodes), pluralOf(len(nodes), "node", "nodes"), p.Site)
}

// showEndpoints says where the devices of a rehearsal on loopback answer.
func (r *rehearsalView) showEndpoints(all []virtual.Endpoint) {
	r.all = all
	r.app.showEndpoints(all)
}

// showEndpoints says where devices on loopback answer, as data or as talk.
func (a *app) showEndpoints(all []virtual.Endpoint) {
	if a.json {
		for _, d := range all {
			a.printLine(struct {
				Type string `json:"type"`
				virtual.Endpoint
			}{"door", d})
		}
		return
	}
	var p page
	listEndpoints(&p, all)
	if len(all) > 0 {
		p.linef("")
	}
	p.to(a.err)
}

// listEndpoints lists where devices answer: those that one logs in to in the same way
// together.
func listEndpoints(p *page, all []virtual.Endpoint) {
	var last virtual.Endpoint
	for _, d := range all {
		if d.Protocol != last.Protocol || d.User != last.User || d.Password != last.Password {
			p.linef("%s", describeLogin(d))
		}
		p.linef("  %-18s %-18s is at %s", d.Name, d.Site, d.Real)
		last = d
	}
}

// describeLogin says how to log in.
func describeLogin(d virtual.Endpoint) string {
	if d.User == "" {
		return fmt.Sprintf("%s, community %s (made up for this rehearsal):", d.Protocol, d.Password)
	}
	return fmt.Sprintf("%s, user %s, password %s (made up for this rehearsal):", d.Protocol, d.User, d.Password)
}

// toolCommands are commands that look at the first door of each protocol.
func toolCommands(doors []virtual.Endpoint) (lines []string) {
	reported := map[string]bool{}
	for _, d := range doors {
		if reported[d.Protocol] || !d.Real.IsValid() {
			continue
		}
		reported[d.Protocol] = true
		switch d.Protocol {
		case "redfish":
			lines = append(lines, fmt.Sprintf("curl -k -u %s:%s https://%s/redfish/v1/Systems", d.User, d.Password, d.Real))
		case "ipmi":
			lines = append(lines, fmt.Sprintf("ipmitool -I lanplus -H %s -p %d -U %s -P %s chassis status", d.Real.Addr(), d.Real.Port(), d.User, d.Password))
		case "snmp":
			lines = append(lines, fmt.Sprintf("snmpget -v2c -c %s %s 1.3.6.1.2.1.1.1.0", d.Password, d.Real))
		}
	}
	return lines
}

// phases counts, by the kind of step, how many nodes are through.
type phases map[string]*phase

// phase is one kind of step.
type phase struct{ all, done, failed, left int }

func newPhases(p *plan.Plan) phases {
	all := phases{}
	for _, s := range p.Steps {
		name := s.ID.Kind()
		if all[name] == nil {
			all[name] = &phase{}
		}
		all[name].all++
	}
	return all
}

// take counts an event and returns a line when it was the last of its kind.
func (all phases) take(e event.Event) string {
	p := all[plan.StepID(e.Step).Kind()]
	if p == nil {
		return ""
	}
	switch e.Type {
	case event.StepDone:
		p.done++
	case event.StepFailed:
		p.failed++
	case event.StepSkipped:
		p.left++
	default:
		return ""
	}
	if p.done+p.failed+p.left != p.all {
		return ""
	}
	line := fmt.Sprintf("%s %-22s %d of %d done", e.Time.Local().Format(time.TimeOnly), plan.StepID(e.Step).Kind(), p.done, p.all)
	if p.failed > 0 {
		line += fmt.Sprintf(", %d failed", p.failed)
	}
	if p.left > 0 {
		line += fmt.Sprintf(", %d left out", p.left)
	}
	return line
}
