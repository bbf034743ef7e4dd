// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// checkPlan refuses a plan that must not be applied, before anything starts. It returns the run that this one
// resumes; the zero Run when it resumes none.
func checkPlan(ctx context.Context, c Config) (state.Run, error) {
	p := c.Plan
	if p.Format > plan.Format {
		return state.Run{}, errkind.New(errkind.Unsupported, "plan %s has format %d; this version knows %d", p.ID, p.Format, plan.Format).
			Do("Apply it with the ironrail that made it, or plan again.")
	}
	if l := c.Store.Info().Lineage; p.Lineage != l {
		return state.Run{}, errkind.New(errkind.Refused, "plan %s was made from another state (%s, not %s)", p.ID, p.Lineage, l).
			Do("Plan again from this state.")
	}
	if len(p.Refusals) > 0 {
		return state.Run{}, refusalError(p)
	}
	if err := checkErase(c); err != nil {
		return state.Run{}, err
	}
	if c.Resume {
		return checkResume(ctx, c)
	}
	return state.Run{}, checkVersions(ctx, c)
}

func refusalError(p *plan.Plan) error {
	var cs []string
	for _, r := range p.Refusals {
		cs = append(cs, r.Cause)
	}
	return errkind.New(errkind.Refused, "plan %s is refused: %s", p.ID, strings.Join(cs, "; ")).Do(p.Refusals[0].Action)
}

// checkErase counts what the steps erase, against the budget of the site: what the
// plan itself says of both is only shown.
func checkErase(c Config) error {
	erased := map[subject.ID]bool{}
	for _, s := range c.Plan.Steps {
		if !s.May.Has(plan.Erase) {
			continue
		}
		if s.Erases == "" {
			return fmt.Errorf("plan: step %s may erase, and does not say what is lost", s.ID)
		}
		erased[s.Subject] = true
	}
	if n := len(erased); n > c.MaxErase && n > c.EraseApproved {
		return errkind.New(errkind.Refused, "the plan erases %d nodes; the site allows %d at once and %d are approved", n, c.MaxErase, c.EraseApproved).
			Do(fmt.Sprintf("Approve it by saying \"erase %d nodes\", or plan fewer nodes with --target.", n))
	}
	return nil
}

// checkResume admits the plan of the last run only: another plan that was
// applied since would have moved what this one is about.
func checkResume(ctx context.Context, c Config) (state.Run, error) {
	last, _, err := state.Get[state.Run](ctx, c.Store, state.LastRun)
	if err != nil {
		return last, err
	}
	if last.Restored {
		return last, errkind.New(errkind.Refused, "plan %s cannot be resumed: the state was restored from a copy of before, and its nodes may have come further", c.Plan.ID).
			Do("Plan again.")
	}
	if last.Plan != c.Plan.ID {
		return last, errkind.New(errkind.Refused, "plan %s cannot be resumed: the last run applied plan %q", c.Plan.ID, last.Plan).
			Do("Plan again.")
	}
	return last, nil
}

// checkVersions refuses a plan when something that it read has moved.
func checkVersions(ctx context.Context, c Config) error {
	var moved []string
	for s, want := range c.Plan.Versions {
		o, _, err := c.Store.Object(ctx, state.SubjectKey(s))
		if err != nil {
			return err
		}
		if o.Version != want {
			moved = append(moved, s.String())
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return errkind.New(errkind.Refused, "plan %s is stale: %s changed since it was made", c.Plan.ID, listSome(moved)).
		Do("Plan again, look at what is new, and apply that.")
}
