// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package ubuntu

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// TestPeerLikeUbuntu builds an image of kind ubuntu from an archive that looks like Ubuntu's
// and has Debian's packages, and looks at what is in it: apt's suites and key, the kernel by
// its meta package of the updates, links, netplan, and what is kept off.
func TestPeerLikeUbuntu(t *testing.T) {
	peertest.Need(t, "apt-ftparchive", "apt-get", "dpkg-deb", "gpg", "gpgconf", "mmdebstrap")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	i := &inventory.Image{Block: inventory.Block{Kind: "ubuntu", Name: "hpc"}, Release: "24.04", Arch: inventory.AMD64,
		Storage: []string{inventory.StorageRAID, inventory.StorageTree, inventory.StorageXFS}, Archive: serveArchive(t)}
	r := Kind{}.Recipe(i, "")
	key, err := store.Key(filepath.Join(t.TempDir(), "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.TempDir(), key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := time.Now()
	src, err := r.Build(t.Context(), dir, func(text string) { t.Logf("%6.1fs %s", time.Since(start).Seconds(), text) })
	if err != nil {
		t.Fatal(err)
	}
	if src.System.Distribution != "ubuntu" || src.System.Release != "24.04" || src.System.Kernel == "" {
		t.Errorf("the system is %+v", src.System)
	}
	root, err := os.OpenRoot(filepath.Join(dir, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, want := range map[string]string{
		"etc/os-release":      "ID=ubuntu",
		"var/lib/dpkg/status": "Package: linux-image-generic\nStatus: install ok installed\nMaintainer: nobody <nobody@example>\nArchitecture: amd64\nVersion: 2\n",
		"etc/apt/sources.list": "deb [signed-by=/etc/apt/keyrings/ironrail-archive.gpg] " + i.Archive.URL + " noble main restricted universe\n" +
			"deb [signed-by=/etc/apt/keyrings/ironrail-archive.gpg] " + i.Archive.URL + " noble-updates main restricted universe\n",
		"etc/apt/preferences.d/ironrail-snapd": "Package: snapd",
		"boot/grub/grub.cfg":                   "menuentry \"Ubuntu\" {\n  linux /boot/vmlinuz root=",
		"boot/vmlinuz":                         "HdrS", // a link to the kernel, and Linux's boot protocol
		"etc/fstab":                            "LABEL=ironrail-root / ext4",
		"usr/sbin/netplan":                     "",
	} {
		b, err := os.ReadFile(filepath.Join(root.Name(), name))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s, %d bytes, %v: no %q", name, len(b), err, want)
		}
	}
	for link, want := range map[string]string{
		"boot/vmlinuz": "vmlinuz-" + src.System.Kernel, "boot/initrd.img": "initrd.img-" + src.System.Kernel,
		"etc/systemd/system/apt-daily.timer": "/dev/null", "etc/systemd/system/motd-news.timer": "/dev/null",
	} {
		if to, err := root.Readlink(link); err != nil || to != want {
			t.Errorf("%s leads to %q, %v; want %q", link, to, err, want)
		}
	}
	if _, err := root.Stat("usr/bin/snap"); err == nil {
		t.Error("snapd is in it")
	}
	aptTrusts(t, root.Name(), i.Archive.URL)
	digest, err := s.Put(t.Context(), src, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	buildRepo(t, s, digest)
}

// buildRepo has a package repository made for the image, as driver stacks are, from the
// archive that the image is of.
func buildRepo(t *testing.T, s *store.Store, digest string) {
	t.Helper()
	image := repo.Image{Digest: digest}
	for name, to := range map[string]*string{images.StatusFile: &image.Status, images.SourcesFile: &image.Sources, images.KeyringFile: &image.Keyring} {
		path, err := s.Where(digest, name)
		if err != nil {
			t.Fatal(err)
		}
		*to = path
	}
	key, err := repo.LoadKey(filepath.Join(t.TempDir(), "repo.asc"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := repo.Build(t.Context(), repo.Options{Dir: t.TempDir(), Name: "admin", Image: image, Key: key, Packages: []string{"sudo"}})
	if err != nil || r.Packages["sudo"] == "" {
		t.Errorf("a repository for the image: %v, %v", r.Packages, err)
	}
}

// aptTrusts has apt, in the image, read the lists of the archive, which it takes from none
// but the key that the site gave.
func aptTrusts(t *testing.T, root, url string) {
	t.Helper()
	update := func() (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, "chroot", root, "apt-get", "update", "--error-on=any").CombinedOutput()
		return string(out), err
	}
	if out, err := update(); err != nil || !strings.Contains(out, url+" noble-updates") {
		t.Errorf("apt in the image: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "chroot", root, "apt-cache", "policy", "linux-image-generic").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Installed: 2\n") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(root, "etc/apt/keyrings/ironrail-archive.gpg"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := update(); err == nil {
		t.Errorf("apt in the image takes the archive without its key:\n%s", out)
	}
}

// serveArchive makes and serves the archive.
func serveArchive(t *testing.T) inventory.PackageArchive {
	t.Helper()
	script, err := filepath.Abs("testdata/archive.sh")
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(t.TempDir(), "archive")
	packages := "noble:24.04 ca-certificates dbus e2fsprogs initramfs-tools iproute2 kmod openssh-server systemd systemd-sysv systemd-timesyncd tzdata udev zstd mdadm xfsprogs sudo " + strings.Join(base, " ")
	if out, err := exec.CommandContext(t.Context(), "sh", script, t.TempDir(), "bookworm", made, packages).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	key, err := os.ReadFile(filepath.Join(made, "key.asc"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(made)))
	t.Cleanup(server.Close)
	return inventory.PackageArchive{URL: server.URL, Key: string(key)}
}
