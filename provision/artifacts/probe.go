// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// needed is a source of packages that a build needs, and where the files name it.
type needed struct {
	source repo.Source
	what   string // for what
	at     hcl.Range
	arch   inventory.Arch // that packages are wanted for
	dnf    string         // release of the system, where dnf reads it; "": apt does
}

// ask asks one source.
func (a Artifacts) ask(ctx context.Context, n needed) error {
	if n.dnf != "" {
		return n.source.ProbeDnf(ctx, n.dnf)
	}
	return a.probe(n.source, ctx, string(n.arch))
}

// isSame reports whether two are one source.
func (n needed) isSame(o needed) bool {
	return o.source.URL == n.source.URL && o.source.Suite == n.source.Suite && o.arch == n.arch && string(o.source.Key) == string(n.source.Key)
}

// probeSources asks every source that the build of the named images needs, all of them
// when none is named, before anything is built. All that is wrong is one error, each with
// its place in the files. What is built and mirrored already needs none.
func (a Artifacts) probeSources(ctx context.Context, names []string, say func(string)) error {
	list, err := a.neededSources(names)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return nil
	}
	say(fmt.Sprintf("asking %d package repositories", len(list)))
	found := make([]error, len(list))
	var wg sync.WaitGroup
	for i, n := range list {
		wg.Go(func() {
			if err := a.ask(ctx, n); err != nil {
				found[i] = errkind.New(errkind.Of(err), "%s:%d:%d: %s: %s %s: %w", n.at.Filename, n.at.Start.Line, n.at.Start.Column, n.what, n.source.URL, n.source.Suite, err).
					Do(errkind.Action(err))
			}
		})
	}
	wg.Wait()
	return errors.Join(found...)
}

// neededSources are the sources of images that are not built, and of driver stacks whose
// packages are not mirrored, each once.
func (a Artifacts) neededSources(names []string) (list []needed, err error) {
	add := func(n needed) {
		if !slices.ContainsFunc(list, n.isSame) {
			list = append(list, n)
		}
	}
	for _, i := range a.inv.Images {
		r, err := a.recipe(i)
		if err != nil || len(names) > 0 && !slices.Contains(names, i.Name) {
			continue // what is not built is told elsewhere
		}
		digest, err := a.built(i)
		if err != nil {
			return nil, err
		}
		if digest == "" {
			for _, archive := range r.Archives() {
				add(needed{repo.Source{URL: archive.URL, Suite: archive.Suite}, "image " + i.Name, i.Place("release"), i.Arch, ""})
			}
		}
		for _, d := range a.driversOf(i) {
			if digest != "" && a.mirrored(d, i.Name, digest) {
				continue
			}
			for _, source := range stack.ListSources(d) {
				add(needed{source, "driver " + d.Name, stack.Place(d, "url"), i.Arch, dnfRelease(i)})
			}
		}
	}
	return list, nil
}

// driversOf are the driver stacks that this controller makes repositories of for the
// nodes of an image.
func (a Artifacts) driversOf(i *inventory.Image) (list []*inventory.Driver) {
	for _, n := range a.inv.Nodes {
		for _, d := range n.Drivers {
			if n.Image == i && served(d, i) && !slices.Contains(list, d) {
				list = append(list, d)
			}
		}
	}
	return list
}

// dnfRelease is the release of an image whose packages dnf installs; "" of another.
func dnfRelease(i *inventory.Image) string {
	if f, _ := distribution.FamilyOf(i); f.Manager == distribution.Dnf {
		return i.Release
	}
	return ""
}
