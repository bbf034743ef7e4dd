// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/predict"
)

// Predict says how long a plan is expected to take: from the site's own past
// where there is one (nil: none), else from the table. images overrules what the
// store knows of image sizes; nil: it does not.
func (s *Site) Predict(p *plan.Plan, past *predict.History, images map[string]predict.Image) (predict.Prediction, error) {
	if images == nil {
		images = s.Artifacts.ImageSizes()
	}
	return predict.Estimate(p, predict.Options{Table: Durations(), Profiles: predict.Profiles(s.Inv), Images: images, Capacity: s.capacity(), Parallel: s.parallel(), History: past})
}

// Past reads how long steps took in earlier runs of this site.
func (s *Site) Past(ctx context.Context, r state.Reader) (*predict.History, error) {
	return predict.ReadHistory(ctx, r, predict.Profiles(s.Inv), Durations())
}
