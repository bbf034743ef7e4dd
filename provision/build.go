package provision

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/provision/errkind"
)

// Built is one thing that Build made, or found made.
type Built struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Build builds the named images of the site, all of them when none is named, and
// the package repositories that their nodes' driver stacks need. What is built
// already is left alone. say is told in short lines how far it is.
func (s *Site) Build(ctx context.Context, names []string, say func(string)) ([]Built, error) {
	for _, name := range names {
		if _, err := s.image(name); err != nil {
			return nil, err
		}
	}
	var out []Built
	for _, i := range s.Inv.Images {
		if len(names) > 0 && !slices.Contains(names, i.Name) {
			continue
		}
		if i.Kind != debian.Kind {
			return out, errkind.New(errkind.Unsupported, "image %q is of kind %q; this ironrail builds kind \"debian\"", i.Name, i.Kind)
		}
		digest, err := images.Ensure(ctx, recipe(i), s.Images, say)
		if err != nil {
			return out, err
		}
		out = append(out, Built{"image." + i.Name, digest})
	}
	return out, nil
}
