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
	blocks, err := a.named(names)
	if err != nil {
		return nil, err
	}
	if err := a.probeSources(ctx, names, say); err != nil {
		return nil, err
	}
	var out []Built
	for _, i := range blocks {
		r, err := a.buildable(i)
		if err != nil {
			return out, err
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

// named are the image blocks of those names, all of them when none is named.
func (a Artifacts) named(names []string) (list []*inventory.Image, err error) {
	for _, name := range names {
		if _, err := a.image(name); err != nil {
			return nil, err
		}
	}
	for _, i := range a.inv.Images {
		if len(names) == 0 || slices.Contains(names, i.Name) {
			list = append(list, i)
		}
	}
	return list, nil
}

// buildable is the recipe of a block with what its build may read.
func (a Artifacts) buildable(i *inventory.Image) (images.Recipe, error) {
	r, err := a.recipe(i)
	if err != nil {
		return nil, err
	}
	if reader, ok := r.(images.SecretReader); ok {
		r = reader.WithSecrets(a.secrets)
	}
	return r, nil
}

// Fetch brings the sources of the named images, of all when none is named, to this
// controller, as far as an image is not built yet and its kind has a source that is
// fetched apart from the build. It returns the names of those that were fetched.
func (a Artifacts) Fetch(ctx context.Context, names []string, say func(string)) (fetched []string, err error) {
	blocks, err := a.named(names)
	if err != nil {
		return nil, err
	}
	for _, i := range blocks {
		r, err := a.buildable(i)
		if err != nil {
			return fetched, err
		}
		some, err := images.Fetch(ctx, r, a.Images, say)
		if err != nil {
			return fetched, err
		}
		if some {
			fetched = append(fetched, "image."+i.Name)
		}
	}
	return fetched, nil
}

// PruneDownloads removes what was fetched for images that the files no longer describe.
func (a Artifacts) PruneDownloads(ctx context.Context) error {
	if a.Images == nil {
		return nil
	}
	var keep []string
	for _, i := range a.inv.Images {
		keep = append(keep, Recipe(i))
	}
	unlock, err := a.Images.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return a.Images.KeepDownloads(keep)
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
