// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerUmoci: layers that umoci made are unpacked to what umoci was given, and to what
// umoci itself unpacks.
func TestPeerUmoci(t *testing.T) {
	t.Parallel()
	needRoot(t)
	peertest.Need(t, "umoci", "setcap")
	work := t.TempDir()
	run := func(argv ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = work
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	run("umoci", "init", "--layout", "l")
	run("umoci", "new", "--image", "l:one")
	run("umoci", "unpack", "--image", "l:one", "bundle")
	const first = `set -e; cd bundle/rootfs; mkdir -p etc usr/lib opaque/old run var; ln -s usr/lib lib; ln -s /run var/run; echo shared >usr/lib/a; ln usr/lib/a usr/lib/b
cp /bin/true usr/ping; setcap cap_net_raw=ep usr/ping; chmod 4755 usr/lib/a; chown 7:8 etc; echo x >opaque/old/x; echo y >gone; ln -s a dangling`
	const second = `set -e; cd bundle/rootfs; rm gone; rm -r opaque; mkdir opaque; echo new >opaque/new; ln usr/lib/b usr/lib/c; rm dangling; mkdir dangling; echo z >dangling/z`
	run("sh", "-c", first)
	run("umoci", "repack", "--refresh-bundle", "--image", "l:one", "bundle")
	run("sh", "-c", second)
	run("umoci", "repack", "--image", "l:two", "bundle")
	run("umoci", "unpack", "--image", "l:two", "again")

	b := builderOf(t, layoutPrefix+filepath.Join(work, "l")+":two@"+tagged(t, filepath.Join(work, "l"), "two"))
	got, err := fetchAll(t, b)
	must(t, err)
	if len(b.image.layers) < 2 {
		t.Errorf("%d layers: the case tries nothing", len(b.image.layers))
	}
	for _, of := range []string{"bundle", "again"} {
		if want := tree(t, filepath.Join(work, of, "rootfs")); !maps.Equal(got, want) {
			t.Errorf("got %v, want that of %s: %v", slices.Sorted(maps.Keys(got)), of, slices.Sorted(maps.Keys(want)))
		}
	}
	if n, err := getxattr(filepath.Join(b.disk.Root, "usr/ping"), "security.capability", make([]byte, 64)); err != nil || n == 0 {
		t.Errorf("the capability is lost: %v", err)
	}
	for _, name := range []string{"usr/lib/b", "usr/lib/c"} {
		a, err1 := os.Stat(filepath.Join(b.disk.Root, "usr/lib/a"))
		o, err2 := os.Stat(filepath.Join(b.disk.Root, name))
		if err1 != nil || err2 != nil || !os.SameFile(a, o) {
			t.Errorf("usr/lib/a and %s are not one file", name)
		}
	}
	if info, err := os.Stat(filepath.Join(b.disk.Root, "etc")); err != nil || uidOf(info) != 7 {
		t.Errorf("etc: %v, %v", info, err)
	}
}

// tagged is the digest of a tag in a layout.
func tagged(t *testing.T, dir, tag string) string {
	t.Helper()
	p, err := layout.FromPath(dir)
	must(t, err)
	index, err := p.ImageIndex()
	must(t, err)
	m, err := index.IndexManifest()
	must(t, err)
	for _, d := range m.Manifests {
		if d.Annotations["org.opencontainers.image.ref.name"] == tag {
			return d.Digest.String()
		}
	}
	t.Fatalf("%s has no tag %s", dir, tag)
	return ""
}

// TestPeerInRoot: a program runs in a root with mounts of its own, which do not stay.
func TestPeerInRoot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	const busybox = "/usr/bin/busybox"
	peertest.Need(t, busybox)
	root := t.TempDir()
	for _, d := range []string{"dev", "proc"} {
		must(t, os.Mkdir(filepath.Join(root, d), 0o755))
	}
	libraries, err := exec.CommandContext(t.Context(), "ldd", busybox).Output()
	must(t, err)
	for _, from := range append(lazyregexp.New(`/\S+`).FindAllString(string(libraries), -1), busybox) {
		b, err := os.ReadFile(from)
		must(t, err)
		to := filepath.Join(root, from)
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(t, os.WriteFile(to, b, 0o755))
	}
	var said []string
	err = inRoot(t.Context(), root, func(line string) { said = append(said, line) }, []string{busybox, "sh", "-c", "/usr/bin/busybox ls /dev; /usr/bin/busybox cat /proc/net/dev"})
	must(t, err)
	if len(said) < 6 || said[0] != "fd" || slices.ContainsFunc(said, func(l string) bool { return len(l) > 3 && l[:3] == "eth" }) {
		t.Errorf("it said %q", said)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	if strings.Contains(string(mounts), root) {
		t.Errorf("something is mounted in %s", root)
	}
	if err := inRoot(t.Context(), root, nil, []string{busybox, "false"}); err == nil {
		t.Error("a program that fails is taken for done")
	}
	must(t, os.Remove(filepath.Join(root, "dev")))
	must(t, os.Symlink("/dev", filepath.Join(root, "dev")))
	if err := inRoot(t.Context(), root, nil, []string{busybox, "true"}); err == nil {
		t.Error("a link is mounted over")
	}
}
