// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// Plan is what the active run does, or the last one did, or what a saved plan would do.
type Plan struct {
	ID             string              `json:"id"`                // empty: there is none
	File           string              `json:"file,omitempty"`    // of a saved plan
	Problem        string              `json:"problem,omitempty"` // why the seal of a saved plan is not valid
	Review         string              `json:"review,omitempty"`  // "waits": it is not approved yet; "approved": its run begins
	Digest         string              `json:"digest,omitempty"`  // as the terminal shows it before the approval; not of saved plans
	Expected       []string            `json:"expected"`          // how long it may take, of a plan under review
	Saved          []string            `json:"saved"`             // the plans in the site's folder; at most MostSaved
	Run            string              `json:"run,omitempty"`
	Created        time.Time           `json:"created,omitzero"`
	Steps          int                 `json:"steps"`
	Erases         []PlanErase         `json:"erases"` // disks that are erased
	Budget         int                 `json:"max_erase"`
	Power          []string            `json:"power"` // names of what may be switched off or on, or reset; as in the plan
	Refusals       []plan.Refusal      `json:"refusals"`
	Warnings       []string            `json:"warnings"`
	Unmanaged      []plan.Unmanaged    `json:"unmanaged"`
	Orphaned       []plan.OrphanedNode `json:"orphaned"`
	Rollouts       []plan.Waves        `json:"rollouts"`
	Gates          []PlanGate          `json:"gates"`
	Treatments     []PlanTreatment     `json:"treatments"` // nodes that are treated alike, with their steps; at most MostTreatments
	MoreTreatments int                 `json:"more_treatments,omitempty"`
	Kinds          []PlanKind          `json:"kinds"` // steps of one kind together, in the order of the plan
	Node           string              `json:"node,omitempty"`
	List           []PlanStep          `json:"list"` // steps of the node that is asked for; at most StepsPerPage
}

// PlanErase is what a step destroys.
type PlanErase struct {
	Step   plan.StepID `json:"step"`
	Node   string      `json:"node"`
	Serial string      `json:"serial,omitempty"` // of the node's chassis, as the files have it
	What   string      `json:"what"`             // the disks, by serial number where it is known
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
	run     string
	file    string  // of a saved one, with its size and time
	review  *Review // of one under review
	problem string
}

// MostSaved bounds the saved plans that are listed.
const MostSaved = 50

// PlanRequest says which plan is shown.
type PlanRequest struct {
	Node string // whose steps are shown as well; may be empty
	File string // a saved plan in the site's folder; empty: that of the run
}

// Plan is the plan that waits for its approval, or of the active run, or of the last one, or a saved one.
func (k *Keeper) Plan(ctx context.Context, q PlanRequest) (Plan, error) {
	out := Plan{Saved: k.savedPlans(), Node: q.Node, Erases: []PlanErase{}, Expected: []string{}, Power: []string{}, Refusals: []plan.Refusal{}, Warnings: []string{}, Unmanaged: []plan.Unmanaged{}, Orphaned: []plan.OrphanedNode{},
		Rollouts: []plan.Waves{}, Gates: []PlanGate{}, Treatments: []PlanTreatment{}, Kinds: []PlanKind{}, List: []PlanStep{}}
	s, err := k.Current(ctx)
	if err != nil {
		return out, err
	}
	var p *storedPlan
	if q.File != "" {
		p, err = k.savedPlan(s, q.File, out.Saved)
	} else {
		p, err = k.choosePlan(ctx, s)
	}
	if err != nil || p == nil {
		return out, err
	}
	out.File, out.Problem = q.File, p.problem
	out.show(s, p)
	return out, nil
}

// choosePlan is the plan under review, or that of the run that was begun last.
func (k *Keeper) choosePlan(ctx context.Context, s *Snapshot) (*storedPlan, error) {
	if s.review != nil && !s.review.Approved {
		return s.reviewed(nil), nil
	}
	run, err := k.plan.get(s, k.Now(), func() (p *storedPlan, err error) {
		err = k.withState(ctx, s, func(r state.Reader) error {
			p, err = readPlan(ctx, r)
			return err
		})
		return p, err
	})
	if p := s.reviewed(run); p != nil {
		return p, nil // its run cannot be read yet
	}
	return run, err
}

// show fills in what a plan does.
func (out *Plan) show(s *Snapshot, p *storedPlan) {
	out.ID, out.Run, out.Created, out.Steps, out.Budget = p.ID, p.run, p.Created, len(p.Steps), p.Erase.Budget
	out.Refusals, out.Warnings, out.Unmanaged = append(out.Refusals, p.Refusals...), append(out.Warnings, p.Warnings...), append(out.Unmanaged, p.Unmanaged...)
	out.Orphaned, out.Rollouts = append(out.Orphaned, p.Orphaned...), append(out.Rollouts, p.Rollouts...)
	if r := p.review; r != nil {
		out.Review, out.Expected = map[bool]string{false: "waits", true: "approved"}[r.Approved], append(out.Expected, r.Expected...)
	}
	if out.File == "" {
		out.Digest = p.Sum
	}
	at, powered := map[string]int{}, map[subject.ID]bool{}
	for i := range p.Steps {
		st := &p.Steps[i]
		out.addToKind(st, at)
		if st.May.Has(plan.Power) && !powered[st.Subject] {
			powered[st.Subject] = true
			out.Power = append(out.Power, st.Subject.Name)
		}
		if st.Erases != "" {
			e := PlanErase{Step: st.ID, Node: st.Subject.Name, What: st.Erases}
			if n, ok := s.Inv.Node(e.Node); ok {
				e.Serial = n.Serial
			}
			out.Erases = append(out.Erases, e)
		}
		if out.Node != "" && st.Subject.Name == out.Node && len(out.List) < StepsPerPage {
			out.List = append(out.List, newPlanStep(st))
		}
	}
	out.addTreatments(p.Plan)
}

// readPlan reads the plan of the run that was begun last; nil when there was none.
func readPlan(ctx context.Context, r state.Reader) (*storedPlan, error) {
	run, version, err := state.Get[state.Run](ctx, r, state.LastRun)
	if err != nil || version == state.Absent {
		return nil, err
	}
	p, err := state.ReadPlan(ctx, r, run.Plan)
	if err != nil || p == nil {
		return nil, err
	}
	return &storedPlan{Plan: p, run: run.ID}, nil
}

// savedPlans lists the saved plans in the site's folder, by name.
func (k *Keeper) savedPlans() []string {
	out := []string{}
	list, _ := os.ReadDir(k.Dir) // a folder that cannot be read has none
	for _, e := range list {
		if filepath.Ext(e.Name()) == ".plan" && e.Type().IsRegular() && len(out) < MostSaved {
			out = append(out, e.Name())
		}
	}
	return out
}

// savedPlan reads a plan of the list; the one that was read last is kept.
func (k *Keeper) savedPlan(s *Snapshot, name string, list []string) (*storedPlan, error) {
	if !slices.Contains(list, name) {
		return nil, errkind.New(errkind.NotFound, "%q is no saved plan in the site's folder", name).Do("`ironrail plan --out NAME.plan` saves one.")
	}
	path := filepath.Join(k.Dir, name)
	print := name + " " + fileOf(path)
	k.saved.Lock()
	defer k.saved.Unlock()
	if k.saved.plan != nil && k.saved.plan.file == print {
		return k.saved.plan, nil
	}
	site, err := k.Open(s.Inv)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, problem, err := plan.Open(f, site.Keys.Plan)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "%s is not a saved plan: %w", name, err).Do("Plan again with `ironrail plan --out`.")
	}
	k.saved.plan = &storedPlan{Plan: p, file: print, problem: problem}
	return k.saved.plan, nil
}

// addToKind counts a step among those of its kind.
func (p *Plan) addToKind(st *plan.Step, at map[string]int) {
	kind := st.ID.Kind()
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
