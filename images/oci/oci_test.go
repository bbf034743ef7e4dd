// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/zstd"

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

// entry is one of a layer; its type is that of a file, where none is given.
type entry struct {
	name, text string
	kind       byte
	link       string
	mode       int64
	uid        int
	xattrs     map[string]string
}

func file(name, text string) entry   { return entry{name: name, text: text} }
func dir(name string) entry          { return entry{name: name, kind: tar.TypeDir, mode: 0o755} }
func link(name, target string) entry { return entry{name: name, kind: tar.TypeSymlink, link: target} }
func hard(name, target string) entry { return entry{name: name, kind: tar.TypeLink, link: target} }
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: files of an image belong to many users")
	}
}

// layer is a tar archive.
func layer(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Uid: e.uid, ModTime: time.Unix(1_700_000_000, 0), Format: tar.FormatPAX}
		if e.kind == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.text))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		for k, v := range e.xattrs {
			if h.PAXRecords == nil {
				h.PAXRecords = map[string]string{}
			}
			h.PAXRecords[xattrPrefix+k] = v
		}
		must(t, w.WriteHeader(h))
		_, err := io.WriteString(w, e.text)
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

func diffOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// unpackAll applies layers to a new root, beside a folder that nothing may touch.
func unpackAll(t *testing.T, layers ...[]byte) (root string, err error) {
	t.Helper()
	needRoot(t)
	top := t.TempDir()
	root = filepath.Join(top, "root")
	must(t, os.Mkdir(root, 0o755))
	must(t, os.Mkdir(filepath.Join(top, "outside"), 0o755))
	must(t, os.WriteFile(filepath.Join(top, "outside/file"), []byte("untouched"), 0o644))
	r, err := os.OpenRoot(root)
	must(t, err)
	defer r.Close()
	u := &unpacker{root: r}
	for _, l := range layers {
		if err = u.apply(t.Context(), bytes.NewReader(l), diffOf(l)); err != nil {
			break
		}
	}
	left, e := os.ReadDir(filepath.Join(top, "outside"))
	must(t, e)
	b, e := os.ReadFile(filepath.Join(top, "outside/file"))
	if e != nil || string(b) != "untouched" || len(left) != 1 {
		t.Errorf("outside of the root: %q, %v, %d files", b, e, len(left))
	}
	list, e := os.ReadDir(top)
	if e != nil || len(list) != 2 {
		t.Errorf("beside the root: %v, %v", list, e)
	}
	return root, err
}

// tree is what is in a folder: names with content, targets of links, "/" for folders.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			all[name] = "/"
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			all[name] = "-> " + to
			return err
		default:
			b, err := os.ReadFile(path)
			all[name] = string(b)
			return err
		}
		return nil
	}))
	return all
}

func TestLayers(t *testing.T) {
	t.Parallel()
	lower := layer(t, dir("etc"), file("etc/kept", "1"), file("etc/gone", "1"), dir("opaque"), file("opaque/old", "1"), dir("opaque/sub"), file("opaque/sub/old", "1"),
		dir("run"), link("var/run", "/run"), link("lib", "usr/lib"), file("lib/x", "1"), file("first", "shared"), dir("was-dir"), file("was-dir/in", "1"), link("was-link", "etc"), file("both", "1"))
	for name, c := range map[string]struct {
		upper []entry
		want  map[string]string // beside, or instead of, the lower layer's
		gone  []string
	}{
		"whiteout":                       {[]entry{file("etc/.wh.gone", "")}, nil, []string{"etc/gone"}},
		"whiteout of a folder":           {[]entry{file(".wh.opaque", "")}, nil, []string{"opaque", "opaque/old", "opaque/sub", "opaque/sub/old"}},
		"whiteout of nothing":            {[]entry{file("etc/.wh.nothing", "")}, nil, nil},
		"whiteout after what is new":     {[]entry{file("both", "2"), file(".wh.both", "")}, map[string]string{"both": "2"}, nil},
		"opaque":                         {[]entry{dir("opaque"), file("opaque/.wh..wh..opq", ""), file("opaque/new", "2")}, map[string]string{"opaque/new": "2"}, []string{"opaque/old", "opaque/sub", "opaque/sub/old"}},
		"opaque behind what is new":      {[]entry{dir("opaque"), file("opaque/sub/new", "2"), file("opaque/.wh..wh..opq", "")}, map[string]string{"opaque/sub/new": "2"}, []string{"opaque/old", "opaque/sub/old"}},
		"AUFS":                           {[]entry{file(".wh..wh.plnk/1.2", ""), file(".wh..wh.aufs", "")}, map[string]string{".wh..wh.plnk": "/", ".wh..wh.plnk/1.2": ""}, nil},
		"hard link to a lower layer":     {[]entry{hard("second", "first")}, map[string]string{"second": "shared"}, nil},
		"file through an absolute link":  {[]entry{file("var/run/pid", "2")}, map[string]string{"run/pid": "2"}, nil},
		"file through a link":            {[]entry{file("lib/y", "2")}, map[string]string{"usr/lib/y": "2"}, nil},
		"hard link through a link":       {[]entry{hard("z", "lib/x")}, map[string]string{"z": "1"}, nil},
		"file for a folder":              {[]entry{file("was-dir", "2")}, map[string]string{"was-dir": "2"}, []string{"was-dir/in"}},
		"folder for a link":              {[]entry{dir("was-link"), file("was-link/a", "2")}, map[string]string{"was-link": "/", "was-link/a": "2"}, nil},
		"file for a link is not written": {[]entry{file("was-link", "2")}, map[string]string{"was-link": "2"}, nil},
		"names from the root":            {[]entry{file("/etc/abs", "2"), file("./etc/dot", "2")}, map[string]string{"etc/abs": "2", "etc/dot": "2"}, nil},
		"devices":                        {[]entry{{name: "dev/sda", kind: tar.TypeBlock}, {name: "dev/null", kind: tar.TypeChar}}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, err := unpackAll(t, lower)
			must(t, err)
			want := tree(t, root)
			root, err = unpackAll(t, lower, layer(t, c.upper...))
			must(t, err)
			for k, v := range c.want {
				want[k] = v
			}
			for _, g := range c.gone {
				delete(want, g)
			}
			got := tree(t, root)
			for k, v := range want {
				if g, ok := got[k]; !ok || g != v {
					t.Errorf("%s is %q, want %q", k, g, v)
				}
				delete(got, k)
			}
			if len(got) > 0 {
				t.Errorf("too much: %v", got)
			}
		})
	}
}

// TestAttributes: a new owner takes setuid bits and capabilities away, so that they come
// after it.
func TestAttributes(t *testing.T) {
	t.Parallel()
	capability := "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" // cap_net_raw=ep
	l := layer(t, dir("d"), entry{name: "d/ping", text: "x", mode: 0o755, uid: 7, xattrs: map[string]string{"security.capability": capability}},
		entry{name: "d/su", text: "x", mode: 0o4755, uid: 9}, hard("d/su2", "d/su"), entry{name: "d/pipe", kind: tar.TypeFifo, mode: 0o600})
	root, err := unpackAll(t, l)
	must(t, err)
	b := make([]byte, 64)
	n, err := getxattr(filepath.Join(root, "d/ping"), "security.capability", b)
	if err != nil || string(b[:n]) != capability {
		t.Errorf("capability %q, %v", b[:n], err)
	}
	info, err := os.Stat(filepath.Join(root, "d/su2"))
	must(t, err)
	if info.Mode() != fs.ModeSetuid|0o755 || uidOf(info) != 9 {
		t.Errorf("mode %v, owner %d", info.Mode(), uidOf(info))
	}
	for _, name := range []string{"d", "d/ping"} {
		info, err := os.Stat(filepath.Join(root, name))
		must(t, err)
		if info.ModTime().Unix() != 1_700_000_000 {
			t.Errorf("%s is of %v", name, info.ModTime())
		}
	}
	if info, err := os.Stat(filepath.Join(root, "d/pipe")); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
		t.Errorf("pipe: %v, %v", info, err)
	}
}

func TestPackedLayers(t *testing.T) {
	t.Parallel()
	plain := layer(t, file("a", strings.Repeat("content ", 1000)))
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, err := g.Write(plain)
	must(t, errors.Join(err, g.Close()))
	z, err := zstd.NewWriter(&zs)
	must(t, err)
	_, err = z.Write(plain)
	must(t, errors.Join(err, z.Close()))
	for name, b := range map[string][]byte{"plain": plain, "gzip": gz.Bytes(), "zstd": zs.Bytes()} {
		r, err := os.OpenRoot(t.TempDir())
		must(t, err)
		u := &unpacker{root: r}
		if os.Geteuid() == 0 {
			if err := u.apply(t.Context(), bytes.NewReader(b), diffOf(plain)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		r.Close()
	}
	r, err := os.OpenRoot(t.TempDir())
	must(t, err)
	defer r.Close()
	for name, b := range map[string][]byte{"cut gzip": gz.Bytes()[:gz.Len()/2], "cut zstd": zs.Bytes()[:zs.Len()/2], "no archive": bytes.Repeat([]byte("x"), 2048), "of another digest": append(bytes.Clone(plain), 0)} {
		u := &unpacker{root: r}
		if err := u.apply(t.Context(), bytes.NewReader(b), diffOf(plain)); errkind.Of(err) != errkind.Corrupt {
			t.Errorf("%s: %v; want it corrupt", name, err)
		}
	}
}

// TestHostileLayers: whatever a layer says, nothing outside of the root is read or
// written; unpackAll looks.
func TestHostileLayers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entries []entry
		refused bool
	}{
		"up":                          {[]entry{file("../outside/file", "bad")}, true},
		"up in the middle":            {[]entry{dir("a"), file("a/../../outside/file", "bad")}, true},
		"absolute name":               {[]entry{file("/outside/file", "inside")}, false},
		"absolute link":               {[]entry{link("a", "/"), file("a/outside/file", "inside")}, false},
		"link up":                     {[]entry{link("a", "../../../../../.."), file("a/outside/file", "inside")}, false},
		"link to a link":              {[]entry{link("a", "b/.."), link("b", "../outside"), file("a/outside/file", "inside")}, false},
		"file over a link outside":    {[]entry{link("a", "../outside/file"), file("a", "inside")}, false},
		"hard link outside":           {[]entry{hard("a", "../outside/file")}, true},
		"hard link by an absolute":    {[]entry{hard("a", "/outside/file")}, true},
		"hard link through a link":    {[]entry{link("l", "../outside"), hard("a", "l/file")}, true},
		"write through a hard link":   {[]entry{link("l", "../outside/file"), hard("a", "l"), file("a", "inside")}, false},
		"whiteout of up":              {[]entry{file(".wh...", "")}, true},
		"whiteout of the folder":      {[]entry{file(".wh..", "")}, true},
		"whiteout of no name":         {[]entry{file(".wh.", "")}, true},
		"whiteout through a link":     {[]entry{link("a", "../outside"), file("a/.wh.file", "")}, false},
		"opaque through a link":       {[]entry{link("a", "../outside"), file("a/.wh..wh..opq", "")}, false},
		"folder over a link":          {[]entry{link("a", "../outside"), dir("a"), file("a/file", "inside")}, false},
		"circle":                      {[]entry{link("a", "b"), link("b", "a"), file("a/x", "")}, true},
		"file as a folder":            {[]entry{file("a", ""), file("a/b", "")}, true},
		"device outside":              {[]entry{link("a", "../outside"), {name: "a/sda", kind: tar.TypeBlock}}, false},
		"pipe outside":                {[]entry{link("a", "../outside"), {name: "a/pipe", kind: tar.TypeFifo}}, false},
		"attributes through the root": {[]entry{{name: "../outside", kind: tar.TypeDir, mode: 0o777}}, true},
		"unknown type":                {[]entry{{name: "a", kind: 'Z'}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := unpackAll(t, layer(t, c.entries...))
			if (err != nil) != c.refused {
				t.Errorf("got %v", err)
			}
		})
	}
}

// imageOf is an image of layers.
func imageOf(t *testing.T, arch string, layers ...[]byte) v1.Image {
	t.Helper()
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers"}})
	must(t, err)
	for _, l := range layers {
		image, err = mutate.AppendLayers(image, static.NewLayer(l, types.OCIUncompressedLayer))
		must(t, err)
	}
	return image
}

func digestText(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	h, err := of.Digest()
	must(t, err)
	return h.String()
}

// layoutOf writes an OCI layout.
func layoutOf(t *testing.T, image v1.Image) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout")
	p, err := layout.Write(path, empty.Index)
	must(t, err)
	must(t, p.AppendImage(image, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": "v1"})))
	return path
}

// builderOf is a build of a source.
func builderOf(t *testing.T, source string, change ...func(*inventory.Image)) *builder {
	t.Helper()
	i := inventory.Image{Block: inventory.Block{Name: "hpc", Kind: kindName}, Source: source, Arch: inventory.AMD64}
	for _, f := range change {
		f(&i)
	}
	r := Kind{}.Recipe(&i, "").(Recipe)
	must(t, r.Check())
	dir := t.TempDir()
	return &builder{recipe: r, disk: bootdisk.Maker{Dir: dir, Root: filepath.Join(dir, "root"), Say: func(string) {}, Arch: r.Arch}}
}

// wantError compares an error's kind and words.
func wantError(t *testing.T, err error, kind errkind.Kind, words ...string) {
	t.Helper()
	if errkind.Of(err) != kind {
		t.Errorf("got %v (%v), want it %v", err, errkind.Of(err), kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

// TestPackagesAreListed: what is installed is known, also of an image that no driver stack
// can be added to.
func TestPackagesAreListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "var/lib/dpkg"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "var/lib/dpkg/status"), []byte("Package: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2\n"), 0o644))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	b := &builder{disk: bootdisk.Maker{Say: func(string) {}}}
	must(t, b.keepPackages(root))
	if p := b.installed.Packages; len(p) != 1 || p[0].Name != "bash" || len(b.kept) > 0 {
		t.Errorf("packages %+v, kept %v", b.installed, b.kept)
	}
}
