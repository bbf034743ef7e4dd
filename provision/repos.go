package provision

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/errkind"
)

// repositories are the package repositories of the driver stacks, one for each
// stack and image, served by this controller. It implements inbox.Repositories.
type repositories struct {
	site *Site
	root string // URL of the HTTP root; empty while only building
}

// Ensure implements inbox.Repositories.
func (r repositories) Ensure(ctx context.Context, d *inventory.Driver, image string, say func(string)) (inbox.Repository, error) {
	o, err := r.site.RepositoryOptions(d, image)
	if err != nil {
		return inbox.Repository{}, err
	}
	o.Say = say
	got, err := r.site.packages(ctx, o)
	if err != nil {
		return inbox.Repository{}, errkind.New(errkind.Of(err), "%w", err).
			Do("Build it where a package mirror can be reached: `ironrail image build`.")
	}
	if err := r.site.held(d, image, o.Image.Digest, got); err != nil {
		return inbox.Repository{}, err
	}
	return r.seen(o, got), nil
}

// Find implements inbox.Repositories. What is damaged counts as not there, and
// what is not what the lock file has: Ensure says why.
func (r repositories) Find(ctx context.Context, d *inventory.Driver, image string) (inbox.Repository, bool, error) {
	o, err := r.site.RepositoryOptions(d, image)
	if err != nil {
		return inbox.Repository{}, false, err
	}
	got, found, err := repo.Find(o)
	if err != nil || !found || r.site.whole.verify(ctx, got, o.Key) != nil || r.site.held(d, image, o.Image.Digest, got) != nil {
		return inbox.Repository{}, false, err
	}
	return r.seen(o, got), true, nil
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

// seen is a repository as nodes see it.
func (r repositories) seen(o repo.Options, got repo.Repo) inbox.Repository {
	return inbox.Repository{URL: r.root + repoPrefix + o.Name + "/", ArmoredKey: got.Key, Packages: got.Packages}
}

// RepositoryOptions says what the package repository of a driver stack is made
// of, for the nodes of an image: the packages of the stack that the image lacks.
func (s *Site) RepositoryOptions(d *inventory.Driver, image string) (repo.Options, error) {
	i, err := s.image(image)
	if err != nil {
		return repo.Options{}, err
	}
	digest, err := s.digest(i)
	if err != nil {
		return repo.Options{}, err
	}
	if digest == "" {
		return repo.Options{}, errkind.New(errkind.Mismatch, "image %s is not built, so that nobody knows what it lacks", image).Do("`ironrail image build` builds it.")
	}
	key, err := repo.LoadKey(s.path("keys", "repo.asc"))
	if err != nil {
		return repo.Options{}, err
	}
	file := func(name string) string {
		return filepath.Join(s.path("images"), filepath.FromSlash(store.Path(digest, name)))
	}
	return repo.Options{Dir: s.path("repo"), Name: d.Name + "-" + image, Packages: d.Packages, Key: key,
		Image: repo.Image{Digest: digest, Status: file(debian.StatusFile), Sources: file(debian.SourcesFile), Keyring: file(debian.KeyringFile)}}, nil
}
