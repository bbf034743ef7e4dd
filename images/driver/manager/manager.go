// SPDX-License-Identifier: Apache-2.0

// Package manager runs the package manager of a node for driver stacks: apt of
// Debian and Ubuntu, dnf of RHEL and its derivatives. Packages come from one repository
// that the controller serves, and from nowhere else.
package manager

import (
	"context"
	"fmt"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
)

// Repository is the repository of one stack as nodes see it. Packages holds every
// package in it, the dependencies too, with its version.
type Repository struct {
	URL        string // ends with a slash
	ArmoredKey []byte // OpenPGP public key that signed it
	Packages   map[string]string
	Kernel     string // release of the image's kernel, such as 6.1.0-56-amd64; "": not known
	Signer     Signer // of the kernel modules in it; zero: none is signed here
}

// Signer is the certificate of the key that modules are signed with.
type Signer struct {
	Name   string // its common name
	Serial string // its serial number, as modinfo(8) shows the sig_key of a module
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

// On is one stack on one node.
type On struct {
	Nodes  onnode.Nodes
	Run    stage.Run // for waits and evidence; nil: only Installed and Unfinished are called
	Node   string
	Source string // name of the stack: the files that are written are called after it
}

// Manager is a package manager on one node. Every method may be called twice.
type Manager interface {
	// Configure writes the repository and the key that it is signed with.
	Configure(ctx context.Context, r Repository) error
	// Pin holds versions against newer ones, and keeps unattended upgrades off
	// the packages. No pins take back what was pinned before.
	Pin(ctx context.Context, pins []repo.Pin) error
	// Refresh reads what the repository has.
	Refresh(ctx context.Context) error
	// Install brings packages to their versions in the repository, up or down. One that is not
	// in it is part of the image. What was held before is moved as well.
	Install(ctx context.Context, r Repository, names []string) error
	// Hold keeps packages at what they are, whoever upgrades the system.
	Hold(ctx context.Context, names []string) error
	// Held lists what is held.
	Held(ctx context.Context) ([]string, error)
	// Release lets go of packages that are held: a manager moves none that it is
	// not asked to by name, and packages move together.
	Release(ctx context.Context, names []string) error
	// Installed returns the versions of those of the packages that are fully
	// installed. Of one that is there in several, they are separated by spaces.
	Installed(ctx context.Context, names []string) (map[string]string, error)
	// Unfinished lists packages that are unpacked and could not be configured.
	Unfinished(ctx context.Context) ([]string, error)
}

// For returns the manager of a distribution.
func For(r distribution.Release, on On) (Manager, error) {
	switch f, _ := distribution.Find(r.Family); f.Manager {
	case distribution.Apt:
		return Apt{on}, nil
	case distribution.Dnf:
		return Dnf{on}, nil
	}
	return nil, errkind.New(errkind.Unsupported, "no package manager is known for %q", r.Family).
		Do("Take an image of Debian, Ubuntu or RHEL.")
}

// failure is a program that ended badly, with all that it said as evidence.
func (o On) failure(what string, ee *onnode.ExitError, action string) error {
	ref, err := o.Run.Attach(what+".txt", append(ee.Text(), '\n'))
	if err != nil {
		return err
	}
	return errkind.New(errkind.Refused, "%s: %w (%s)", what, ee, ref).Do(action)
}

// query runs a program that may end with a status up to most, and returns what it
// printed.
func (o On) query(ctx context.Context, most int, argv ...string) ([]byte, error) {
	out, err := o.Nodes.Run(ctx, o.Node, onnode.Command{Argv: argv})
	if err != nil {
		return nil, fmt.Errorf("node %s: %s: %w", o.Node, argv[0], err)
	}
	if out.Exit > most {
		return nil, &onnode.ExitError{Node: o.Node, Argv: argv, Output: out}
	}
	return out.Stdout, nil
}
