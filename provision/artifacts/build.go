// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"fmt"
	"slices"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/inventory"
)

// Built is one thing that Build made, or found made.
type Built struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // of an image; for a repository, its size in words
}

// Build builds the named images of the site, all of them when none is named, and
// the package repositories that their nodes' driver stacks need. What is built
// already is left alone; the repositories of the rest are asked first. say is told in short lines how far it is.
func (a Artifacts) Build(ctx context.Context, names []string, say func(string)) ([]Built, error) {
	for _, name := range names {
		if _, err := a.image(name); err != nil {
			return nil, err
		}
	}
	if err := a.probeSources(ctx, names, say); err != nil {
		return nil, err
	}
	var out []Built
	for _, i := range a.inv.Images {
		if len(names) > 0 && !slices.Contains(names, i.Name) {
			continue
		}
		r, err := a.recipe(i)
		if err != nil {
			return out, err
		}
		if reader, ok := r.(images.SecretReader); ok {
			r = reader.WithSecrets(a.secrets)
		}
		digest, err := images.Ensure(ctx, r, a.Images, say)
		if err != nil {
			return out, err
		}
		out = append(out, Built{"image." + i.Name, digest})
		repos, err := a.buildRepos(ctx, i, say)
		if out = append(out, repos...); err != nil {
			return out, err
		}
	}
	return out, nil
}

// buildRepos builds what the driver stacks of an image's nodes install from.
func (a Artifacts) buildRepos(ctx context.Context, i *inventory.Image, say func(string)) (out []Built, err error) {
	done := map[string]bool{}
	for _, n := range a.inv.Nodes {
		for _, d := range n.Drivers {
			if n.Image != i || done[d.Name] || !served(d, i) {
				continue
			}
			done[d.Name] = true
			r, err := a.Repositories("").Ensure(ctx, d, i.Name, say)
			if err != nil {
				return out, err
			}
			out = append(out, Built{"driver." + d.Name + " for image." + i.Name, fmt.Sprintf("%d packages", len(r.Packages))})
		}
	}
	return out, nil
}
