// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// Drained says whether a node was taken out of service by a drain and not handed
// back since. The state calls such a node accepted all the while; without this
// the drain of one node would put the others back.
type Drained struct {
	Out bool      `json:"out"`
	At  time.Time `json:"at"`
}

// DrainedFact is learned by a node's drain and by the hand-over that ends it.
const DrainedFact = fact.Name[Drained]("handover.drained")

// leftParam is the parameter of a hand-over with the nodes that an earlier run
// drained and did not hand back: by name, since when.
const leftParam = "left"

// readDrained reads where a node stands between a drain and a hand-over.
func readDrained(v interface {
	Fact(fact.Key) (fact.Fact, bool)
}, node string) Drained {
	f, ok := v.Fact(DrainedFact.Of(subject.OfNode(node)))
	if !ok {
		return Drained{}
	}
	d, err := DrainedFact.Get(f)
	if err != nil {
		return Drained{}
	}
	return d
}

// listDrained lists the nodes that are out by an earlier run, since when.
func listDrained(v stage.View, nodes []*inventory.Node) map[string]time.Time {
	since := map[string]time.Time{}
	for _, n := range nodes {
		if v == nil {
			break
		}
		if d := readDrained(v, n.Name); d.Out {
			since[n.Name] = d.At
		}
	}
	return since
}

// endedDrains reports which nodes a hand-over ends the drains of: those that its plan
// drained and it waited for, and those that an earlier run left drained.
func endedDrains(run stage.Run, st plan.Step, nodes []*inventory.Node) map[string]bool {
	ends := map[string]bool{}
	needed := map[plan.StepID]bool{}
	for _, n := range st.Needs {
		needed[n.Step] = true
	}
	since := map[string]time.Time{}
	if v, ok := st.Params[leftParam]; ok {
		_ = json.Unmarshal(v.Literal, &since) // unreadable is none: they stay out, and the next plan says so
	}
	for _, n := range nodes {
		at, earlier := since[n.Name]
		ends[n.Name] = needed[DrainID(n.Name)] || earlier && readDrained(run, n.Name).At.Equal(at)
	}
	return ends
}

// markDrained remembers that nodes are out, or in again.
func markDrained(ctx context.Context, run stage.Run, out bool, nodes ...string) error {
	var fs []fact.Fact
	for _, n := range nodes {
		f, err := DrainedFact.New(subject.OfNode(n), Drained{Out: out, At: run.Clock().Now().UTC()}, "")
		if err != nil {
			return err
		}
		fs = append(fs, f)
	}
	if len(fs) == 0 {
		return nil
	}
	return run.Learn(ctx, fs...)
}
