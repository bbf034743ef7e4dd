// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/compile"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/keys"
)

// Repositories are the package repositories of the driver stacks, one for each
// stack and image, served by this controller. It implements manager.Repositories.
type Repositories struct {
	of   Artifacts
	root string // URL of the HTTP root; empty while only building
}

// Repositories are the repositories that nodes install from, over the HTTP root of that
// URL; it is empty where no node is told of it.
func (a Artifacts) Repositories(root string) Repositories { return Repositories{a, root} }

// Ensure implements manager.Repositories.
func (r Repositories) Ensure(ctx context.Context, d *inventory.Driver, image string, say func(string)) (manager.Repository, error) {
	o, err := r.of.RepositoryOptions(d, image)
	if err != nil {
		return manager.Repository{}, err
	}
	o.Say = say
	got, err := r.of.packages(ctx, o)
	if err != nil {
		return manager.Repository{}, errkind.New(errkind.Of(err), "%w", err).
			Do("Build it where a package mirror can be reached: `ironrail image build`.")
	}
	if err := r.of.refuseUnlocked(d, image, o, got); err != nil {
		return manager.Repository{}, err
	}
	return r.forNodes(o, got)
}

// Find implements manager.Repositories. What is damaged counts as not there, and
// what is not what the lock file has: Ensure says why.
func (r Repositories) Find(ctx context.Context, d *inventory.Driver, image string) (manager.Repository, bool, error) {
	o, err := r.of.RepositoryOptions(d, image)
	if err != nil {
		return manager.Repository{}, false, err
	}
	got, found, err := repo.Find(o)
	if err != nil || !found || r.of.whole.verify(ctx, got, o.Key) != nil || r.of.refuseUnlocked(d, image, o, got) != nil {
		return manager.Repository{}, false, err
	}
	seen, err := r.forNodes(o, got)
	return seen, err == nil, err
}

// wholeRepos remembers which repositories were read and found whole, since every
// node asks. It is safe for concurrent use; the zero value is ready.
type wholeRepos struct {
	mu   sync.Mutex        // guards seen, and lets one caller read for all
	seen map[string]string // by folder: the files that were read
}

// verify reads the whole repository, unless it was read before and no file has
// changed its size or time since.
func (w *wholeRepos) verify(ctx context.Context, r repo.Repo, key *repo.Key) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	files, err := listing(r.Dir)
	if err != nil {
		return err
	}
	if was, ok := w.seen[r.Dir]; ok && was == files {
		return nil
	}
	if err := r.Verify(ctx, key); err != nil {
		return err
	}
	if w.seen == nil {
		w.seen = map[string]string{}
	}
	w.seen[r.Dir] = files
	return nil
}

// listing is the digest of the names, sizes and times of all files below a folder.
func listing(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			fmt.Fprintf(sum, "%q %d %d %v\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return err
	})
	return string(sum.Sum(nil)), err
}

// forNodes is a repository as nodes see it.
func (r Repositories) forNodes(o repo.Options, got repo.Repo) (manager.Repository, error) {
	kernel, err := r.of.made.kernel(o.Image)
	seen := manager.Repository{URL: r.root + repoPrefix + o.Name + "/", ArmoredKey: got.Key, Packages: got.Packages, Kernel: kernel}
	if err == nil && slices.Contains(o.Made.Packages, compile.DKMSPackage) {
		key, err := r.of.signer()
		if err != nil {
			return seen, err
		}
		seen.Signer = manager.Signer{Name: key.Name(), Serial: key.Serial()}
	}
	return seen, err
}

// signer is the key that signs kernel modules.
func (a Artifacts) signer() (*modsign.Key, error) {
	return modsign.Load(a.path(keys.Folder, keys.ModulesFile))
}

// RepositoryOptions says what the package repository of a driver stack is made
// of, for the nodes of an image: the packages of the stack that the image lacks.
func (a Artifacts) RepositoryOptions(d *inventory.Driver, image string) (repo.Options, error) {
	i, err := a.image(image)
	if err != nil {
		return repo.Options{}, err
	}
	digest, err := a.Digest(i)
	if err != nil {
		return repo.Options{}, err
	}
	return a.repositoryOptions(d, image, digest)
}

// packagesOf is the architecture of an image's packages as dpkg has it; "" for an image
// that the site has no more.
func (a Artifacts) packagesOf(image string) string {
	i, err := a.image(image)
	if err != nil {
		return ""
	}
	return string(i.Arch)
}

// exists reports whether there is a file.
func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// repositoryOptions is RepositoryOptions for an image of a digest.
func (a Artifacts) repositoryOptions(d *inventory.Driver, image, digest string) (repo.Options, error) {
	if digest == "" {
		return repo.Options{}, errkind.New(errkind.NotFound, "image %s is not built, so that nobody knows what it lacks", image).Do("`ironrail image build` builds it.")
	}
	key, err := repo.LoadKey(a.path("keys", "repo.asc"))
	if err != nil {
		return repo.Options{}, err
	}
	file := func(name string) string {
		return filepath.Join(a.path("images"), filepath.FromSlash(store.Path(digest, name)))
	}
	o := repo.Options{Dir: a.path("repo"), Name: repositoryName(d.Name, image), Packages: d.Packages, Key: key,
		Image: repo.Image{Digest: digest, Status: file(images.StatusFile), Sources: file(images.SourcesFile), Keyring: file(images.KeyringFile), Arch: a.packagesOf(image)}}
	if database := file(images.DatabaseFile); exists(database) {
		o.Image = repo.Image{Digest: digest, Database: database, Repositories: file(images.RepositoriesFile), Arch: o.Image.Arch}
	}
	if o.Added, err = a.added(d.Name, o.Image.Database != ""); err != nil {
		return o, err
	}
	choose := a.selectorOf(d.Kind)
	if choose == nil {
		return o, nil
	}
	sel, err := a.made.selection(choose, a.inv, d, image, o.Image)
	if err != nil {
		return o, err
	}
	o.Packages, o.Pins, o.Sources, o.Components, o.Made = sel.Packages, sel.Pins, sel.Sources, sel.Components, sel.Made
	return o, nil
}
