package validate

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/burnin"
)

// HeatReport is how warm the GPUs of a role's nodes got, slot by slot.
type HeatReport struct {
	At      time.Time     `json:"at"`
	Role    string        `json:"role"`
	Nodes   int           `json:"nodes"`             // that were compared, those in service among them
	Members []string      `json:"members,omitempty"` // their names
	Slots   []burnin.Slot `json:"slots"`
	Notes   []string      `json:"notes,omitempty"`
}

// HeatFact is the last comparison of a role's burn-ins.
const HeatFact = fact.Name[HeatReport]("validate.heat")

// HeatID returns the step that compares how warm the nodes of a role got.
func HeatID(role string) plan.StepID { return plan.StepID(role + "/validate.heat") }

// heated returns the nodes of each role that are burnt in and compared, where there
// are enough of them for a median.
func heated(inv *inventory.Inventory) []group { return byRole(inv, burnin.Fewest, burns) }

// heatStep compares what the burn-ins of a role's nodes have seen. It asks no node:
// those in service are compared as they were when they were burnt in.
func heatStep(g group) plan.Step {
	title := fmt.Sprintf("compare how warm the GPUs of %d nodes got", len(g.nodes))
	return comparison(g, HeatID(g.set), title, HeatFact.Of(OfGroup(g.set)), BurnID)
}

// heat compares the burn-ins of a role, and blames what got too warm among the
// nodes that the step is about.
func (s *Stage) heat(ctx context.Context, run stage.Run, st plan.Step, g group) error {
	left := members(s.inv, run)
	about, _ := inFocus(st, left)
	mine, still := setOf(names(about)), setOf(names(left))
	byHardware, order := map[string][]burnin.Node{}, []string(nil)
	r := HeatReport{At: run.Clock().Now().UTC(), Role: g.set}
	for _, n := range g.nodes {
		if _, accepted := run.Fact(AcceptedFact.Of(subject.OfNode(n.Name))); !accepted && !still[n.Name] {
			continue
		}
		b, ok := read(run, BurnFact, subject.OfNode(n.Name))
		if !ok {
			continue
		}
		h := n.Hardware.Name
		if byHardware[h] == nil {
			order = append(order, h)
		}
		byHardware[h] = append(byHardware[h], burnin.Node{Name: n.Name, GPUs: b.GPUs, Names: b.Names})
	}
	for _, h := range order {
		r.Nodes += len(byHardware[h])
		if have := len(byHardware[h]); have < burnin.Fewest {
			r.Notes = append(r.Notes, fmt.Sprintf("%d burnt nodes of hardware %s are too few for a median: their temperatures were compared with nobody's", have, h))
			continue
		}
		for _, n := range byHardware[h] {
			r.Members = append(r.Members, n.Name)
		}
		slots, faults := burnin.Compare(byHardware[h])
		r.Slots = append(r.Slots, slots...)
		for _, f := range faults {
			if !mine[f.Node] {
				continue
			}
			err := run.Blame(ctx, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(f.Node), Part: f.Part}}, Cause: f.Cause, Evidence: f.Evidence, Action: f.Action})
			if err != nil {
				return err
			}
		}
	}
	for _, text := range r.Notes {
		run.Emit(event.Event{Type: event.Note, Text: text})
	}
	return learn(ctx, run, HeatFact, reportOf(st, fact.Name[Report](HeatFact), g.set), r)
}
