// SPDX-License-Identifier: Apache-2.0

package ubuntu

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/debian"
	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// block is an image block with an archive.
func block(release, key string) *inventory.Image {
	return &inventory.Image{Block: inventory.Block{Kind: Kind{}.Name(), Name: "hpc"}, Release: release, Arch: inventory.AMD64,
		Archive: inventory.PackageArchive{URL: "http://mirror.example/ubuntu", Key: key}}
}

// TestMirrors: packages come from the release, its updates and its security suite, whatever
// way the release is written in.
func TestMirrors(t *testing.T) {
	t.Parallel()
	for written, codename := range map[string]string{"22.04": "jammy", "noble": "noble", "24.04.3": "noble", "26.04": "resolute"} {
		i := block(written, "k")
		want := []images.Archive{{URL: i.Archive.URL, Suite: codename}, {URL: i.Archive.URL, Suite: codename + "-updates"}, {URL: i.Archive.URL, Suite: codename + "-security"}}
		if got := (Kind{}).Recipe(i, "").Archives(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", written, got, want)
		}
	}
	i := block("noble", "k")
	i.Archive.Components = []string{"main", "multiverse"}
	got := Kind{}.Recipe(i, "").(recipe).Mirrors
	if want := "deb http://mirror.example/ubuntu noble-updates main multiverse"; !slices.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSnapd: nothing brings snapd unless the block asks for it.
func TestSnapd(t *testing.T) {
	t.Parallel()
	i := block("noble", "k")
	files := func() map[string]string { return Kind{}.Recipe(i, "").(recipe).Of.Files }
	if len(files()) != 1 {
		t.Errorf("without it: %v", files())
	}
	i.Packages = []string{snapd}
	if len(files()) != 0 {
		t.Errorf("with it: %v", files())
	}
}

// TestRecipesKeepTheirDigests: an image that was built, or locked, by an older ironrail
// stays the right one.
func TestRecipesKeepTheirDigests(t *testing.T) {
	t.Parallel()
	r := Kind{}.Recipe(block("noble", ""), "")
	if r.Digest() != "sha256:a516f437af4a61925f84235a5ef17c0d276bcdfbdb47f4ac60813d180f694f9b" || r.Inputs() != "sha256:c63218a430ae01889eb294b00f4b8aa3009f5600c04b9511b19a21a0c56159e3" {
		t.Errorf("the image has digest %q and inputs %q", r.Digest(), r.Inputs())
	}
}

// TestPeerKey: an image stays the right one when its key is published anew with a longer time.
func TestPeerKey(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	key := h.NewKey("archive", "ed25519", "1d")
	first := h.Public(key)
	h.Run("", "--quick-set-expire", key, "2y")
	longer := h.Public(key)
	a, b := Kind{}.Recipe(block("noble", first), ""), Kind{}.Recipe(block("noble", longer), "")
	if first == longer || a.Digest() != b.Digest() || a.Inputs() != b.Inputs() {
		t.Error("a key with a longer time makes another image")
	}
	if other := (Kind{}).Recipe(block("noble", h.Public(h.NewKey("other", "ed25519", "1d"))), ""); a.Digest() == other.Digest() || a.Inputs() == other.Inputs() {
		t.Error("another key makes the same image")
	}
	plain := debian.Recipe{Block: "hpc", Release: "noble", Arch: inventory.AMD64}
	if a.Digest() == plain.Digest() || a.Inputs() == plain.Inputs() {
		t.Error("it is the image of Debian")
	}
}

// TestPeerCheck: what no image can be made of is found before a plan; a site that has no mirror
// yet is warned.
func TestPeerCheck(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	good := h.Public(h.NewKey("archive", "ed25519", "0"))
	check := func(i *inventory.Image) diag.List {
		return Check(&inventory.Inventory{Images: []*inventory.Image{i}}, i.Block)
	}
	if found := check(block("noble", good)); len(found) != 0 {
		t.Errorf("%v", found)
	}
	arm := block("noble", "")
	arm.Arch = inventory.ARM64
	if found := check(arm); len(found) != 0 {
		t.Errorf("a block that is refused as it is: %v", found)
	}
	for want, change := range map[string]func(*inventory.Image){
		"nothing says where its packages come from":     func(i *inventory.Image) { i.Archive = inventory.PackageArchive{} },
		"is no OpenPGP public key":                      func(i *inventory.Image) { i.Archive.Key = "keys/ubuntu.asc" },
		`"ftp://mirror.example" is no URL`:              func(i *inventory.Image) { i.Archive.URL = "ftp://mirror.example" },
		`"http://a:b@mirror.example/ubuntu" is no URL`:  func(i *inventory.Image) { i.Archive.URL = "http://a:b@mirror.example/ubuntu" },
		`"--x y" is no component`:                       func(i *inventory.Image) { i.Archive.Components = []string{"--x y"} },
		`whose signature they have`:                     func(i *inventory.Image) { i.Archive.Key = " " },
		`"http://mirror.example/u [trusted=yes]" is no`: func(i *inventory.Image) { i.Archive.URL = "http://mirror.example/u [trusted=yes]" },
	} {
		i := block("noble", good)
		change(i)
		found := check(i)
		if len(found) != 1 || !strings.Contains(found[0].Detail, want) || (found[0].Severity == diag.Warning) != (i.Archive.URL == "") {
			t.Errorf("%q: %+v", want, found)
		}
	}
}
