// SPDX-License-Identifier: Apache-2.0

// Package artifacts holds what is built once and kept on the controller: the images of
// a site with the install ramdisk of each, the package repositories of its driver stacks,
// and the lock file, ironrail.lock, which says which of them, and which allocated
// addresses, a site has.
package artifacts

import (
	"context"
	"crypto/ed25519"
	"path/filepath"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/netboot"
)

// Prefixes of what is served below the HTTP root beside the boot files.
const (
	imagesPrefix = "/images/"
	repoPrefix   = "/repo/"
)

// Artifacts are what is kept on this controller for an inventory: a value that nothing
// changes, safe for concurrent use. Its copies share what they remember of files that
// were read.
type Artifacts struct {
	Images   *store.Store // nil for a site that is only looked at and has no state folder
	inv      *inventory.Inventory
	dir      string
	packages Packages
	probe    func(s repo.Source, ctx context.Context, arch string) error // asks a source for its index before a build
	secrets  func(secret.Ref) (secret.Value, error)
	whole    *wholeRepos
	made     *selections
}

// Packages makes the repository of a driver stack, unless it is there and whole.
type Packages func(context.Context, repo.Options) (repo.Repo, error)

// New is what the state folder dir, an absolute path, keeps for an inventory. It opens
// nothing. packages is nil for repo.Build, from the distribution's mirrors.
func New(inv *inventory.Inventory, dir string, packages Packages) Artifacts {
	if packages == nil {
		packages = repo.Build
	}
	return Artifacts{inv: inv, dir: dir, packages: packages, probe: repo.Source.Probe, whole: &wholeRepos{}, made: &selections{}}
}

// WithSecrets is a with what reads the secrets of the site, such as the passwords of
// registries.
func (a Artifacts) WithSecrets(resolve func(secret.Ref) (secret.Value, error)) Artifacts {
	a.secrets = resolve
	return a
}

// Open is a with its image store, whose manifests are signed with key.
func (a Artifacts) Open(key ed25519.PrivateKey) (Artifacts, error) {
	var err error
	a.Images, err = store.Open(a.path("images"), key)
	return a, err
}

// For is what is kept for another inventory of the same site, such as one with overrides.
func (a Artifacts) For(inv *inventory.Inventory) Artifacts {
	a.inv = inv
	return a
}

// Mounts serve the image store and the repositories to nodes.
func (a Artifacts) Mounts() []netboot.Mount {
	return []netboot.Mount{
		{Prefix: imagesPrefix, Handler: a.Images.Handler(imagesPrefix)},
		{Prefix: repoPrefix, Handler: repo.Handler(a.path("repo"), repoPrefix)},
	}
}

// path is a place in the state folder.
func (a Artifacts) path(elem ...string) string {
	return filepath.Join(append([]string{a.dir}, elem...)...)
}

// image finds an image block.
func (a Artifacts) image(name string) (*inventory.Image, error) {
	for _, i := range a.inv.Images {
		if i.Name == name {
			return i, nil
		}
	}
	return nil, errkind.New(errkind.NotFound, "image %q is not in the inventory", name)
}
