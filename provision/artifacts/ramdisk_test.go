// SPDX-License-Identifier: Apache-2.0

package artifacts

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot/loader"
)

// TestAgentByArchitecture: each node gets the agent for its own processors, and one for
// others is never taken.
func TestAgentByArchitecture(t *testing.T) {
	t.Parallel()
	header := "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00"
	amd64, arm64 := header+"\x3e\x00 amd64", header+"\xb7\x00 arm64"
	x86, grace := &inventory.Hardware{}, &inventory.Hardware{Arch: inventory.ARM64}
	for name, c := range map[string]struct {
		files map[string]string
		nodes []*inventory.Hardware
		want  string // in the error; "": none
	}{
		"one, without its architecture": {map[string]string{"": amd64}, []*inventory.Hardware{x86}, ""},
		"both":                          {map[string]string{"": amd64, "-arm64": arm64}, []*inventory.Hardware{x86, grace, x86}, ""},
		"both by name":                  {map[string]string{"-amd64": amd64, "-arm64": arm64}, []*inventory.Hardware{x86, grace}, ""},
		"a controller of arm64":         {map[string]string{"": arm64, "-amd64": amd64}, []*inventory.Hardware{x86, grace}, ""},
		"no node needs the one that is not there": {map[string]string{"-arm64": arm64}, []*inventory.Hardware{grace}, ""},
		"the other is not there":                  {map[string]string{"": amd64}, []*inventory.Hardware{x86, grace}, "no ELF program for arm64: it is amd64"},
		"the other is not what it says":           {map[string]string{"": amd64, "-arm64": amd64}, []*inventory.Hardware{grace}, "no ELF program for arm64: it is amd64"},
		"none":                                    {nil, []*inventory.Hardware{x86}, "of amd64"},
	} {
		dir := t.TempDir()
		for end, text := range c.files {
			if err := os.WriteFile(filepath.Join(dir, "agent"+end), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		inv := &inventory.Inventory{}
		for _, h := range c.nodes {
			inv.Nodes = append(inv.Nodes, &inventory.Node{Hardware: h})
		}
		r, err := New(inv, dir, nil).Ramdisk(filepath.Join(dir, "agent"))
		switch {
		case c.want != "":
			if errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" {
				t.Errorf("%s: got %v, want one that is NotFound and says %q", name, err, c.want)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			for _, n := range inv.Nodes {
				if r.agents[install.ArchOf(n)] == nil {
					t.Errorf("%s: no agent for %s", name, install.ArchOf(n))
				}
			}
		}
	}
}

// openBare opens the artifacts of an inventory that has nothing yet.
func openBare(t *testing.T) (*inventory.Inventory, Artifacts) {
	t.Helper()
	state, inv := t.TempDir(), &inventory.Inventory{}
	if err := os.MkdirAll(filepath.Join(state, "images"), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := New(inv, state, nil).Open(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return inv, a
}

// TestLoaders: those of a site are what its images for arm64 bring, where they are built.
func TestLoaders(t *testing.T) {
	t.Parallel()
	inv, a := openBare(t)
	want := func(what string, names ...string) {
		t.Helper()
		set, err := a.Loaders()
		if err != nil || !slices.Equal(set.Names(), names) {
			t.Errorf("%s: got %v, %v, want %v", what, set.Names(), err, names)
		}
		for name, b := range set {
			if string(b) != name {
				t.Errorf("%s: %s has the bytes of %q", what, name, b)
			}
		}
	}
	want("no image")
	recipe := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	image := func(arch inventory.Arch, digest string) *inventory.Image {
		return &inventory.Image{Block: inventory.Block{Name: "os"}, Arch: arch, Digest: digest}
	}
	inv.Images = []*inventory.Image{image(inventory.ARM64, recipe("0"))}
	want("an image that is not there")
	inv.Images = append(inv.Images, image(inventory.ARM64, bakeWith(t, a, recipe("1"), "one of a kind that brings none")))
	want("an image without loaders")
	inv.Images = append(inv.Images, image(inventory.AMD64, bakeWith(t, a, recipe("2"), "of x86", images.ShimFile)))
	want("an image of x86")
	inv.Images = append(inv.Images, image(inventory.ARM64, bakeWith(t, a, recipe("3"), "of arm64", images.ShimFile, images.GRUBFile)))
	want("an image of arm64", loader.GRUBARM64, loader.ShimARM64)
}

// TestLoadersTagged: an iPXE of an image is served where nodes of it boot on a VLAN.
func TestLoadersTagged(t *testing.T) {
	t.Parallel()
	inv, a := openBare(t)
	with, without := bakeWith(t, a, "sha256:"+strings.Repeat("1", 64), "with", images.IPXEFile), bakeWith(t, a, "sha256:"+strings.Repeat("2", 64), "without")
	for name, c := range map[string]struct {
		digest string
		tagged bool
		want   string
	}{
		"on a VLAN": {with, true, loader.SNPOnly}, "without a VLAN": {with, false, ""}, "built before": {without, true, ""}, "not built": {"", true, ""},
	} {
		inv.Images = []*inventory.Image{{Block: inventory.Block{Name: "os"}, Digest: c.digest, Tagged: c.tagged}}
		if set, err := a.Loaders(); err != nil || strings.Join(set.Names(), " ") != c.want {
			t.Errorf("%s: %v, %v, want %q", name, set.Names(), err, c.want)
		}
	}
}

// TestLoadersShared: images of one distribution share a shim, which has to start all of their kernels
// where nodes boot with Secure Boot; what is no shim starts none.
func TestLoadersShared(t *testing.T) {
	t.Parallel()
	inv, a := openBare(t)
	image := func(kind, name, n string, secure bool, shim string) *inventory.Image {
		digest := bakeWith(t, a, "sha256:"+strings.Repeat(n, 64), name, images.ShimX64File+"="+shim, images.GRUBX64File, images.MOKX64File)
		return &inventory.Image{Block: inventory.Block{Kind: kind, Name: name}, Arch: inventory.AMD64, Digest: digest, SecureBoot: secure}
	}
	rocky, same := image("rhel", "rocky", "1", true, "a"), image("rhel", "same", "2", true, "a")
	alma, plain, ubuntu := image("rhel", "alma", "3", true, "b"), image("rhel", "plain", "4", false, "b"), image("ubuntu", "ubuntu", "5", true, "b")
	for name, c := range map[string]struct {
		images []*inventory.Image
		want   string // in the error; "": none
	}{
		"one shim":            {[]*inventory.Image{rocky, same}, ""},
		"two distributions":   {[]*inventory.Image{rocky, ubuntu}, ""},
		"without Secure Boot": {[]*inventory.Image{rocky, plain}, ""},
		"another shim":        {[]*inventory.Image{rocky, same, alma}, "odes of image rocky boot with Secure Boot by the shim of image alma"},
		"another, first":      {[]*inventory.Image{alma, rocky, ubuntu}, "odes of image alma boot with Secure Boot by the shim of image rocky"},
	} {
		inv.Images = c.images
		if _, err := a.Loaders(); (err == nil) != (c.want == "") || err != nil && (errkind.Of(err) != errkind.Conflict || errkind.Action(err) == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		digests := map[string]string{"not built": ""}
		for _, i := range c.images {
			digests[i.Name] = i.Digest
		}
		got := a.Unshared(digests)
		if (len(got) == 0) != (c.want == "") || len(got) > 0 && (len(got) != 1 || got[0].Severity != hcl.DiagError || !strings.Contains(strings.ReplaceAll(got[0].Detail, `"`, ""), c.want)) {
			t.Errorf("%s: a plan says %v, want %q", name, got, c.want)
		}
	}
	inv.Images = []*inventory.Image{rocky, alma}
	if got := a.Unshared(map[string]string{"rocky": rocky.Digest, "alma": ""}); len(got) > 0 {
		t.Errorf("one that is not built: %v", got)
	}
}

// TestUnsigned: an image that was built without signed loaders is refused where its nodes boot
// with Secure Boot; one that has them brings them, and one that is not there is refused elsewhere.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	inv, a := openBare(t)
	recipe := func(c string) string { return "sha256:" + strings.Repeat(c, 64) }
	bare, whole, half := bakeWith(t, a, recipe("1"), "bare"), bakeWith(t, a, recipe("2"), "whole", images.ShimX64File, images.GRUBX64File, images.MOKX64File), bakeWith(t, a, recipe("3"), "half", images.ShimX64File)
	older := bakeWith(t, a, recipe("4"), "older", images.ShimX64File, images.GRUBX64File)
	for name, c := range map[string]struct {
		digest string
		secure bool
		want   string // in the error; "": none
	}{
		"without Secure Boot": {bare, false, ""}, "with loaders": {whole, true, ""}, "not built": {"", true, ""}, "not there": {recipe("0"), true, ""},
		"without loaders": {bare, true, "has no shimx64.efi"}, "without GRUB": {half, true, "has no grubx64.efi"}, "without MokManager": {older, true, "has no mmx64.efi"},
	} {
		inv.Images = []*inventory.Image{{Block: inventory.Block{Name: "os"}, Digest: c.digest, SecureBoot: c.secure}}
		got := a.Unsigned(map[string]string{"os": c.digest})
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0].Detail, c.want) || !strings.Contains(got[0].Detail, `Image "os"`)) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
		set, err := a.Loaders()
		if err != nil || set.Has(loader.ShimX64) != (c.secure && (c.digest == whole || c.digest == half || c.digest == older)) || set.Has(loader.MOKX64) != (c.secure && c.digest == whole) {
			t.Errorf("%s: loaders %v, %v", name, set.Names(), err)
		}
	}
}
