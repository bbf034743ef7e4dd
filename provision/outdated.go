package provision

import (
	"context"
	"fmt"

	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/state"
)

// Outdated says why a plan that was begun no longer fits the site's files: a
// step of it is gone, or one of its inputs has changed. Empty: it still fits.
func (s *Site) Outdated(ctx context.Context, r state.Reader, p *plan.Plan) (string, error) {
	prior, err := state.Prior(ctx, r)
	if err != nil {
		return "", err
	}
	steps, diags, err := s.desired(prior)
	if err != nil {
		return "", err
	}
	if diags.HasErrors() {
		return "it has errors now", nil
	}
	now := map[plan.StepID]plan.Step{}
	for _, st := range steps {
		now[st.ID] = st
	}
	for _, was := range p.Steps {
		is, ok := now[was.ID]
		if !ok {
			return fmt.Sprintf("%s is no longer wanted", was.ID), nil
		}
		for _, in := range is.Inputs {
			for _, old := range was.Inputs {
				if old.Name == in.Name && old.Value != in.Value {
					return fmt.Sprintf("%s: %s %s -> %s", was.ID, in.Name, old.Value, in.Value), nil
				}
			}
		}
	}
	return "", nil
}
