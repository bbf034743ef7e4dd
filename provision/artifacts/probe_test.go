// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
)

// TestProbeBeforeBuild: every repository that a build needs is asked before anything is
// built, each once, and all that is wrong is one answer with its places.
func TestProbeBeforeBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, err := repo.LoadKey(filepath.Join(dir, "vendor"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "vendor.asc"), key.Public(), 0o600); err != nil {
		t.Fatal(err)
	}
	const was = `driver "inbox" "rdma" { packages = ["rdma-core"] }`
	const with = "driver \"inbox\" \"rdma\" {\n  packages = [\"rdma-core\"]\n  repository {\n    url = \"http://192.0.2.9/vendor\"\n    key = file(\"vendor.asc\")\n  }\n}"
	text := strings.Replace(site, was, with, 1)
	if text == site {
		t.Fatalf("the site has no %q", was)
	}
	a := open(t, dir, strings.Replace(text, "PACKAGES", "", 1))
	var mu sync.Mutex
	var asked []string
	a.probe = func(of repo.Source, _ context.Context, _ string) error {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, of.URL+" "+of.Suite+" "+strings.Repeat("signed", min(len(of.Key), 1)))
		return errkind.New(errkind.Unreachable, "it does not answer").Do("Look at the network.")
	}
	a.packages = func(context.Context, repo.Options) (repo.Repo, error) {
		return repo.Repo{}, errors.New("packages are fetched")
	}
	_, err = a.Build(t.Context(), nil, func(string) {})
	if err == nil || strings.Contains(err.Error(), "packages are fetched") {
		t.Fatalf("got %v", err)
	}
	slices.Sort(asked)
	if want := []string{"http://192.0.2.9/vendor ./ signed", "http://deb.debian.org/debian bookworm "}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	line := strings.Count(text[:strings.Index(text, "http://192.0.2.9")], "\n") + 1
	for _, want := range []string{"image os: http://deb.debian.org/debian bookworm: it does not answer", "site.hcl:", "driver rdma: http://192.0.2.9/vendor ./: it does not answer"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if place := "site.hcl:" + strconv.Itoa(line) + ":11: driver rdma"; !strings.Contains(err.Error(), place) {
		t.Errorf("no place %q: %v", place, err)
	}
}
