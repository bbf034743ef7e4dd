// SPDX-License-Identifier: Apache-2.0

// Package tools is the driver kind of what the tests of nodes run: Open MPI, perftest and
// fio of the distribution's archive, and programs that no archive has (the tests of NCCL
// or RCCL, nvbandwidth, STREAM), compiled once on the controller from source archives
// that the site names. Nodes install all of it from the controller's own repository.
package tools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// Name is the kind's name in the language.
const Name = "tools"

// Tools installs the programs. It implements driver.Kind and driver.Fitter, and is safe
// for concurrent use. Its zero value is not useful.
type Tools struct {
	recipes Recipes
	nodes   onnode.Nodes
	repos   manager.Repositories
}

// New returns the kind.
func New(recipes Recipes, nodes onnode.Nodes, repos manager.Repositories) *Tools {
	return &Tools{recipes, nodes, repos}
}

// Prepare implements driver.Kind.
func (k *Tools) Prepare(ctx context.Context, d *inventory.Driver, image string, say func(string)) error {
	if _, err := k.repos.Ensure(ctx, d, image, say); err != nil {
		return fmt.Errorf("repository of driver %s for image %s: %w", d.Name, image, err)
	}
	return nil
}

// Prepared implements driver.Kind.
func (k *Tools) Prepared(ctx context.Context, d *inventory.Driver, image string) (stage.Observation, error) {
	r, ok, err := k.repos.Find(ctx, d, image)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown}, err
	case !ok:
		return stage.Observation{State: stage.Differs, Evidence: "there is no whole repository yet"}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d packages in the repository", len(r.Packages))}, nil
}

// on is the package manager of a node.
func (k *Tools) on(run stage.Run, t driver.Target) (manager.Manager, error) {
	release, _ := distribution.OfImage(t.Node.Image)
	return manager.For(release, manager.On{Nodes: k.nodes, Run: run, Node: t.Node.Name, Source: t.Driver.Name})
}

// Install implements driver.Kind.
func (k *Tools) Install(ctx context.Context, run stage.Run, t driver.Target) error {
	say := func(text string) { run.Emit(event.Event{Type: event.StepProgress, Node: t.Node.Name, Text: text}) }
	r, err := k.repos.Ensure(ctx, t.Driver, t.Node.Image.Name, say)
	if err != nil {
		return fmt.Errorf("repository of driver %s for image %s: %w", t.Driver.Name, t.Node.Image.Name, err)
	}
	m, err := k.on(run, t)
	if err != nil {
		return err
	}
	if err := m.Configure(ctx, r); err != nil {
		return err
	}
	say("reading the package lists")
	if err := m.Refresh(ctx); err != nil {
		return err
	}
	list := Packages(t)
	say(fmt.Sprintf("installing %d packages", len(list)))
	return errkind.Begun(m.Install(ctx, r, list))
}

// Verify implements driver.Kind: the packages of the block are there in the versions of
// the repository, and what was compiled finds its libraries.
func (k *Tools) Verify(ctx context.Context, t driver.Target) (stage.Observation, driver.Installed, error) {
	none := stage.Observation{State: stage.Unknown}
	r, found, err := k.repos.Find(ctx, t.Driver, t.Node.Image.Name)
	if err != nil || !found {
		none.Evidence = "there is no whole repository to compare the node with"
		return none, driver.Installed{}, err
	}
	m, err := k.on(nil, t)
	if err != nil {
		return none, driver.Installed{}, err
	}
	have, err := m.Installed(ctx, slices.Sorted(maps.Keys(r.Packages)))
	if err != nil {
		return none, driver.Installed{}, err
	}
	in := driver.Installed{Packages: have}
	wrong := listDifferences(Packages(t), r.Packages, have)
	for _, p := range given(t.Driver) {
		lacks, err := k.lacking(ctx, t.Node.Name, "/usr/bin/"+p.runs)
		if err != nil {
			return none, in, err
		}
		wrong = append(wrong, lacks...)
	}
	if len(wrong) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: strings.Join(wrong, "; ")}, in, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d packages installed as in the repository", len(have))}, in, nil
}

// listDifferences lists packages of the block that are missing, or not of the version of
// the repository. What they need may come from another stack, such as DOCA, in another
// version; a package that the image has already is in no repository.
func listDifferences(asked []string, repo, have map[string]string) (out []string) {
	for _, p := range asked {
		switch {
		case repo[p] == "" || have[p] == repo[p]:
		case have[p] == "":
			out = append(out, p+" is not installed")
		default:
			out = append(out, fmt.Sprintf("%s is %s, not %s", p, have[p], repo[p]))
		}
	}
	return out
}

// lacking lists the shared libraries that a program does not find.
func (k *Tools) lacking(ctx context.Context, node, program string) (out []string, err error) {
	said, err := k.nodes.Run(ctx, node, onnode.Command{Argv: []string{"ldd", program}})
	if err != nil {
		return nil, fmt.Errorf("node %s: ldd: %w", node, err)
	}
	if said.Exit != 0 {
		return []string{program + " does not start: " + strings.TrimSpace(string(said.Stderr))}, nil
	}
	for line := range strings.Lines(string(said.Stdout)) {
		if library, _, ok := strings.Cut(strings.TrimSpace(line), " => not found"); ok {
			out = append(out, program+" does not find "+library)
		}
	}
	return out, nil
}
