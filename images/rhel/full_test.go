// SPDX-License-Identifier: Apache-2.0

//go:build driversfull

package rhel

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// TestPeerLikeRHEL builds an image of kind rhel from repositories that look like those of Rocky 9
// and have Debian's files, and looks at what is in its disk. Another key, a package that is
// another one than the index describes, and one that nobody signed are refused.
func TestPeerLikeRHEL(t *testing.T) {
	peertest.Need(t, "createrepo_c", "debugfs", "dnf", "gpg", "gpgconf", "grub-mkimage", "mtype", "mke2fs", "mmdebstrap", "rpm", "rpmbuild", "unshare")
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	dir := makeRepositories(t)
	var fetched atomic.Int64 // packages
	count := func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, ".rpm") {
			fetched.Add(1)
		}
		return false
	}
	i := &inventory.Image{Block: inventory.Block{Kind: "rhel", Name: "hpc"}, Release: "9", Arch: inventory.AMD64, CryptoPolicy: "FUTURE", Repositories: serve(t, dir, count)}
	tryRefused(t, dir, *i)
	folder, downloads := t.TempDir(), t.TempDir()
	start := time.Now()
	r := Kind{}.Recipe(i, "").(Recipe)
	if err := r.Fetch(t.Context(), downloads, func(string) {}); err != nil {
		t.Fatal(err)
	}
	before := fetched.Load()
	src, err := r.WithDownloads(downloads).Build(t.Context(), folder, func(text string) { t.Logf("%6.1fs %s", time.Since(start).Seconds(), text) })
	if err != nil {
		t.Fatal(err)
	}
	if before < 20 || fetched.Load() != before {
		t.Errorf("%d packages were fetched beforehand, and %d while the image was built", before, fetched.Load()-before)
	}
	if src.System.Distribution != "rhel" || src.System.Release != "9" || src.System.Kernel == "" {
		t.Errorf("the system is %+v", src.System)
	}
	root := filepath.Join(folder, "root")
	lookAtFiles(t, root, src, i)
	lookAtDisk(t, src)
	if out := runIn(t, root, "rpm", "--query", "--queryformat", "%{NAME} %{RSAHEADER:pgpsig}\n", "kernel-core", "rocky-release"); strings.Count(out, "RSA/SHA") != 2 {
		t.Errorf("rpm in the image:\n%s", out)
	}
	if !slices.ContainsFunc(src.Installed.Packages, func(p installed.Package) bool { return p.Name == "kernel-core" && p.Format == installed.RPM }) {
		t.Errorf("the list of packages has no kernel-core: %d, %s", len(src.Installed.Packages), src.Installed.Unread)
	}
	key, err := store.Key(filepath.Join(t.TempDir(), "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.TempDir(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(t.Context(), src, func(string) {}); err != nil {
		t.Error(err)
	}
}

// makeRepositories makes the repositories, and returns their folder.
func makeRepositories(t *testing.T) string {
	t.Helper()
	script, err := filepath.Abs("testdata/repository.sh")
	if err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(t.TempDir(), "made")
	if out, err := exec.CommandContext(t.Context(), "sh", script, t.TempDir(), "bookworm", made, "9.6 linux-image-cloud-amd64").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-4000):])
	}
	return made
}

// serve serves the repositories of a folder. change may answer in the place of a file; nil:
// nothing does.
func serve(t *testing.T, dir string, change func(http.ResponseWriter, *http.Request) bool) []inventory.PackageRepository {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(dir, "key.asc"))
	if err != nil {
		t.Fatal(err)
	}
	files := http.FileServer(http.Dir(dir))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change == nil || !change(w, r) {
			files.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return []inventory.PackageRepository{{Name: "appstream", URL: server.URL + "/AppStream", Key: string(key)}, {Name: "baseos", URL: server.URL + "/BaseOS", Key: string(key)}}
}

// tryRefused tries what must not be installed.
func tryRefused(t *testing.T, dir string, i inventory.Image) {
	t.Helper()
	h := gpgtest.New(t)
	other := h.Public(h.NewKey("other", "rsa3072", "0"))
	strange := i
	strange.Repositories = slices.Clone(i.Repositories)
	strange.Repositories[0].Key, strange.Repositories[1].Key = other, other

	changed := i
	changed.Repositories = serve(t, dir, func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/tzdata-") {
			return false
		}
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(r.URL.Path)))
		if err != nil {
			return false
		}
		b[len(b)-1] ^= 1
		http.ServeContent(w, r, "package.rpm", time.Now(), strings.NewReader(string(b)))
		return true
	})

	unsigned := i
	bare := t.TempDir()
	if err := os.CopyFS(bare, os.DirFS(filepath.Join(dir, "AppStream"))); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"sh", "-c", `rpm --delsign "$1"/*.rpm`, "sh", bare}, {"createrepo_c", "--quiet", bare}} {
		if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	server := httptest.NewServer(http.FileServer(http.Dir(bare)))
	t.Cleanup(server.Close)
	unsigned.Repositories = slices.Clone(i.Repositories)
	unsigned.Repositories[0].URL = server.URL

	lacking := i
	lacking.Packages = []string{"no-such-package"}
	for what, c := range map[string]struct {
		image inventory.Image
		kind  errkind.Kind
		says  string
	}{
		"another key": {strange, errkind.Mismatch, "GPG check FAILED"}, "a changed package": {changed, errkind.Mismatch, "checksum"},
		"a package without a signature": {unsigned, errkind.Mismatch, "is not signed"}, "no such package": {lacking, errkind.NotFound, "no-such-package"},
	} {
		folder := t.TempDir()
		_, err := Kind{}.Recipe(&c.image, "").Build(t.Context(), folder, func(string) {})
		if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || errkind.Action(err) == "" {
			t.Errorf("%s: %v; want one of kind %v that says %q", what, err, c.kind, c.says)
		}
		if _, err := os.Stat(filepath.Join(folder, "root/usr")); err == nil {
			t.Errorf("%s: something was installed", what)
		}
		mounts, err := os.ReadFile("/proc/self/mounts")
		if err != nil || strings.Contains(string(mounts), folder) {
			t.Errorf("%s: %v; something is mounted below %s", what, err, folder)
		}
	}
}

// lookAtFiles looks at files of the root.
func lookAtFiles(t *testing.T, root string, src store.Source, i *inventory.Image) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, "boot/loader/entries/*.conf"))
	id := (&bootdisk.Maker{Seed: src.Recipe}).EntriesID()
	if err != nil || len(found) != 1 || filepath.Base(found[0]) != id+"-"+src.System.Kernel+".conf" {
		t.Fatalf("entries %v, %v; want one named after %s", found, err, id)
	}
	kernel := src.System.Kernel
	for name, want := range map[string][]string{
		"boot/loader/entries/" + filepath.Base(found[0]): {"\nlinux /boot/vmlinuz-" + kernel + "\ninitrd /boot/initramfs-" + kernel + ".img\noptions root=LABEL=ironrail-root ro console=tty0 console=ttyS0,115200\n"},
		"boot/grub2/grubenv":                             {"saved_entry=" + id + "-" + kernel + "\n"},
		"boot/grub2/grub.cfg":                            {"\nblscfg\n"},
		"boot/vmlinuz-" + kernel:                         {"HdrS"},
		"boot/initramfs-" + kernel + ".img":              {""},
		"etc/os-release":                                 {`ID="rocky"`, `VERSION_ID="9.6"`},
		"etc/machine-info":                               {"KERNEL_INSTALL_MACHINE_ID=" + id},
		"etc/fstab":                                      {"LABEL=ironrail-root / ext4"},
		"etc/crypto-policies/config":                     {"FUTURE"},
		"etc/yum.repos.d/rocky.repo":                     {"[baseos]\nenabled=0\n", "[devel]\nenabled=0\n"},
		"etc/yum.repos.d/ironrail-baseos.repo":           {"baseurl=" + i.Repositories[1].URL + "\nenabled=1\ngpgcheck=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-ironrail-baseos\n"},
		"etc/pki/rpm-gpg/RPM-GPG-KEY-ironrail-baseos":    {"BEGIN PGP PUBLIC KEY BLOCK"},
		"etc/default/grub":                               {"GRUB_ENABLE_BLSCFG=true"},
		"var/lib/rpm/rpmdb.sqlite":                       {"SQLite format 3"},
		"usr/lib/systemd/system/NetworkManager.service":  {""},
	} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Error(err)
		}
		for _, w := range want {
			if !strings.Contains(string(b), w) {
				t.Errorf("%s has no %q:\n%.600s", name, w, b)
			}
		}
	}
	for link, want := range map[string]string{"etc/systemd/system/dnf-makecache.timer": "/dev/null", "etc/systemd/system/multi-user.target.wants/sshd.service": "/lib/systemd/system/sshd.service"} {
		if to, err := os.Readlink(filepath.Join(root, link)); err != nil || to != want {
			t.Errorf("%s leads to %q, %v; want %q", link, to, err, want)
		}
	}
	builds := filepath.Dir(filepath.Dir(root))[1:] // dnf may take a folder to lie below the root
	for _, name := range []string{builds, "root/.rpmdb", "var/lib/dpkg/status", "boot/grub/grub.cfg"} {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if out := runIn(t, root, "dnf", "--quiet", "repolist", "--enabled"); strings.Contains(out, "mirrors.example") || !strings.Contains(out, "ironrail-appstream") || !strings.Contains(out, "ironrail-baseos") {
		t.Errorf("dnf in the image:\n%s", out)
	}
}

// lookAtDisk looks at labels and loaders on the disk itself.
func lookAtDisk(t *testing.T, src store.Source) {
	t.Helper()
	at := fmt.Sprintf("%s?offset=%d", src.Disk, bootdisk.ESPStart+bootdisk.ESPSize)
	for name, want := range map[string]string{
		"/etc/fstab": ":etc_t:", "/usr/bin/bash": ":shell_exec_t:", "/usr/sbin/sshd": ":sshd_exec_t:", "/boot/vmlinuz-" + src.System.Kernel: ":boot_t:", "/etc/shadow": ":shadow_t:",
	} {
		if out := run(t, "debugfs", "-R", "ea_get "+name+" security.selinux", at); !strings.Contains(out, want) {
			t.Errorf("%s has no label with %q: %s", name, want, out)
		}
	}
	esp := fmt.Sprintf("%s@@%d", src.Disk, bootdisk.ESPStart)
	for name, want := range map[string]string{
		"EFI/BOOT/BOOTX64.EFI": ".vendor_cert", "EFI/BOOT/grubx64.efi": "MZ", "EFI/rocky/grubx64.efi": "MZ", "EFI/rocky/shimx64.efi": ".vendor_cert", "EFI/BOOT/mmx64.efi": "MZ",
		"EFI/BOOT/grub.cfg": "configfile /boot/grub2/grub.cfg", "EFI/rocky/grub.cfg": "set prefix=($root)/boot/grub2",
	} {
		if out := run(t, "mtype", "-i", esp, "::/"+name); !strings.Contains(out, want) {
			t.Errorf("%s on the EFI system partition has no %q: %.200q", name, want, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "mtype", "-i", esp, "::/EFI/BOOT/fbx64.efi").CombinedOutput(); err == nil {
		t.Errorf("shim's fallback is there: %.100q", out)
	}
	f, err := os.Open(src.Disk)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	head := make([]byte, 512)
	if _, err := f.ReadAt(head, 0); err != nil || head[0] != 0xeb || head[1] != 0x63 {
		t.Errorf("the disk has no GRUB for BIOS: %x, %v", head[:4], err)
	}
}

func run(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v\n%.600s", argv, err, out)
	}
	return string(out)
}

func runIn(t *testing.T, root string, argv ...string) string {
	t.Helper()
	return run(t, append([]string{"chroot", root}, argv...)...)
}
