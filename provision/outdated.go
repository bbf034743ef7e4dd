// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
)

// Outdated says why a plan that was begun, or saved, no longer fits the site's
// files: a step of it is gone, one of its inputs has changed, or a node that it
// erases is protected now. Empty: it still fits.
func (s *Site) Outdated(ctx context.Context, r state.Reader, p *plan.Plan) (string, error) {
	if err := s.Keys.CheckIdentity(ctx, r, s.Inv.Site.Name); err != nil {
		return "", err
	}
	s, err := s.For(ctx, r, p)
	if err != nil {
		return "", err
	}
	if n := s.protectedIn(p); n != "" {
		return n + " is protected now", nil
	}
	if was, is := p.Erase.Budget, s.Inv.Site.MaxErase; len(p.Erase.Nodes) > 0 && was != is {
		return fmt.Sprintf("max_erase %d -> %d", was, is), nil
	}
	prior, err := state.ReadPrior(ctx, r)
	if err != nil {
		return "", err
	}
	s = s.withOrphaned(ctx, r, s.over.Gone(prior))
	steps, diags, err := s.desired(prior)
	if err != nil {
		return "", err
	}
	if diags.HasErrors() {
		return "it has errors now", nil
	}
	now := make(map[plan.StepID]*plan.Step, len(steps))
	for i := range steps {
		now[steps[i].ID] = &steps[i]
	}
	for i := range p.Steps {
		was := &p.Steps[i]
		if was.Gate != nil {
			continue // of the rollout itself, which no stage asks for
		}
		is, ok := now[was.ID.Base()]
		if !ok {
			return fmt.Sprintf("%s is no longer wanted", was.ID), nil
		}
		if why := plan.DescribeChange(was, is); why != "" {
			return fmt.Sprintf("%s: %s", was.ID, why), nil
		}
	}
	return "", nil
}

// protectedIn is a node that a plan erases and that the site protects; empty: none.
func (s *Site) protectedIn(p *plan.Plan) string {
	for i := range p.Steps {
		if !p.Steps[i].May.Has(plan.Erase) {
			continue
		}
		if n, ok := s.Inv.Node(p.Steps[i].Subject.Name); ok && n.Protect {
			return n.Name
		}
	}
	return ""
}
