// SPDX-License-Identifier: Apache-2.0

package images_test

import (
	"flag"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
)

var labDir = flag.String("lab", "", "build the lab's image into DIR/images, with its key in DIR/keys (as root; minutes)")

// TestBuildLab builds the image of the lab site for real and reads it back.
func TestBuildLab(t *testing.T) {
	if *labDir == "" {
		t.Skip("needs -lab DIR, root and the network")
	}
	key, err := store.Key(filepath.Join(*labDir, "keys", "manifest.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(*labDir, "images"), key)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	say := func(text string) { t.Logf("%6.1fs %s", time.Since(start).Seconds(), text) }
	r := debian.Recipe{Block: "os", Release: "bookworm", Kernel: "linux-image-amd64", Packages: []string{"openssh-server", "chrony"}}
	digest, err := images.Ensure(t.Context(), r, s, say)
	if err != nil {
		t.Fatal(err)
	}
	say("verifying")
	if err := s.Verify(t.Context(), digest); err != nil {
		t.Fatal(err)
	}
	m, err := s.Manifest(digest)
	if err != nil {
		t.Fatal(err)
	}
	say("verified")
	t.Logf("digest %s: %d MiB plain, %d MiB blob, %d chunks, files %v, key %s", digest, m.Size>>20, m.Blob>>20, len(m.Chunks), m.Files, s.PublicKey())
	buildLabRepo(t, s, digest, say)
}

func buildLabRepo(t *testing.T, s *store.Store, digest string, say func(string)) {
	t.Helper()
	key, err := repo.LoadKey(filepath.Join(*labDir, "keys", "repo.asc"))
	if err != nil {
		t.Fatal(err)
	}
	base, err := images.Installed(s, digest)
	if err != nil {
		t.Fatal(err)
	}
	r, err := repo.Build(t.Context(), repo.Options{
		Dir: filepath.Join(*labDir, "repos"), Name: "rdma", Image: base, Key: key, Say: say,
		Packages: []string{"rdma-core", "ibverbs-utils", "perftest", "openmpi-bin", "python3-mpi4py"},
	})
	if err != nil {
		t.Fatal(err)
	}
	say("built the repository")
	if err := r.Verify(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	t.Logf("repository %s: %d packages, %d MiB in %s", r.Digest, len(r.Packages), r.Size>>20, r.Dir)
}
