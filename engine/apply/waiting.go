// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
)

// Waiting is what the next step of a node waits for, while none of its own runs.
type Waiting struct {
	Node  string      `json:"node"`
	Step  plan.StepID `json:"step"` // the first of its steps that is not settled
	Title string      `json:"title"`
	// Needs are the steps that it needs and that are not settled; none when only a
	// resource is lacking.
	Needs []plan.StepID `json:"needs,omitempty"`
	Gate  *plan.Gate    `json:"gate,omitempty"` // the first of Needs that is one

	Resource string   `json:"resource,omitempty"` // that is lacking
	InUse    string   `json:"in_use,omitempty"`   // how much of it, in words
	Holders  []Holder `json:"holders,omitempty"`  // of the resource, the longest first; at most mostHolders of HoldersAll

	HoldersAll int `json:"holders_all,omitempty"`

	// Behind are the steps that run, or wait for a resource, and that Needs wait for
	// in the end, the longest running first; at most mostHolders of BehindAll.
	Behind    []Holder `json:"behind,omitempty"`
	BehindAll int      `json:"behind_all,omitempty"`
}

// Holder is a step that others wait for.
type Holder struct {
	Step  plan.StepID `json:"step"`
	Node  string      `json:"node,omitempty"`
	Since time.Time   `json:"since,omitzero"` // zero: it has not started
	Text  string      `json:"text,omitempty"` // what it does
}

// mostHolders bounds the lists of a Waiting.
const mostHolders = 8

// Waiting says what the next step of a node waits for. False: a step of the node
// runs, all are settled, or the plan has none.
func (e *Executor) Waiting(node string) (Waiting, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var next *task
	for _, t := range e.graph.tasks {
		if !slices.Contains(nodesOf(t.step), node) || t.state.settled() {
			continue
		}
		if t.state == running {
			return Waiting{}, false
		}
		if next == nil {
			next = t
		}
	}
	if next == nil {
		return Waiting{}, false
	}
	w := e.waitOf(node, next)
	e.fillBehind(&w, next)
	return w, true
}

// Waits says in the same way what all nodes wait for, by name, without who is
// behind it.
func (e *Executor) Waits() map[string]Waiting {
	e.mu.Lock()
	defer e.mu.Unlock()
	busy, next := map[string]bool{}, map[string]*task{}
	for _, t := range e.graph.tasks {
		if t.state.settled() {
			continue
		}
		for _, n := range nodesOf(t.step) {
			if t.state == running {
				busy[n] = true
			} else if next[n] == nil {
				next[n] = t
			}
		}
	}
	out := make(map[string]Waiting, len(next))
	for n, t := range next {
		if !busy[n] {
			out[n] = e.waitOf(n, t)
		}
	}
	return out
}

// Budgets returns how long steps of the plan are expected to take.
func (e *Executor) Budgets(ids ...plan.StepID) map[plan.StepID]plan.Budget {
	out := make(map[plan.StepID]plan.Budget, len(ids))
	for _, id := range ids {
		if t := e.graph.byID[id]; t != nil {
			out[id] = t.step.Deadline // fixed
		}
	}
	return out
}

// waitOf looks at what t itself lacks. Called with e.mu held.
func (e *Executor) waitOf(node string, t *task) Waiting {
	w := Waiting{Node: node, Step: t.step.ID, Title: t.step.Title}
	for _, n := range t.step.Needs {
		on := e.graph.byID[n.Step]
		if on == nil || on.state.settled() {
			continue
		}
		w.Needs = append(w.Needs, n.Step)
		if w.Gate == nil {
			w.Gate = on.step.Gate
		}
	}
	if t.state == ready && t.lacks != "" {
		res := e.graph.resources
		w.Resource, w.InUse = t.lacks, res.units(t.lacks, res.used[t.lacks], res.limit[t.lacks])
	}
	return w
}

// fillBehind finds who holds what t lacks, and the steps that its needs wait for in
// the end. Called with e.mu held.
func (e *Executor) fillBehind(w *Waiting, t *task) {
	if w.Resource != "" {
		for _, h := range e.graph.tasks {
			if h.holds(w.Resource) {
				w.Holders = append(w.Holders, newHolder(h))
			}
		}
		w.HoldersAll, w.Holders = len(w.Holders), longestFirst(w.Holders)
	}
	seen := map[*task]bool{t: true}
	for work := []*task{t}; len(work) > 0; work = work[1:] {
		for _, n := range work[0].step.Needs {
			on := e.graph.byID[n.Step]
			switch {
			case on == nil || seen[on] || on.state.settled():
			case on.state == pending:
				work = append(work, on)
			default:
				w.Behind = append(w.Behind, newHolder(on))
			}
			seen[on] = true
		}
	}
	w.BehindAll = len(w.Behind)
	w.Behind = longestFirst(w.Behind)
}

func newHolder(t *task) Holder {
	return Holder{Step: t.step.ID, Node: nodeOf(t.step), Since: t.started, Text: t.step.Title}
}

// longestFirst sorts by start, those that have not started last, and cuts.
func longestFirst(hs []Holder) []Holder {
	slices.SortStableFunc(hs, func(a, b Holder) int {
		if a.Since.IsZero() != b.Since.IsZero() {
			return cmp.Compare(b.Since.Unix(), a.Since.Unix())
		}
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Step, b.Step))
	})
	return hs[:min(len(hs), mostHolders)]
}
