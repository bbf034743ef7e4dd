// SPDX-License-Identifier: Apache-2.0

// Package predict says how long a plan will take before anybody runs it: the
// expected wall time, the critical path, and what the plan waits for most. It
// schedules the plan's steps as the engine will (needs, resources, tie-breaks) on
// durations that come from a table with sources, or from the site's own past.
//
// A prediction takes for granted that every step ends well: no retry, no fault,
// no node that is left out. It is pure: no I/O, no clock, the same answer twice.
package predict

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Options are what a prediction knows beside the plan. The zero value works: it
// gives the figures of the table for an unknown kind of node.
type Options struct {
	Profiles map[string]Profile // by node; see Profiles
	Images   map[string]Image   // by the image's name; without its sizes a write takes what the table says for a small one
	Capacity map[string]int     // as apply.Config.Capacity; a resource without an entry is not limited
	Parallel int                // steps at once; zero: 512, as in the engine
	Uplink   unit.BitRate       // of the controller on the boot network; zero: that of the slowest boot NIC, if any is known
	History  *History           // the site's own past; nil: none
	Table    []Row              // nil: Table
}

// Image is how much an image moves.
type Image struct {
	Wire unit.Bytes `json:"wire"` // compressed, sent to each node
	Disk unit.Bytes `json:"disk"` // plain, without the chunks of zeroes; written, then read back
}

// Prediction is how a plan is expected to go. Times count from the start of the
// run. Low and High are the runs in which all durations are at the fast or the
// slow end of what is known; they say nothing of faults.
type Prediction struct {
	Low        time.Duration            `json:"low_ns"`
	Expected   time.Duration            `json:"expected_ns"`
	High       time.Duration            `json:"high_ns"`
	Steps      int                      `json:"steps"`
	Stages     []Stage                  `json:"stages"`          // in the order in which they begin
	Kinds      []Kind                   `json:"kinds"`           // the durations that were used
	Path       []Hop                    `json:"path"`            // the critical path, from the first step to the last
	Bottleneck Bottleneck               `json:"bottleneck"`      // the limit that costs most
	Nodes      map[string]time.Duration `json:"nodes_ns"`        // when the last step of a node ends
	Uplink     unit.BitRate             `json:"uplink,omitzero"` // that image streams shared; zero: not limited
	Notes      []string                 `json:"notes,omitempty"` // what was assumed
}

// Stage is one stage of the plan.
type Stage struct {
	Name   string        `json:"name"`
	Steps  int           `json:"steps"`
	Start  time.Duration `json:"start_ns"`  // of its first step
	End    time.Duration `json:"end_ns"`    // of its last step
	Active time.Duration `json:"active_ns"` // during which at least one of its steps runs
	Busy   time.Duration `json:"busy_ns"`   // of all its steps, added up
	Each   time.Duration `json:"each_ns"`   // of the steps of one node, group or site thing, on average
	Source string        `json:"source"`    // table, history of 3 runs, or both
}

// Kind is the duration of steps that are alike.
type Kind struct {
	Kind     string        `json:"kind"`               // as KindOf gives it
	Hardware string        `json:"hardware,omitempty"` // names of hardware blocks, joined by +
	Stage    string        `json:"stage"`
	Steps    int           `json:"steps"`
	Low      time.Duration `json:"low_ns"`      // of the median step, on a fast site
	Expected time.Duration `json:"expected_ns"` // of the median step
	High     time.Duration `json:"high_ns"`     // of the median step, on a slow site
	Source   string        `json:"source"`      // table, plan, or history of 3 runs
	Cites    string        `json:"cites,omitempty"`
	Runs     int           `json:"runs,omitempty"` // of the history
}

// Hop is one step of the critical path.
type Hop struct {
	Step  plan.StepID   `json:"step"`
	Stage string        `json:"stage"`
	Kind  string        `json:"kind"`
	Start time.Duration `json:"start_ns"`
	Took  time.Duration `json:"took_ns"` // until the next hop starts: its end, or its release of what the next one waited for
	For   string        `json:"for"`     // what it waited for last: "start", "need" or the name of a resource
}

// Bottleneck is the limit that costs most.
type Bottleneck struct {
	Resource string        `json:"resource,omitempty"` // as in Options.Capacity, uplink or steps; empty: no limit costs much
	Text     string        `json:"text"`
	Without  time.Duration `json:"without_ns,omitempty"` // expected wall time if there were no such limit; zero: no resource
}

// Estimate predicts how p will go. An error is a defect of the plan: an unknown
// need, a cycle, or a claim that no capacity can meet.
func Estimate(p *plan.Plan, o Options) (Prediction, error) {
	if o.Parallel <= 0 {
		o.Parallel = 512
	}
	if o.Table == nil {
		o.Table = Table
	}
	e := &estimate{plan: p, opt: o}
	e.findUplink()
	g, err := newGraph(p, o)
	if err != nil {
		return Prediction{}, err
	}
	e.graph = g
	e.measure()
	mid := g.run(e.costs(0), e.uplink, "")
	if mid.stuck != "" {
		return Prediction{}, fmt.Errorf("predict: step %s never starts: steps need each other", mid.stuck)
	}
	low, high := g.run(e.costs(-1), e.uplink, ""), g.run(e.costs(1), e.uplink, "")
	out := Prediction{Expected: toDuration(mid.wall), Low: toDuration(min(low.wall, mid.wall)), High: toDuration(max(high.wall, mid.wall)),
		Steps: len(p.Steps), Uplink: e.uplink, Notes: e.notes, Kinds: e.kinds(), Nodes: map[string]time.Duration{}}
	e.stages(mid, &out)
	out.Path = e.path(mid)
	out.Bottleneck = e.bottleneck(mid, out.Path)
	return out, nil
}

// estimate is the work of one Estimate.
type estimate struct {
	plan    *plan.Plan
	opt     Options
	uplink  unit.BitRate
	graph   *graph
	classes []class // of steps that are alike
	of      []int   // class of each step
	nth     []int   // of each step among its class
	notes   []string
}

// findUplink decides what image streams share.
func (e *estimate) findUplink() {
	e.uplink = e.opt.Uplink
	if e.uplink > 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(e.opt.Profiles)) {
		if nic := e.opt.Profiles[name].NIC; nic > 0 && (e.uplink == 0 || nic < e.uplink) {
			e.uplink = nic
		}
	}
	if e.uplink > 0 {
		e.notes = append(e.notes, fmt.Sprintf("the controller's uplink is not known: taken as %s, that of the slowest boot NIC", e.uplink))
		return
	}
	e.notes = append(e.notes, "neither the controller's uplink nor the speed of a boot NIC is known: images are taken to share no link")
}

// toDuration turns seconds into a duration.
func toDuration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond)
}
