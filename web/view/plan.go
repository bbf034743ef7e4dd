// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
)

// Plan is what the active run does, or the last one did.
type Plan struct {
	ID        string              `json:"id"` // empty: there is none
	Run       string              `json:"run,omitempty"`
	Created   time.Time           `json:"created,omitzero"`
	Steps     int                 `json:"steps"`
	Erases    []PlanErase         `json:"erases"` // disks that are erased
	Budget    int                 `json:"max_erase"`
	Refusals  []plan.Refusal      `json:"refusals"`
	Warnings  []string            `json:"warnings"`
	Unmanaged []plan.Unmanaged    `json:"unmanaged"`
	Orphaned  []plan.OrphanedNode `json:"orphaned"`
	Rollouts  []plan.Waves        `json:"rollouts"`
	Kinds     []PlanKind          `json:"kinds"` // steps of one kind together, in the order of the plan
	Node      string              `json:"node,omitempty"`
	List      []PlanStep          `json:"list"` // steps of the node that is asked for; at most StepsPerPage
}

// PlanErase is what a step destroys.
type PlanErase struct {
	Step plan.StepID `json:"step"`
	Node string      `json:"node"`
	What string      `json:"what"`
}

// PlanKind is the steps of one kind, such as install.write.
type PlanKind struct {
	Kind     string        `json:"kind"`
	Stage    string        `json:"stage"`
	Title    string        `json:"title"` // of the first
	Actions  []plan.Action `json:"actions"`
	Steps    int           `json:"steps"`
	Of       []string      `json:"of"` // what it is done to
	Why      []string      `json:"why,omitempty"`
	Expected int64         `json:"expected_s"` // of one of them, the longest
	Erases   int           `json:"erases,omitempty"`
}

// PlanStep is one step.
type PlanStep struct {
	ID       plan.StepID `json:"id"`
	Action   plan.Action `json:"action"`
	Title    string      `json:"title"`
	Why      []string    `json:"why,omitempty"`
	Needs    []string    `json:"needs,omitempty"`
	Erases   string      `json:"erases,omitempty"`
	Expected int64       `json:"expected_s,omitempty"`
	Limit    int64       `json:"limit_s"`
	Decl     string      `json:"decl,omitempty"` // place in the site's files
}

// storedPlan is a plan with the run that has it.
type storedPlan struct {
	*plan.Plan
	run string
}

// Plan is the plan of the active run, or of the last one; node may be empty.
func (k *Keeper) Plan(ctx context.Context, node string) (Plan, error) {
	out := Plan{Erases: []PlanErase{}, Refusals: []plan.Refusal{}, Warnings: []string{}, Unmanaged: []plan.Unmanaged{}, Orphaned: []plan.OrphanedNode{}, Rollouts: []plan.Waves{}, Kinds: []PlanKind{}, List: []PlanStep{}, Node: node}
	s, err := k.Current(ctx)
	if err != nil {
		return out, err
	}
	p, err := k.plan.get(s, k.Now(), func() (p *storedPlan, err error) {
		err = k.withState(ctx, s, func(r state.Reader) error {
			p, err = readPlan(ctx, r)
			return err
		})
		return p, err
	})
	if err != nil || p == nil {
		return out, err
	}
	out.ID, out.Run, out.Created, out.Steps, out.Budget = p.ID, p.run, p.Created, len(p.Steps), p.Erase.Budget
	out.Refusals, out.Warnings, out.Unmanaged = append(out.Refusals, p.Refusals...), append(out.Warnings, p.Warnings...), append(out.Unmanaged, p.Unmanaged...)
	out.Orphaned, out.Rollouts = append(out.Orphaned, p.Orphaned...), append(out.Rollouts, p.Rollouts...)
	at := map[string]int{}
	for i := range p.Steps {
		st := &p.Steps[i]
		out.addToKind(st, at)
		if st.Erases != "" {
			out.Erases = append(out.Erases, PlanErase{st.ID, st.Subject.Name, st.Erases})
		}
		if node != "" && st.Subject.Name == node && len(out.List) < StepsPerPage {
			out.List = append(out.List, newPlanStep(st))
		}
	}
	return out, nil
}

// readPlan reads the plan of the run that was begun last; nil when there was none.
func readPlan(ctx context.Context, r state.Reader) (*storedPlan, error) {
	run, version, err := state.Get[state.Run](ctx, r, state.LastRun)
	if err != nil || version == state.Absent {
		return nil, err
	}
	p, version, err := state.Get[plan.Plan](ctx, r, state.PlanKey(run.Plan))
	if err != nil || version == state.Absent {
		return nil, err
	}
	return &storedPlan{&p, run.ID}, nil
}

// addToKind counts a step among those of its kind.
func (p *Plan) addToKind(st *plan.Step, at map[string]int) {
	kind := string(st.ID.Base())
	kind = kind[strings.LastIndexByte(kind, '/')+1:]
	i, known := at[kind]
	if !known {
		i = len(p.Kinds)
		at[kind] = i
		p.Kinds = append(p.Kinds, PlanKind{Kind: kind, Stage: st.Stage, Title: st.Title, Actions: []plan.Action{}, Of: []string{}})
	}
	k := &p.Kinds[i]
	k.Steps++
	k.Of = append(k.Of, st.Subject.Name)
	k.Expected = max(k.Expected, int64(st.Deadline.Expected/time.Second))
	if st.Erases != "" {
		k.Erases++
	}
	if !slices.Contains(k.Actions, st.Action) {
		k.Actions = append(k.Actions, st.Action)
	}
	for _, w := range st.Why {
		if len(k.Why) < 3 && !slices.Contains(k.Why, w) {
			k.Why = append(k.Why, w)
		}
	}
}

func newPlanStep(st *plan.Step) PlanStep {
	out := PlanStep{ID: st.ID, Action: st.Action, Title: st.Title, Why: st.Why, Erases: st.Erases, Expected: int64(st.Deadline.Expected / time.Second), Limit: int64(st.Deadline.Limit / time.Second)}
	for _, n := range st.Needs {
		out.Needs = append(out.Needs, cmp.Or(string(n.Step), string(n.On)))
	}
	if st.Decl.File != "" {
		out.Decl = formatDecl(st.Decl)
	}
	return out
}
