// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/selection"
	"github.com/ironrail/ironrail/validate/target"
)

// CheckRetest refuses to test nodes again that were never accepted, are on hold, or that the site has no
// tests for: words name them as Select reads them. It names each of them.
func (s *Site) CheckRetest(ctx context.Context, r state.Reader, words []string) error {
	names, err := selection.ReadNodes(s.Inv, words)
	if err != nil {
		return err
	}
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return err
	}
	var never, held, without []string
	for _, name := range names {
		n, _ := s.Inv.Node(name)
		switch st := known[name]; {
		case !st.Accepted:
			never = append(never, name)
		case st.Hold != nil:
			held = append(held, name)
		case n.Validation == nil:
			without = append(without, name)
		}
	}
	const shown = 5
	switch {
	case len(never) > 0:
		return errkind.New(errkind.Refused, "not accepted, so that there is nothing to test again: %s", subject.Some(never, shown)).
			Do("`ironrail apply` brings nodes up and tests them; `ironrail why NODE` says where one stands.")
	case len(held) > 0:
		return errkind.New(errkind.Refused, "on hold: %s", subject.Some(held, shown)).Do("`ironrail release NODE` first.")
	case len(without) > 0:
		return errkind.New(errkind.Refused, "the site has no validation for %s", subject.Some(without, shown)).Do("Give their role a `validation`.")
	}
	return nil
}

// RefuseBeside refuses a plan of tests that changes something, since what the files ask for comes first, and
// one that loads nodes of which no scheduler is asked for jobs; unknown says that the operator
// knows that none runs.
func RefuseBeside(p *plan.Plan, unknown bool) error {
	drained, tested := map[string]bool{}, []string{}
	for i := range p.Steps {
		st := &p.Steps[i]
		switch {
		case st.Stage == handover.StageName && st.Only == plan.WhenDisturbed:
			drained[st.Subject.Name] = true
		case st.Accepts:
			tested = append(tested, st.Subject.Name)
		case st.Stage != handover.StageName && st.Only == "" && st.May&^plan.Effects(plan.Load) != 0:
			return errkind.New(errkind.Refused, "the site's files ask for more than a test: %s (%s)", st.ID, st.Title).
				Do("`ironrail apply` does that first, and tests what it changes.")
		}
	}
	var blind []string
	for _, n := range tested {
		if !drained[n] {
			blind = append(blind, n)
		}
	}
	if len(blind) > 0 && !unknown {
		return errkind.New(errkind.Refused, "whether a job runs is not known, and a test would disturb it: %s", fmt.Sprintf("no scheduler is asked about %s", subject.Some(blind, 5))).
			Do("Look yourself, and say so with --jobs-unknown; or give their role a `handover`.")
	}
	return nil
}

// Unmeasured says of each node that a plan tests again without any other which of its rails are not measured,
// and the command that would measure them.
func (s *Site) Unmeasured(ctx context.Context, r state.Reader, p *plan.Plan) (list []string, err error) {
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, st := range p.Steps {
		if !target.IsLone(st) {
			continue
		}
		n, ok := s.Inv.Node(st.Group.Focus[0].Name)
		if !ok {
			continue
		}
		text := target.UnmeasuredRails(s.Inv, n, func(m *inventory.Node) bool { return known[m.Name].Accepted && known[m.Name].Hold == nil })
		if text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list, nil
}
