// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/manifest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tiny is a recipe whose image is one chunk.
type tiny struct {
	text   string
	bad    error         // Check
	fail   error         // Build
	builds *atomic.Int32 // how often Build ran
}

func (r tiny) Name() string   { return "image.tiny" }
func (r tiny) Check() error   { return r.bad }
func (r tiny) Digest() string { return manifest.Digest([]byte(r.text)) }
func (r tiny) Inputs() string { return r.Digest() }

func (r tiny) Archives() []images.Archive { return nil }

func (r tiny) Build(_ context.Context, dir string, say func(string)) (store.Source, error) {
	r.builds.Add(1)
	say("building")
	disk := filepath.Join(dir, "disk")
	err := os.WriteFile(disk, []byte(r.text), 0o600)
	return store.Source{Name: r.Name(), Recipe: r.Digest(), Disk: disk}, errors.Join(err, r.fail)
}

func newStore(t *testing.T) (*store.Store, string) {
	t.Helper()
	dir := t.TempDir()
	key, err := store.Key(filepath.Join(dir, "key"))
	must(t, err)
	s, err := store.Open(filepath.Join(dir, "images"), key)
	must(t, err)
	return s, filepath.Join(dir, "images", "work")
}

func TestEnsureBuildsOnce(t *testing.T) {
	t.Parallel()
	s, work := newStore(t)
	r := tiny{text: "a", builds: new(atomic.Int32)}
	must(t, os.MkdirAll(filepath.Join(work, "build-left", "root"), 0o755)) // by a crash
	var group sync.WaitGroup
	digests := make([]string, 5)
	for i := range digests {
		group.Go(func() {
			var err error
			if digests[i], err = images.Ensure(t.Context(), r, s, func(string) {}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, d := range digests {
		if d != digests[0] || d == "" {
			t.Errorf("digests %v", digests)
		}
	}
	if n := r.builds.Load(); n != 1 {
		t.Errorf("%d builds", n)
	}
	must(t, s.Verify(t.Context(), digests[0]))
	if left, err := os.ReadDir(work); err != nil || len(left) > 0 {
		t.Errorf("left in work: %v, %v", left, err)
	}
}

func TestEnsureBuildsAgain(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(s *store.Store, digest string) error{
		"after a removal": func(s *store.Store, digest string) error { return s.Remove(digest) },
		"of a cut blob": func(s *store.Store, digest string) error {
			path, err := s.Where(digest, store.BlobFile)
			return errors.Join(err, os.Truncate(path, 1))
		},
		"of a broken manifest": func(s *store.Store, digest string) error {
			path, err := s.Where(digest, store.ManifestFile)
			return errors.Join(err, os.WriteFile(path, []byte("{}"), 0o644))
		},
	} {
		s, _ := newStore(t)
		r := tiny{text: "a", builds: new(atomic.Int32)}
		digest, err := images.Ensure(t.Context(), r, s, func(string) {})
		must(t, err)
		must(t, harm(s, digest))
		again, err := images.Ensure(t.Context(), r, s, func(string) {})
		must(t, err)
		if r.builds.Load() != 2 || s.Verify(t.Context(), again) != nil {
			t.Errorf("%s: %d builds, verify %v", name, r.builds.Load(), s.Verify(t.Context(), again))
		}
	}
}

func TestEnsureFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx    context.Context
		recipe tiny
		want   error
		builds int32
	}{
		"an impossible recipe": {t.Context(), tiny{text: "a", bad: broken}, broken, 0},
		"a failed build":       {t.Context(), tiny{text: "a", fail: broken}, broken, 1},
		"a cancelled build":    {cancelled, tiny{text: "a"}, context.Canceled, 1},
	} {
		s, work := newStore(t)
		c.recipe.builds = new(atomic.Int32)
		_, err := images.Ensure(c.ctx, c.recipe, s, func(string) {})
		if !errors.Is(err, c.want) || c.recipe.builds.Load() != c.builds {
			t.Errorf("%s: got %v after %d builds", name, err, c.recipe.builds.Load())
		}
		if left, e := os.ReadDir(work); e != nil || len(left) > 0 {
			t.Errorf("%s: left in work: %v, %v", name, left, e)
		}
		if _, found, _ := s.Find(c.recipe.Digest()); found {
			t.Errorf("%s: found afterwards", name)
		}
	}
}

func TestInstalledNeedsAPackageList(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	digest, err := images.Ensure(t.Context(), tiny{text: "a", builds: new(atomic.Int32)}, s, func(string) {})
	must(t, err)
	if _, err := images.Installed(s, digest); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
}

// tinyWith is an image with packages, or with the reason why nobody knows them.
type tinyWith struct {
	tiny
	list installed.List
}

func (r tinyWith) Build(ctx context.Context, dir string, say func(string)) (store.Source, error) {
	src, err := r.tiny.Build(ctx, dir, say)
	src.Files, src.Installed = map[string]string{}, r.list
	return src, err
}

// TestEnsureListsPackages: the manifest counts packages and has their list, or says why it
// has none.
func TestEnsureListsPackages(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for text, list := range map[string]installed.List{
		"read": {Packages: []installed.Package{{Format: installed.RPM, Name: "bash", Version: "5.1.8-9.el9", Arch: "x86_64"}}}, "unread": {Unread: "there is no database of dpkg or rpm"},
	} {
		var said []string
		digest, err := images.Ensure(t.Context(), tinyWith{tiny{text: text, builds: new(atomic.Int32)}, list}, s, func(line string) { said = append(said, line) })
		must(t, err)
		m, err := s.Manifest(digest)
		must(t, err)
		if m.System == nil || m.System.Packages != len(list.Packages) || m.System.PackagesUnread != list.Unread || len(m.Files) != len(list.Packages) {
			t.Errorf("%s: %+v, files %v", text, m.System, m.Files)
		}
		if said := slices.Contains(said, "packages not read: "+list.Unread); said != (list.Unread != "") {
			t.Errorf("%s: it is said: %v", text, said)
		}
	}
}
