// Package inbox is the driver kind of the distribution's own packages, such as
// its RDMA stack. Nodes install them with apt from a signed repository that the
// controller serves, and from nowhere else: no node needs the Internet.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/onnode"
	"github.com/ironrail/ironrail/provision/stage"
)

// Name is the kind's name in the language.
const Name = "inbox"

// Repository is a flat apt repository as nodes see it. Packages holds every
// package in it, the dependencies too, with its version.
type Repository struct {
	URL        string // ends with a slash
	ArmoredKey []byte // OpenPGP public key that signed it
	Packages   map[string]string
}

// Repositories makes and finds the repository of a stack for the nodes of one
// image. It is safe for concurrent use: of several callers of Ensure one builds
// and the others wait for it.
type Repositories interface {
	// Ensure builds it unless it is there and whole. It may take minutes.
	Ensure(ctx context.Context, d *inventory.Driver, image string, say func(string)) (Repository, error)
	// Find returns what Ensure made; false when there is none or it is damaged.
	Find(ctx context.Context, d *inventory.Driver, image string) (Repository, bool, error)
}

// Inbox installs distribution packages. Its zero value is not useful.
type Inbox struct {
	nodes onnode.Nodes
	repos Repositories
}

// New returns the kind.
func New(nodes onnode.Nodes, repos Repositories) *Inbox { return &Inbox{nodes: nodes, repos: repos} }

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
		if !packageName(p) {
			add("Package name is not possible", fmt.Sprintf("Driver %q lists %q. A Debian package name has lower-case letters, digits, and the signs + - . only.", d.Name, p))
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
			return errkind.New(errkind.Mismatch, "repository of driver %s for image %s has no package %s", d.Name, image, p).
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

// Install implements driver.Kind: key, source, update, install, modules.
func (b *Inbox) Install(ctx context.Context, run stage.Run, t driver.Target) error {
	progress := func(text string) {
		run.Emit(event.Event{Type: event.StepProgress, Node: t.Node.Name, Text: text})
	}
	repo, err := b.repos.Ensure(ctx, t.Driver, t.Node.Image.Name, progress)
	if err != nil {
		return fmt.Errorf("repository of driver %s for image %s: %w", t.Driver.Name, t.Node.Image.Name, err)
	}
	a := apt{nodes: b.nodes, run: run, node: t.Node.Name, source: t.Driver.Name}
	if err := a.configure(ctx, repo); err != nil {
		return err
	}
	progress("reading the package lists")
	if err := a.get(ctx, "update"); err != nil {
		return err
	}
	progress(fmt.Sprintf("installing %d packages", len(t.Driver.Packages)))
	args := []string{"install", "--yes", "--no-install-recommends", "--allow-downgrades", "-o", "Dpkg::Options::=--force-confdef", "-o", "Dpkg::Options::=--force-confold"}
	for _, p := range slices.Sorted(slices.Values(t.Driver.Packages)) {
		args = append(args, p+"="+repo.Packages[p])
	}
	if err := a.get(ctx, args...); err != nil {
		return err
	}
	return b.loadModules(ctx, t)
}

// loadModules loads the kernel modules that the node's hardware needs of this
// stack, now and at every boot.
func (b *Inbox) loadModules(ctx context.Context, t driver.Target) error {
	modules := needed(t.Node)
	if len(modules) == 0 {
		return nil
	}
	file := "/etc/modules-load.d/ironrail-" + t.Driver.Name + ".conf"
	if err := onnode.Write(ctx, b.nodes, t.Node.Name, file, 0o644, []byte(strings.Join(modules, "\n")+"\n")); err != nil {
		return err
	}
	for _, m := range modules {
		if _, err := onnode.Do(ctx, b.nodes, t.Node.Name, "modprobe", m); err != nil {
			return fmt.Errorf("load kernel module %s: %w", m, err)
		}
	}
	return nil
}

// needed lists the kernel modules of the node's hardware, sorted.
func needed(n *inventory.Node) []string {
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

// apt runs apt-get on one node with one source only.
type apt struct {
	nodes  onnode.Nodes
	run    stage.Run
	node   string
	source string
}

func (a apt) list() string { return "/etc/apt/sources.list.d/ironrail-" + a.source + ".list" }
func (a apt) key() string  { return "/etc/apt/keyrings/ironrail-" + a.source + ".asc" }

// configure writes the key and the source. apt reads an armoured key when its
// file ends in .asc (apt-secure(8), apt 1.4 and later).
func (a apt) configure(ctx context.Context, r Repository) error {
	if err := onnode.Write(ctx, a.nodes, a.node, a.key(), 0o644, r.ArmoredKey); err != nil {
		return err
	}
	line := fmt.Sprintf("deb [signed-by=%s] %s ./\n", a.key(), r.URL)
	return onnode.Write(ctx, a.nodes, a.node, a.list(), 0o644, []byte(line))
}

// lockTries and lockPause bound the wait for another apt, such as the first
// run of the distribution's own timers: four minutes beside apt's own wait.
const (
	lockTries = 24
	lockPause = 10 * time.Second
)

// get runs apt-get with this source alone. apt itself waits for dpkg's lock but
// not for that of its lists, so a lock that is taken is tried again.
func (a apt) get(ctx context.Context, args ...string) error {
	argv := append([]string{
		"env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", "apt-get", "--quiet=2",
		"-o", "Dir::Etc::sourcelist=" + a.list(), "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0",
		"-o", "APT::Update::Error-Mode=any", "-o", "DPkg::Lock::Timeout=120",
		"-o", "Acquire::Retries=3", "-o", "Acquire::http::Timeout=30", "-o", "Acquire::http::Proxy=DIRECT",
	}, args...)
	for try := 1; ; try++ {
		_, err := onnode.Do(ctx, a.nodes, a.node, argv...)
		ee, ended := errors.AsType[*onnode.ExitError](err)
		switch {
		case err == nil:
			return nil
		case !ended:
			return err
		case locked(ee.Text()) && try < lockTries:
			if err := a.run.Clock().Sleep(ctx, lockPause); err != nil {
				return err
			}
			continue
		}
		return a.failure(args[0], ee)
	}
}

// locked recognises apt's words for a lock that another process holds (apt
// 2.6, apt-pkg/contrib/fileutl.cc).
func locked(text []byte) bool {
	s := string(text)
	return strings.Contains(s, "Could not get lock") || strings.Contains(s, "Unable to acquire the dpkg frontend lock")
}

func (a apt) failure(what string, ee *onnode.ExitError) error {
	action := "Read the attached output of apt-get, then apply again."
	if locked(ee.Text()) {
		action = "Another package manager holds the lock on the node: see which with `fuser -v /var/lib/dpkg/lock-frontend`, then apply again."
	}
	ref, err := a.run.Attach("apt-get-"+what+".txt", append(ee.Text(), '\n'))
	if err != nil {
		return err
	}
	return errkind.New(errkind.Refused, "apt-get %s: %w (%s)", what, ee, ref).Do(action)
}
