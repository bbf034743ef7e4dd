// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		recipe Recipe
		ok     bool
	}{
		"lab":                  {Recipe{Block: "os", Release: "bookworm", Packages: []string{"chrony", "g++", "libstdc++6"}}, true},
		"mirror":               {Recipe{Release: "bookworm", Mirrors: []string{"deb http://mirror.example/debian bookworm main"}}, true},
		"no release":           {Recipe{}, false},
		"option as release":    {Recipe{Release: "--help"}, false},
		"option as package":    {Recipe{Release: "bookworm", Packages: []string{"-x"}}, false},
		"two in one":           {Recipe{Release: "bookworm", Packages: []string{"a,b"}}, false},
		"pattern":              {Recipe{Release: "bookworm", Packages: []string{"?essential"}}, false},
		"one letter":           {Recipe{Release: "bookworm", Packages: []string{"x"}}, false},
		"option as kernel":     {Recipe{Release: "bookworm", Kernel: "--x"}, false},
		"option as mirror":     {Recipe{Release: "bookworm", Mirrors: []string{"--setup-hook=x"}}, false},
		"unsigned kernel":      {Recipe{Release: "bookworm", Kernel: "linux-image-6.1.0-40-amd64-unsigned"}, true},
		"unsigned, secured":    {Recipe{Release: "bookworm", Kernel: "linux-image-6.1.0-40-amd64-unsigned", SecureBoot: true}, false},
		"signed kernel":        {Recipe{Release: "bookworm", SecureBoot: true}, true},
		"two lines in mirrors": {Recipe{Release: "bookworm", Mirrors: []string{"deb a\ndeb b"}}, false},
	} {
		err := c.recipe.Check()
		if (err == nil) != c.ok || err != nil && errkind.Of(err) != errkind.Refused {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestDigestCoversTheRecipe(t *testing.T) {
	t.Parallel()
	base := Recipe{Block: "os", Release: "bookworm", Packages: []string{"b1", "a1"}}
	same := map[string]Recipe{
		"order":          {Block: "os", Release: "bookworm", Packages: []string{"a1", "b1"}},
		"default kernel": {Block: "os", Release: "bookworm", Packages: []string{"a1", "b1"}, Kernel: "linux-image-amd64"},
		"default arch":   {Block: "os", Release: "bookworm", Packages: []string{"a1", "b1"}, Arch: inventory.AMD64},
		"twice":          {Block: "os", Release: "bookworm", Packages: []string{"a1", "b1", "a1", "udev"}},
	}
	for name, r := range same {
		if r.Digest() != base.Digest() {
			t.Errorf("%s changes the digest", name)
		}
	}
	seen := map[string]string{base.Digest(): "base"}
	for name, r := range map[string]Recipe{
		"block":   {Block: "x", Release: "bookworm", Packages: base.Packages},
		"release": {Block: "os", Release: "trixie", Packages: base.Packages},
		"package": {Block: "os", Release: "bookworm", Packages: []string{"a1", "b1", "c1"}},
		"kernel":  {Block: "os", Release: "bookworm", Packages: base.Packages, Kernel: "linux-image-cloud-amd64"},
		"mirror":  {Block: "os", Release: "bookworm", Packages: base.Packages, Mirrors: []string{"http://mirror.example/"}},
		"arch":    {Block: "os", Release: "bookworm", Packages: base.Packages, Arch: inventory.ARM64},
		"signed":  {Block: "os", Release: "bookworm", Packages: base.Packages, SecureBoot: true},
		// Two architectures may have a kernel of the same name.
		"arch, same kernel": {Block: "os", Release: "bookworm", Packages: base.Packages, Arch: inventory.ARM64, Kernel: "linux-image-amd64"},
	} {
		if other, ok := seen[r.Digest()]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[r.Digest()] = name
	}
}

func TestARM64(t *testing.T) {
	t.Parallel()
	r := Recipe{Block: "os", Release: "bookworm", Arch: inventory.ARM64}
	if p := r.include(); !slices.Contains(p, "linux-image-arm64") || slices.Contains(p, "linux-image-amd64") {
		t.Errorf("packages %v", p)
	}
	if cfg := r.settings()["boot/grub/grub.cfg"]; !strings.Contains(cfg, "console=ttyAMA0,115200") {
		t.Errorf("without the console of arm64:\n%s", cfg)
	}
	// The signed loaders are Debian 13's, whatever the image is, from its own mirror.
	mirror := images.Archive{URL: "http://192.0.2.1/debian", Suite: "bookworm"}
	r.Mirrors = []string{mirror.URL}
	if got, want := r.Archives(), []images.Archive{mirror, {URL: mirror.URL, Suite: "trixie"}}; !slices.Equal(got, want) {
		t.Errorf("archives %v, want %v", got, want)
	}
	r.Release = "trixie"
	if got := r.Archives(); len(got) != 1 {
		t.Errorf("archives of Debian 13: %v", got)
	}
	if s := r.loaders(); len(s) != 1 || s[0].URL != mirror.URL || s[0].Suite != "trixie" || !slices.Equal(s[0].Components, []string{"main"}) {
		t.Errorf("loaders from %+v", s)
	}
}

// TestSecureBootArchives: loaders that are signed come from Debian 13, whatever the image is.
func TestSecureBootArchives(t *testing.T) {
	t.Parallel()
	mirror := images.Archive{URL: "http://192.0.2.1/debian", Suite: "bookworm"}
	r := Recipe{Block: "os", Release: "bookworm", Mirrors: []string{mirror.URL}}
	if got := r.Archives(); len(got) != 1 {
		t.Errorf("archives without Secure Boot: %v", got)
	}
	r.SecureBoot = true
	if got, want := r.Archives(), []images.Archive{mirror, {URL: mirror.URL, Suite: "trixie"}}; !slices.Equal(got, want) {
		t.Errorf("archives %v, want %v", got, want)
	}
	if err := (Kind{}).Supports(&inventory.Image{Block: inventory.Block{Name: "os"}, Release: "12", SecureBoot: true, Storage: []string{inventory.StorageRAID, inventory.StorageTree}}); err != nil {
		t.Errorf("with a layout: %v", err)
	}
}

func TestIncludeHasOneTimeDaemon(t *testing.T) {
	t.Parallel()
	if p := (Recipe{Packages: []string{"chrony"}}).include(); slices.Contains(p, "systemd-timesyncd") || !slices.Contains(p, "chrony") {
		t.Errorf("with chrony: %v", p)
	}
	p := Recipe{}.include()
	if !slices.Contains(p, "systemd-timesyncd") || !slices.Contains(p, "linux-image-amd64") {
		t.Errorf("by default: %v", p)
	}
	for _, name := range p {
		if strings.Contains(name, "rdma") || strings.Contains(name, "ibverbs") {
			t.Errorf("%s belongs to a driver stack", name)
		}
	}
}

// Settle must not follow links that lead out of the root, and must take away
// what identifies the controller or would be the same on all nodes.
func TestSettle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := &builder{disk: bootdisk.Maker{Family: Recipe{}.family(), Dir: dir, Root: filepath.Join(dir, "root"), Say: func(string) {}}}
	outside := filepath.Join(dir, "outside")
	must(t, os.WriteFile(outside, []byte("untouched"), 0o644))
	for name, text := range map[string]string{
		"etc/ssh/ssh_host_ed25519_key": "key", "etc/ssh/sshd_config": "x", "etc/hostname": "controller\n", "etc/machine-id": "abc\n",
		"var/log/dpkg.log": "x", "var/log/apt/history.log": "x", "var/lib/dpkg/status": "Package: a\n", "etc/apt/sources.list": "deb x\n",
		"usr/share/keyrings/debian-archive-keyring.gpg": "k", "var/lib/apt/lists/deb.example_x": "x",
	} {
		path := filepath.Join(b.disk.Root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	must(t, os.Symlink(outside, filepath.Join(b.disk.Root, "etc/resolv.conf")))
	must(t, b.settle(t.Context()))
	for _, name := range []string{"etc/ssh/ssh_host_ed25519_key", "var/log/dpkg.log", "var/log/apt/history.log", "var/lib/apt/lists/deb.example_x"} {
		if _, err := os.Lstat(filepath.Join(b.disk.Root, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	for name, want := range map[string]string{
		"etc/hostname": "localhost\n", "etc/machine-id": "", "etc/resolv.conf": "", "etc/ssh/sshd_config": "x", "boot/grub/grub.cfg": (Recipe{}).settings()["boot/grub/grub.cfg"],
	} {
		if got, err := os.ReadFile(filepath.Join(b.disk.Root, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "untouched" {
		t.Errorf("the file behind the link is %q, %v", got, err)
	}
	if to, err := os.Readlink(filepath.Join(b.disk.Root, "etc/systemd/system/apt-daily.timer")); err != nil || to != "/dev/null" {
		t.Errorf("apt-daily.timer: %q, %v", to, err)
	}
	for _, name := range []string{images.StatusFile, images.SourcesFile, images.KeyringFile} {
		if _, err := os.Stat(b.disk.Path(name)); err != nil {
			t.Error(err)
		}
	}
}
