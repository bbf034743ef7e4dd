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
		images = s.ImageSizes()
	}
	return predict.Estimate(p, predict.Options{Table: Durations(), Profiles: predict.Profiles(s.Inv), Images: images, Capacity: s.capacity(), Parallel: s.parallel(), History: past})
}

// ImageSizes is what the images of the store move; those that are not built are
// left out.
func (s *Site) ImageSizes() map[string]predict.Image {
	sizes := map[string]predict.Image{}
	for _, i := range s.Inv.Images {
		digest, err := s.digest(i)
		if err != nil || digest == "" || s.Images == nil {
			continue
		}
		m, err := s.Images.Manifest(digest)
		if err != nil {
			continue // a plan says it, and what to do
		}
		sizes[i.Name] = predict.ImageOf(m)
	}
	return sizes
}

// Past reads how long steps took in earlier runs of this site.
func (s *Site) Past(ctx context.Context, r state.Reader) (*predict.History, error) {
	return predict.ReadHistory(ctx, r, predict.Profiles(s.Inv), Durations())
}
