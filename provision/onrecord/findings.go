// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// Findings are the findings that nodes are quarantined by, those about the site, and, while
// nobody owns the state, those of all steps: each once.
func (s Site) Findings(ctx context.Context) (all []stage.Finding, err error) {
	site, owner, err := s.Standings(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	add := func(f stage.Finding) {
		if key := fmt.Sprintf("%q %q %q", f.Step, f.Cause, f.Suspects); !seen[key] {
			seen[key] = true
			all = append(all, f)
		}
	}
	for _, n := range site.Nodes {
		if q := n.Quarantine; q != nil {
			add(q.Finding)
			for _, f := range q.More {
				add(f)
			}
		}
	}
	for _, f := range site.Findings {
		add(f)
	}
	if owner != nil {
		return all, nil
	}
	err = s.WithState(ctx, func(r state.Reader) error { return eachStepFinding(ctx, r, add) })
	return all, err
}

// eachStepFinding hands on the findings of all steps, by their ids.
func eachStepFinding(ctx context.Context, r state.Reader, add func(stage.Finding)) error {
	steps, err := state.ReadSteps(ctx, r)
	for _, id := range slices.Sorted(maps.Keys(steps)) {
		s := steps[id]
		blamed := s.Blamed
		if len(blamed) == 0 && s.Finding != nil {
			blamed = []stage.Finding{*s.Finding}
		}
		for _, f := range blamed {
			f.Step = string(s.ID)
			add(f)
		}
	}
	return err
}
