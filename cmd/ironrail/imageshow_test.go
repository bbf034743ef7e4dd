// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
)

// listing is the recipe of an image that says what is installed in it.
type listing struct{}

func (listing) Name() string               { return "image.os" }
func (listing) Check() error               { return nil }
func (listing) Digest() string             { return manifest.Digest([]byte("listing")) }
func (listing) Inputs() string             { return listing{}.Digest() }
func (listing) Archives() []images.Archive { return nil }

func (listing) Build(_ context.Context, dir string, _ func(string)) (store.Source, error) {
	src := store.Source{Name: "image.os", Recipe: listing{}.Digest(), Disk: filepath.Join(dir, "disk"), Files: map[string]string{images.StatusFile: filepath.Join(dir, "status")},
		Installed: installed.List{Packages: []installed.Package{{Format: installed.Deb, Name: "bash", Version: "5.2.15-2+b9", Arch: "amd64", License: "GPL-3.0-or-later"}}},
		System:    manifest.System{Distribution: "debian", Release: "12", Arch: "amd64", Kernel: "6.1.0-40-amd64"}, Vendor: &manifest.Vendor{Key: "AB12", File: "disk.img", SHA256: "00ff"}}
	if err := os.WriteFile(src.Disk, bytes.Repeat([]byte{1}, 8<<10), 0o600); err != nil {
		return src, err
	}
	return src, os.WriteFile(src.Files[images.StatusFile], []byte("Package: bash\n"), 0o600)
}

// TestShowImage: an image is found by the name of its block and by the first digits of its
// digest; its packages are those that its kind found, and one whose list is damaged is not shown.
func TestShowImage(t *testing.T) {
	t.Parallel()
	var out, said bytes.Buffer
	a := &app{dir: t.TempDir(), in: os.Stdin, out: &out, err: &said, environ: os.LookupEnv, now: time.Now}
	writeSite := func(digest string) {
		text := fmt.Sprintf("site \"s\" {}\nimage \"debian\" \"os\" {\n  release = \"bookworm\"\n%s}\nimage \"debian\" \"none\" {\n  release = \"trixie\"\n}\n", digest)
		if err := os.WriteFile(filepath.Join(a.dir, "site.hcl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeSite("")
	site, _, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := images.Ensure(t.Context(), listing{}, site.Artifacts.Images, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	writeSite("  digest = \"" + digest + "\"\n")
	run := func(args ...string) (string, error) {
		out.Reset()
		c := a.imageShowCommand()
		c.SetArgs(args)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, name := range []string{"os", digest, digest[:20], strings.TrimPrefix(digest, "sha256:")[:8]} {
		text, err := run(name)
		for _, want := range []string{digest, "debian 12", "6.1.0-40-amd64", "amd64", "packages   1", "disk.img, SHA-256 00ff, signed by AB12: itself", images.SBOMFile, listing{}.Digest()} {
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%s: %v, it does not say %q:\n%s", name, err, want, text)
			}
		}
	}
	for name, want := range map[string]errkind.Kind{"none": errkind.NotFound, "other": errkind.NotFound, digest[:11]: errkind.NotFound} {
		if _, err := run(name); errkind.Of(err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	text, err := run("os", "--sbom")
	if err != nil || !strings.Contains(text, "pkg:deb/debian/bash@5.2.15-2%2Bb9?arch=amd64&distro=debian-12") || !strings.Contains(text, `"licenseDeclared":"GPL-3.0-or-later"`) {
		t.Errorf("%v\n%s", err, text)
	}
	a.json = true
	var got shownImage
	if text, err = run("os"); err != nil || json.Unmarshal([]byte(text), &got) != nil || got.Digest != digest || got.System.Packages != 1 || len(got.Files) != 2 {
		t.Errorf("%v\n%s", err, text)
	}
	path, err := site.Artifacts.Images.Where(digest, images.SBOMFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := run("os", "--sbom"); errkind.Of(err) != errkind.Corrupt || text != "" {
		t.Errorf("a damaged list is printed: %v\n%s", err, text)
	}
}

// unlisted is the recipe of an image whose packages cannot be read.
type unlisted struct{ listing }

func (unlisted) Digest() string { return manifest.Digest([]byte("unlisted")) }

func (unlisted) Build(ctx context.Context, dir string, say func(string)) (store.Source, error) {
	src, err := listing{}.Build(ctx, dir, say)
	src.Recipe, src.Installed = unlisted{}.Digest(), installed.List{Unread: "there is no database of dpkg or rpm"}
	return src, err
}

// TestShowUnread: an image whose packages cannot be read says why.
func TestShowUnread(t *testing.T) {
	t.Parallel()
	key, err := store.Key(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.TempDir(), key)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := images.Ensure(t.Context(), unlisted{}, s, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if err := (&app{out: io.Discard}).printSBOM(t.Context(), s, digest); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "there is no database of dpkg or rpm") {
		t.Errorf("--sbom: %v", err)
	}
	i := shownImage{System: manifest.System{Arch: "amd64", PackagesUnread: "there is no database of dpkg or rpm"}}
	var out bytes.Buffer
	i.page().to(&out)
	if want := "packages   not read: there is no database of dpkg or rpm\n"; !strings.Contains(out.String(), want) {
		t.Errorf("it does not say %q:\n%s", want, out.String())
	}
}
