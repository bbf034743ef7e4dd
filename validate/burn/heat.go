// SPDX-License-Identifier: Apache-2.0

package burn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/burnin/cohort"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
)

// HeatReport is how warm the GPUs of a role's nodes got, slot by slot.
type HeatReport struct {
	At      time.Time     `json:"at"`
	Role    string        `json:"role"`
	Nodes   int           `json:"nodes"`             // that were compared, those in service among them
	Members []string      `json:"members,omitempty"` // their names
	Slots   []cohort.Slot `json:"slots"`
	Notes   []string      `json:"notes,omitempty"`
}

// HeatFact is the last comparison of a role's burn-ins.
const HeatFact = fact.Name[HeatReport]("validate.heat")

// Heat compares how warm the GPUs of a role's nodes got.
var Heat = target.Check{Name: "heat", Scope: target.EachRole, Needs: []string{"burn"}, For: target.Node(isAsked), Fewest: cohort.Fewest, Plan: planHeat, Run: runHeat,
	Duration: target.Duration{Low: 10 * time.Millisecond, Mid: 100 * time.Millisecond, High: time.Second, Source: "estimate: it compares what the burn-ins have seen, and asks no node"},
	Report:   target.Section{Title: "Burn-ins compared", Read: readHeat},
	Docs:     target.Docs{Says: "how warm and how fast GPUs got, slot by slot, against a role's other nodes", Page: "burn-in.md"}}

func readHeat(f fact.Fact, _ string) (result.Report, error) {
	r, err := HeatFact.Get(f)
	return r.Report(), err
}

// planHeat compares what the burn-ins of a role's nodes have seen. It asks no node:
// those in service are compared as they were when they were burnt in.
func planHeat(r target.Request) plan.Step {
	title := fmt.Sprintf("compare how warm and how fast the GPUs of %d nodes got", len(r.Group.Nodes))
	return target.ComparisonStep(r, title, HeatFact.Of(result.OfGroup(r.Name)))
}

// runHeat compares the burn-ins of a role, and blames what got too warm or was slow among the
// nodes that the step is about.
func runHeat(ctx context.Context, j *target.Job) error {
	run, g := j.Run, *j.Group
	left := target.FrozenMembers(j.Inv, run)
	about, _ := target.InFocus(j.Step, left)
	mine, still := result.SetOf(target.NodeNames(about)), result.SetOf(target.NodeNames(left))
	byHardware, order := map[string][]cohort.Node{}, []string(nil)
	r := HeatReport{At: run.Clock().Now().UTC(), Role: g.Set}
	for _, n := range target.Compared(run, g, still) {
		b, ok := target.ReadFact(run, Fact, subject.OfNode(n.Name))
		if !ok {
			continue
		}
		h := n.Hardware.Name
		if byHardware[h] == nil {
			order = append(order, h)
		}
		byHardware[h] = append(byHardware[h], cohort.Node{Name: n.Name, GPUs: b.GPUs, Names: b.Names, Rates: b.Rates, Links: b.Links, LinksTold: b.LinksTold, Cooling: coolingOf(run, n)})
	}
	for _, h := range order {
		r.Nodes += len(byHardware[h])
		if have := len(byHardware[h]); have < cohort.Fewest {
			r.Notes = append(r.Notes, fmt.Sprintf("%d burnt nodes of hardware %s are too few for a median: their temperatures, clocks and GFLOPS were compared with nobody's", have, h))
			continue
		}
		for _, n := range byHardware[h] {
			r.Members = append(r.Members, n.Name)
		}
		slots, faults := cohort.CompareNodes(byHardware[h])
		r.Slots = append(r.Slots, slots...)
		for _, f := range faults {
			switch {
			case !mine[f.Node]:
				continue
			case f.Note:
				r.Notes = append(r.Notes, f.Node+": "+f.Cause)
				continue
			}
			if err := run.Blame(ctx, f.Finding(f.Node)); err != nil {
				return err
			}
		}
	}
	for _, text := range r.Notes {
		run.Emit(event.Event{Type: event.Note, Text: text})
	}
	return target.LearnFact(ctx, run, HeatFact, target.ReportOf(j.Step, fact.Name[result.Report](HeatFact), g.Set), r)
}

// coolingOf is the part of a node that its health checks found to cool it badly.
func coolingOf(run stage.Run, n *inventory.Node) string {
	r, _ := target.ReadFact(run, gate.Fact, subject.OfNode(n.Name))
	if i := slices.IndexFunc(r.Faults, host.Cools); i >= 0 {
		return r.Faults[i].Part
	}
	return ""
}

// explainHeat takes out the faults of GPUs that got too warm in a node whose cooling was found
// bad already, and says so of each: there is one cause.
func explainHeat(faults []judge.Fault, cooling string) (left []judge.Fault, notes []string) {
	for _, f := range faults {
		if cooling == "" || f.Action != burnin.DoHeat {
			left = append(left, f)
			continue
		}
		notes = append(notes, f.Cause+", as its node's "+cooling+" lets expect")
	}
	return left, notes
}

// Report is the comparison as the tests of groups have theirs.
func (r HeatReport) Report() result.Report {
	rep := result.Report{At: r.At, Members: r.Members, NotJudged: r.Notes}
	if len(r.Slots) == 0 {
		return rep
	}
	clocks := ""
	if slices.ContainsFunc(r.Slots, func(s cohort.Slot) bool { return s.Clock > 0 }) {
		clocks = fmt.Sprintf(", nor computed at less than %.0f%% of their clock", 100*cohort.Slower)
	}
	if slices.ContainsFunc(r.Slots, func(s cohort.Slot) bool { return s.Rate > 0 }) {
		clocks += fmt.Sprintf(", nor made less than %.0f%% of their GFLOPS", 100*cohort.Slower)
	}
	rep.Proves = fmt.Sprintf("No GPU got more than %.0f %s warmer than those in the same slot of the role's other nodes%s. It does not prove that the room stays as cool when all racks are loaded.", cohort.Beyond, degrees, clocks)
	for _, s := range r.Slots {
		rep.Results = append(rep.Results, result.WithVerdict(result.Result{Check: heatSpread, Part: "GPUs at " + s.Address, Measured: s.Most - s.Median, Unit: degrees, Limit: fmt.Sprintf("<= %.0f %s", cohort.Beyond, degrees),
			Rule: fmt.Sprintf("above the median of the slot, %.0f %s over %d nodes", s.Median, degrees, s.Nodes), Transport: "full load"}, s.Most-s.Median > cohort.Beyond, "one is too warm: the finding names it"))
		if s.Clock > 0 {
			rep.Results = append(rep.Results, result.WithVerdict(result.Result{Check: clockSpread, Part: "GPUs at " + s.Address, Measured: 100 * s.Slowest / s.Clock, Unit: "%", Limit: fmt.Sprintf(">= %.0f%%", 100*cohort.Slower),
				Rule: fmt.Sprintf("of the median of the slot, %.0f MHz over %d nodes", s.Clock, s.Nodes), Transport: "full load"}, s.Slowest < cohort.Slower*s.Clock, "one is slow: the finding names it"))
		}
		if s.Rate > 0 {
			rep.Results = append(rep.Results, result.WithVerdict(result.Result{Check: rateSpread, Part: "GPUs at " + s.Address, Measured: 100 * s.LeastRate / s.Rate, Unit: "%", Limit: fmt.Sprintf(">= %.0f%%", 100*cohort.Slower),
				Rule: fmt.Sprintf("of the median of the slot, %.0f GFLOPS over %d nodes", s.Rate, s.Nodes), Transport: "full load"}, s.LeastRate < cohort.Slower*s.Rate, "one is slow: the finding names it"))
		}
	}
	return rep
}
