// SPDX-License-Identifier: Apache-2.0

package rhel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

func block(release, key string) *inventory.Image {
	return &inventory.Image{Block: inventory.Block{Kind: "rhel", Name: "hpc"}, Release: release, Arch: inventory.AMD64,
		Repositories: []inventory.PackageRepository{{Name: "baseos", URL: "http://mirror.example/rocky/$releasever/BaseOS/$basearch/os", Key: key}}}
}

// TestConfiguration: dnf works on the root by the release, and with the keys of the site on the node.
func TestConfiguration(t *testing.T) {
	t.Parallel()
	a := block("9", "").Repositories[0]
	text := repoFile(a, "/etc/key")
	for _, want := range []string{"\n[ironrail-baseos]\n", "\nbaseurl=http://mirror.example/rocky/$releasever/BaseOS/$basearch/os\n", "\ngpgcheck=1\n", "\ngpgkey=file:///etc/key\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q:\n%s", want, text)
		}
	}
	b := newBuilder(Kind{}.Recipe(block("9.4", ""), "").(Recipe), "/build", nil)
	if got := strings.Join(b.dnf().Command("/build/root", "install", "bash"), " "); !strings.HasPrefix(got, "dnf --config=/build/dnf/dnf.conf --installroot=/build/root --releasever=9.4 ") || !strings.HasSuffix(got, " --setopt=cachedir=/build/packages install bash") {
		t.Errorf("got %s", got)
	}
	early := b.early()
	if id := b.disk.EntriesID(); early["etc/machine-info"] != "KERNEL_INSTALL_MACHINE_ID="+id+"\n" || len(id) != 32 || !strings.HasPrefix(early[bootdisk.CommandLineFile], "root=LABEL=ironrail-root ro ") {
		t.Errorf("early: %q", early)
	}
}

// TestDisabled: repositories that packages bring are off, whatever they said.
func TestDisabled(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"[a]\nname=a\nenabled=1\ngpgcheck=1\n\n[b]\nname=b\n": "[a]\nenabled=0\nname=a\ngpgcheck=1\n\n[b]\nenabled=0\nname=b\n",
		"# none\n":                "# none\n",
		"[a]\nenabled = 1\n[b]":   "[a]\nenabled=0\n[b]\nenabled=0\n",
		"[a]\nenabled_metadata=1": "[a]\nenabled=0\nenabled_metadata=1",
	} {
		if got := disabled(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// TestDropFolder: what dnf left under the path of its cache goes, and nothing beside it.
func TestDropFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"srv/own/build/packages/list", "srv/own/kept", "tmp/a/packages/list"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(dropFolder(root, "/srv/own/build/packages"), dropFolder(root, "/tmp/a/packages"), dropFolder(root, "/opt/x/packages")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"srv/own/build": false, "srv/own/kept": true, "tmp/a": false, "tmp": true} {
		if _, err := root.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBoot: entries have to name files below /boot of the root, which GRUB reads them from.
func TestBoot(t *testing.T) {
	t.Parallel()
	b := newBuilder(Kind{}.Recipe(block("9", ""), "").(Recipe), "/build", nil)
	files := func(entry string) fstest.MapFS {
		return fstest.MapFS{
			"boot/grub2/grub.cfg": {Data: []byte(b.recipe.settings()["boot/grub2/grub.cfg"])}, "boot/vmlinuz-5": {}, "boot/initramfs-5.img": {},
			"boot/loader/entries/a-5.conf": {Data: []byte(entry)},
		}
	}
	for want, entry := range map[string]string{
		"":                          "title x\nlinux /boot/vmlinuz-5\ninitrd /boot/initramfs-5.img\noptions ro\n",
		"its linux is /vmlinuz-5":   "linux /vmlinuz-5\ninitrd /boot/initramfs-5.img\noptions ro\n",
		"its initrd is /initramfs-": "linux /boot/vmlinuz-5\ninitrd /initramfs-5.img\noptions ro\n",
		"is not there":              "linux /boot/vmlinuz-6\ninitrd /boot/initramfs-5.img\noptions ro\n",
		"has no options":            "linux /boot/vmlinuz-5\ninitrd /boot/initramfs-5.img\n",
	} {
		err := checkBoot(files(entry), b.disk.Family.Boot.Loader)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestPeerKey: an image stays the right one when a key is published anew with a longer time.
func TestPeerKey(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	key := h.NewKey("packages", "rsa3072", "1d")
	first := h.Public(key)
	h.Run("", "--quick-set-expire", key, "2y")
	longer := h.Public(key)
	a, b := Kind{}.Recipe(block("9", first), ""), Kind{}.Recipe(block("9", longer), "")
	if first == longer || a.Digest() != b.Digest() || a.Inputs() != b.Inputs() {
		t.Error("a key with a longer time makes another image")
	}
	if other := (Kind{}).Recipe(block("9", h.Public(h.NewKey("other", "ed25519", "1d"))), ""); a.Digest() == other.Digest() || a.Inputs() == other.Inputs() {
		t.Error("another key makes the same image")
	}
}

// TestPeerCheck: what no image can be made of is found before a plan; a site that has no mirror
// yet is warned.
func TestPeerCheck(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	good := h.Public(h.NewKey("packages", "rsa3072", "0"))
	check := func(i *inventory.Image) diag.List {
		return Check(&inventory.Inventory{Images: []*inventory.Image{i}}, i.Block)
	}
	arm := block("9", "")
	arm.Arch = inventory.ARM64
	for _, i := range []*inventory.Image{block("9", good), block("10.1", good), arm} {
		if found := check(i); len(found) != 0 {
			t.Errorf("%s: %v", i.Release, found)
		}
	}
	for want, change := range map[string]func(*inventory.Image){
		"nothing says where its packages come from": func(i *inventory.Image) { i.Repositories = nil },
		"is no OpenPGP public key":                  func(i *inventory.Image) { i.Repositories[0].Key = "keys/rocky9.asc" },
		`"ftp://mirror.example" is no URL`:          func(i *inventory.Image) { i.Repositories[0].URL = "ftp://mirror.example" },
		`"http://a:b@mirror.example/r" is no URL`:   func(i *inventory.Image) { i.Repositories[0].URL = "http://a:b@mirror.example/r" },
		`/r\ngpgcheck=0" is no URL`:                 func(i *inventory.Image) { i.Repositories[0].URL = "http://mirror.example/r\ngpgcheck=0" },
		`"../x" is no name`:                         func(i *inventory.Image) { i.Repositories[0].Name = "../x" },
		`"future" is no crypto policy`:              func(i *inventory.Image) { i.CryptoPolicy = "future" },
		"FIPS alone":                                func(i *inventory.Image) { i.CryptoPolicy = "FIPS" },
		"FIPS alone makes":                          func(i *inventory.Image) { i.CryptoPolicy = "FIPS:OSPP" },
	} {
		i := block("9", good)
		change(i)
		found := check(i)
		if len(found) != 1 || !strings.Contains(found[0].Detail, want) || (found[0].Severity == diag.Warning) != (len(i.Repositories) == 0) {
			t.Errorf("%q: %+v", want, found)
		}
	}
}
