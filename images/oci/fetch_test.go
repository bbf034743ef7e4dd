// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/ironrail/ironrail/images/internal/aptsource"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

const noDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

func TestParseSource(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]source{
		"docker://registry.example:5000/os/hpc:1.4@" + noDigest: {registryPrefix, "registry.example:5000/os/hpc", "1.4", noDigest},
		"docker://registry.example:5000/os/hpc@" + noDigest:     {registryPrefix, "registry.example:5000/os/hpc", "", noDigest},
		"oci-layout:images/hpc:v1@" + noDigest:                  {layoutPrefix, "images/hpc", "v1", noDigest},
		"oci-archive:/srv/hpc.tar@" + noDigest:                  {archivePrefix, "/srv/hpc.tar", "", noDigest},
		"docker-archive:hpc.tar@" + noDigest:                    {dockerArchivePrefix, "hpc.tar", "", noDigest},
	} {
		if got, err := parseSource(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, word := range map[string]string{
		"": "no transport", "registry.example/os/hpc:1.4": "no transport", "docker://registry.example/os/hpc:1.4": "no digest",
		"docker://registry.example/os/hpc@sha256:12": "no digest", "oci-layout:x@sha512:" + strings.Repeat("0", 64): "no digest",
		"oci-layout:@" + noDigest: "no place", "docker://UPPER/os@" + noDigest: "no repository", "docker://--x@" + noDigest: "no repository",
	} {
		_, err := parseSource(text)
		wantError(t, err, errkind.Refused, word)
	}
}

// fetchAll fetches and unpacks an image.
func fetchAll(t *testing.T, b *builder) (map[string]string, error) {
	t.Helper()
	needRoot(t)
	if err := b.fetch(t.Context()); err != nil {
		return nil, err
	}
	if err := b.unpack(t.Context()); err != nil {
		return nil, err
	}
	return tree(t, b.disk.Root), nil
}

// TestSourcesOnTheController: a layout, an archive of it and one of docker give the same
// root.
func TestSourcesOnTheController(t *testing.T) {
	t.Parallel()
	image := imageOf(t, "amd64", layer(t, file("a", "1"), file("b", "1")), layer(t, file("a", "2"), file(".wh.b", "")))
	at, id := digestText(t, image), mustConfig(t, image)
	folder := layoutOf(t, image)
	archive := filepath.Join(t.TempDir(), "layout.tar")
	pack(t, folder, archive)
	docker := filepath.Join(t.TempDir(), "docker.tar")
	must(t, tarball.WriteToFile(docker, mustTag(t), image))
	for _, source := range []string{layoutPrefix + folder + "@" + at, layoutPrefix + folder + ":v1@" + at, archivePrefix + archive + "@" + at, dockerArchivePrefix + docker + "@" + id} {
		got, err := fetchAll(t, builderOf(t, source))
		if err != nil || len(got) != 1 || got["a"] != "2" {
			t.Errorf("%s: %v, %v", source, got, err)
		}
	}
	for source, word := range map[string]string{
		layoutPrefix + folder + "@" + noDigest: "the layout has " + at, layoutPrefix + folder + ":v2@" + at: `tag "v1"`,
		archivePrefix + archive + "@" + noDigest: "the layout has " + at, dockerArchivePrefix + docker + "@" + noDigest: "has id " + id,
	} {
		_, err := fetchAll(t, builderOf(t, source))
		wantError(t, err, errkind.Mismatch, word)
	}
	for _, source := range []string{layoutPrefix + "/nowhere", archivePrefix + "/nowhere", dockerArchivePrefix + "/nowhere"} {
		_, err := fetchAll(t, builderOf(t, source+"@"+at))
		wantError(t, err, errkind.NotFound, "/nowhere")
	}
}

func mustConfig(t *testing.T, image v1.Image) string {
	t.Helper()
	h, err := image.ConfigName()
	must(t, err)
	return h.String()
}

func mustTag(t *testing.T) name.Tag {
	t.Helper()
	tag, err := name.NewTag("os/hpc:1")
	must(t, err)
	return tag
}

// pack makes an archive of a folder.
func pack(t *testing.T, dir, to string) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: "../evil", Typeflag: tar.TypeReg, Size: 0})) // is not taken
	must(t, w.AddFS(os.DirFS(dir)))
	must(t, w.Close())
	must(t, os.WriteFile(to, b.Bytes(), 0o644))
}

// TestDamagedLayout: every blob is verified from the digest in the files down.
func TestDamagedLayout(t *testing.T) {
	t.Parallel()
	needRoot(t)
	image := imageOf(t, "amd64", layer(t, file("a", "1")))
	m, err := image.Manifest()
	must(t, err)
	for what, h := range map[string]string{"manifest": digestText(t, image), "configuration": m.Config.Digest.String(), "layer": m.Layers[0].Digest.String()} {
		folder := layoutOf(t, image)
		blob := filepath.Join(folder, "blobs/sha256", strings.TrimPrefix(h, "sha256:"))
		b, err := os.ReadFile(blob)
		must(t, err)
		must(t, os.Chmod(blob, 0o644))
		must(t, os.WriteFile(blob, append(b[:len(b)-1], b[len(b)-1]^1), 0o644))
		if _, err := fetchAll(t, builderOf(t, layoutPrefix+folder+"@"+digestText(t, image))); err == nil {
			t.Errorf("a damaged %s is taken", what)
		} else if k := errkind.Of(err); k != errkind.Corrupt && k != errkind.Invalid {
			t.Errorf("a damaged %s: %v (%v)", what, err, k)
		}
	}
}

func TestArchitecture(t *testing.T) {
	t.Parallel()
	arm := imageOf(t, "arm64", layer(t, file("a", "arm64")))
	both := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: arm, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}},
		mutate.IndexAddendum{Add: imageOf(t, "amd64", layer(t, file("a", "amd64"))), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}}})
	one := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: arm, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "arm64"}}})
	place := func(i *inventory.Image) { i.Decl.Filename, i.Decl.Start.Line = "site.hcl", 12 }
	write := func(index v1.ImageIndex) string {
		path := filepath.Join(t.TempDir(), "layout")
		p, err := layout.Write(path, empty.Index)
		must(t, err)
		must(t, p.AppendIndex(index))
		return layoutPrefix + path + "@" + digestText(t, index)
	}
	if got, err := fetchAll(t, builderOf(t, write(both))); err != nil || got["a"] != "amd64" {
		t.Errorf("%v, %v", got, err)
	}
	_, err := fetchAll(t, builderOf(t, write(one), place))
	wantError(t, err, errkind.Mismatch, "the image block (site.hcl:12) says amd64", "has linux/arm64")
	_, err = fetchAll(t, builderOf(t, layoutPrefix+layoutOf(t, arm)+"@"+digestText(t, arm), place))
	wantError(t, err, errkind.Mismatch, "the image block (site.hcl:12) says amd64", "says linux/arm64")
}

// program is the head of an ELF program for a machine.
func program(machine byte) string {
	b := make([]byte, 64)
	copy(b, "\x7fELF\x02\x01\x01")
	b[16], b[18], b[20], b[52], b[54], b[58] = 2, machine, 1, 64, 56, 64
	return string(b)
}

// whole are the entries of a root that can be installed.
func whole(without ...string) (out []entry) {
	for _, e := range []entry{
		file("etc/os-release", "ID=debian\nVERSION_ID=\"13\"\n"), file("boot/vmlinuz-6.12.3-amd64", "kernel"), link("lib", "usr/lib"), file("usr/lib/modules/6.12.3-amd64/modules.dep", ""),
		file("usr/lib/systemd/systemd", program(62)), file("usr/lib/systemd/systemd-networkd", ""), file("usr/bin/udevadm", ""), link("usr/sbin/modprobe", "/usr/bin/kmod"), file("usr/bin/kmod", ""), file("usr/sbin/sshd", ""),
	} {
		keep := true
		for _, w := range without {
			keep = keep && !strings.HasPrefix(e.name, w)
		}
		if keep {
			out = append(out, e)
		}
	}
	return out
}

func TestInspect(t *testing.T) {
	t.Parallel()
	needRoot(t)
	look := func(change func(*Recipe), entries ...entry) (system, error) {
		path, err := unpackAll(t, layer(t, entries...))
		must(t, err)
		root, err := os.OpenRoot(path)
		must(t, err)
		defer root.Close()
		r := Recipe{Block: "hpc", Arch: inventory.AMD64}
		if change != nil {
			change(&r)
		}
		return r.inspect(root)
	}
	s, err := look(nil, whole()...)
	if err != nil || s.release.String() != "Debian 13" || s.kernel != "6.12.3-amd64" {
		t.Errorf("%+v, %v", s, err)
	}
	for without, words := range map[string]string{
		"boot": "a kernel (/boot/vmlinuz-RELEASE)", "usr/lib/modules": "the modules of kernel 6.12.3-amd64", "usr/lib/systemd/systemd": "init (systemd) (/usr/lib/systemd/systemd)",
		"usr/bin/kmod": "modprobe", "usr/sbin/sshd": "an SSH server (/usr/sbin/sshd)", "usr/bin/udevadm": "udev", "etc/os-release": "no /etc/os-release",
	} {
		_, err := look(nil, whole(without)...)
		wantError(t, err, errkind.Refused, words)
	}
	_, err = look(nil, whole("boot", "usr/sbin/sshd", "usr/lib/systemd")...)
	wantError(t, err, errkind.Refused, "a kernel", "systemd-networkd", "an SSH server")
	if a := errkind.Action(err); !strings.Contains(a, "linux-image-amd64") || !strings.Contains(a, "openssh-server") || !strings.Contains(a, "Nothing was erased") {
		t.Errorf("the action is %q", a)
	}
	layouts := func(r *Recipe) {
		r.Storage = []string{inventory.StorageRAID, inventory.StorageTree, inventory.StorageXFS}
	}
	_, err = look(layouts, append(whole(), file("usr/sbin/mdadm", ""), file("sbin/mke2fs", ""))...)
	wantError(t, err, errkind.Refused, "it lacks mkswap (/usr/sbin/mkswap), which disk layouts of its nodes need, mkfs.xfs")
	if a := errkind.Action(err); !strings.Contains(a, "util-linux xfsprogs.") {
		t.Errorf("the action is %q", a)
	}
	_, err = look(nil, append(whole("etc/os-release"), file("etc/os-release", "ID=alpine\nVERSION_ID=3.20\n"))...)
	wantError(t, err, errkind.Unsupported, `"alpine"`)
	_, err = look(func(r *Recipe) { r.OS = "ubuntu" }, whole()...)
	wantError(t, err, errkind.Mismatch, `"ubuntu"`, `"debian"`)
	_, err = look(func(r *Recipe) { r.Release = "bookworm" }, whole()...)
	wantError(t, err, errkind.Mismatch, `"bookworm"`, `"13"`)
	_, err = look(nil, append(whole("usr/lib/systemd/systemd"), file("usr/lib/systemd/systemd", program(183)), file("usr/lib/systemd/systemd-networkd", ""))...)
	wantError(t, err, errkind.Mismatch, "says amd64", "EM_AARCH64")
}

func TestAptSources(t *testing.T) {
	t.Parallel()
	needRoot(t)
	path, err := unpackAll(t, layer(t,
		file("etc/apt/sources.list", "# comment\ndeb [signed-by=/x y=z] http://mirror.example/a bookworm main contrib # end\ndeb-src http://mirror.example/a bookworm main\n"),
		file("etc/apt/sources.list.d/debian.sources", "Types: deb deb-src\nURIs: http://mirror.example/debian\nSuites: trixie trixie-updates\nComponents: main\nSigned-By:\n -----BEGIN\n .\n\nTypes: deb\nEnabled: no\nURIs: http://mirror.example/off\nSuites: x\n\nTypes: deb\nURIs: http://mirror.example/flat\nSuites: ./\n"),
		file("etc/apt/sources.list.d/other.save", "deb http://mirror.example/save x main\n")))
	must(t, err)
	root, err := os.OpenRoot(path)
	must(t, err)
	defer root.Close()
	got, err := aptsource.Read(root.FS(), linkFS{root}.read)
	want := "deb http://mirror.example/a bookworm main contrib\ndeb http://mirror.example/debian trixie main\ndeb http://mirror.example/debian trixie-updates main\ndeb http://mirror.example/flat ./\n"
	if err != nil || got != want {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestNames: links are followed as in a chroot.
func TestLinksOfTheRoot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	path, err := unpackAll(t, layer(t, link("etc/os-release", "../usr/lib/os-release"), file("usr/lib/os-release", "ID=debian\n"), link("abs", "/usr/lib"), link("up", "../../../../usr/lib"), link("circle", "circle")))
	must(t, err)
	root, err := os.OpenRoot(path)
	must(t, err)
	defer root.Close()
	for name, ok := range map[string]bool{"etc/os-release": true, "abs/os-release": true, "up/os-release": true, "circle": false, "nothing": false} {
		text, err := linkFS{root}.read(name)
		if (err == nil && text == "ID=debian\n") != ok {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	var _ fs.FS = root.FS()
}
