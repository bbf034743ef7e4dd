// SPDX-License-Identifier: Apache-2.0

// Package inbox is the driver kind of the distribution's own packages, such as
// its RDMA stack. Nodes install them with apt or dnf from a signed repository that the
// controller serves, and from nowhere else: no node needs the Internet.
package inbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// Name is the kind's name in the language.
const Name = "inbox"

// Inbox installs distribution packages. Its zero value is not useful.
type Inbox struct {
	nodes onnode.Nodes
	repos manager.Repositories
}

// New returns the kind.
func New(nodes onnode.Nodes, repos manager.Repositories) *Inbox {
	return &Inbox{nodes: nodes, repos: repos}
}

// Check implements driver.Kind.
func (b *Inbox) Check(d *inventory.Driver) hcl.Diagnostics {
	var diags hcl.Diagnostics
	add := func(summary, detail string) {
		diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: detail, Subject: d.Place("packages").Ptr()})
	}
	if len(d.Packages) == 0 {
		add("Driver has no packages", fmt.Sprintf("Driver %q of kind \"inbox\" installs what its packages attribute lists, such as [\"rdma-core\", \"ibverbs-utils\"].", d.Name))
	}
	for _, p := range d.Packages {
		if !packageName(p) && !repodata.IsName(p) {
			add("Package name is not possible", fmt.Sprintf("Driver %q lists %q. A package name has letters, digits, and the signs + - . _ only.", d.Name, p))
		}
	}
	return diags
}

// packageName follows Debian Policy 5.6.1: at least two characters, the first a
// letter or digit. Names go into command lines, so nothing else may pass.
func packageName(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || !strings.ContainsRune("+-.", c)) {
			return false
		}
	}
	return len(s) >= 2
}

// Prepare implements driver.Kind.
func (b *Inbox) Prepare(ctx context.Context, d *inventory.Driver, image string, say func(string)) error {
	r, err := b.repos.Ensure(ctx, d, image, say)
	if err != nil {
		return fmt.Errorf("repository of driver %s for image %s: %w", d.Name, image, err)
	}
	for _, p := range d.Packages {
		if r.Packages[p] == "" {
			return errkind.New(errkind.NotFound, "repository of driver %s for image %s has no package %s", d.Name, image, p).
				Do("Check the name of the package, or whether the image already holds it.")
		}
	}
	return nil
}

// Prepared implements driver.Kind.
func (b *Inbox) Prepared(ctx context.Context, d *inventory.Driver, image string) (stage.Observation, error) {
	r, ok, err := b.repos.Find(ctx, d, image)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	if !ok {
		return stage.Observation{State: stage.Differs, Evidence: "there is no whole repository yet"}, nil
	}
	for _, p := range d.Packages {
		if r.Packages[p] == "" {
			return stage.Observation{State: stage.Differs, Evidence: "the repository has no package " + p}, nil
		}
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("%d packages in the repository", len(r.Packages))}, nil
}

// on is the package manager of a node. That of a system that nobody names is apt.
func (b *Inbox) on(run stage.Run, t driver.Target) (manager.Manager, error) {
	release, ok := distribution.OfImage(t.Node.Image)
	if !ok {
		release.Family = distribution.Debian
	}
	return manager.For(release, manager.On{Nodes: b.nodes, Run: run, Node: t.Node.Name, Source: t.Driver.Name})
}

// Install implements driver.Kind: key, source, update, install, modules.
func (b *Inbox) Install(ctx context.Context, run stage.Run, t driver.Target) error {
	progress := func(text string) {
		run.Emit(event.Event{Type: event.StepProgress, Node: t.Node.Name, Text: text})
	}
	repo, err := b.repos.Ensure(ctx, t.Driver, t.Node.Image.Name, progress)
	if err != nil {
		return fmt.Errorf("repository of driver %s for image %s: %w", t.Driver.Name, t.Node.Image.Name, err)
	}
	a, err := b.on(run, t)
	if err != nil {
		return err
	}
	if err := a.Configure(ctx, repo); err != nil {
		return err
	}
	progress("reading the package lists")
	if err := a.Refresh(ctx); err != nil {
		return err
	}
	progress(fmt.Sprintf("installing %d packages", len(t.Driver.Packages)))
	if err := a.Install(ctx, repo, slices.Sorted(slices.Values(t.Driver.Packages))); err != nil {
		return err
	}
	return b.loadModules(ctx, t)
}

// loadModules loads the kernel modules that the node's hardware needs of this
// stack, now and at every boot.
func (b *Inbox) loadModules(ctx context.Context, t driver.Target) error {
	modules := neededPackages(t.Node)
	if len(modules) == 0 {
		return nil
	}
	file := "/etc/modules-load.d/ironrail-" + t.Driver.Name + ".conf"
	if err := onnode.Write(ctx, b.nodes, t.Node.Name, file, 0o644, []byte(strings.Join(modules, "\n")+"\n")); err != nil {
		return err
	}
	for _, m := range modules {
		if err := onnode.Exec(ctx, b.nodes, t.Node.Name, "modprobe", m); err != nil {
			return fmt.Errorf("load kernel module %s: %w", m, err)
		}
	}
	return nil
}

// neededPackages lists the kernel modules of the node's hardware, sorted.
func neededPackages(n *inventory.Node) []string {
	if n.Hardware == nil {
		return nil
	}
	var modules []string
	for _, nic := range n.Hardware.NICs {
		if nic.SoftwareRDMA == "rxe" && !slices.Contains(modules, "rdma_rxe") {
			modules = append(modules, "rdma_rxe")
		}
	}
	return modules
}
