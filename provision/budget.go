// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/predict"
)

// setDeadlines gives every step its deadline: from the site's own past where it is long
// enough, else from the table.
func (s *Site) setDeadlines(ctx context.Context, r state.Reader, p *plan.Plan) error {
	if p.Empty() {
		return nil
	}
	profiles := predict.Profiles(s.Inv)
	past, err := predict.ReadRecent(ctx, r, profiles, Durations())
	if err != nil {
		return err
	}
	budgets := predict.Budgets(p, predict.Options{Table: Durations(), Profiles: profiles, Images: s.Artifacts.ImageSizes(), History: past})
	for i := range p.Steps {
		p.Steps[i].Deadline = budgets[i]
	}
	return nil
}
