// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/inventory"
)

// arm64Files is a folder whose folder `packages` has the trees of shim-signed and
// grub-efi-arm64-signed of Debian 13 for arm64.
const arm64Files = "IRONRAIL_TEST_ARM64"

func armMaker(t *testing.T) *Maker {
	t.Helper()
	family, _ := distribution.Find(distribution.Debian)
	m := &Maker{Family: family, Arch: inventory.ARM64, Dir: t.TempDir(), Seed: "sha256:test", Say: func(string) {}}
	m.Root = m.Path("root")
	return m
}

func put(t *testing.T, path, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestPlaceSigned(t *testing.T) {
	t.Parallel()
	m := armMaker(t)
	for _, s := range signedARM64 {
		put(t, filepath.Join(m.Path(loadersDir), s.paths[0]), s.paths[0])
	}
	must(t, m.placeSigned(signedARM64))
	for name, want := range map[string]string{
		"EFI/BOOT/BOOTAA64.EFI": "usr/lib/shim/shimaa64.efi.signed", "EFI/BOOT/grubaa64.efi": "usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed",
		images.ShimFile: "usr/lib/shim/shimaa64.efi.signed", images.GRUBFile: "usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed",
	} {
		if got, err := os.ReadFile(m.Path(name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if files := slices.Sorted(maps.Keys(m.BootFiles())); !slices.Equal(files, []string{images.GRUBFile, images.ShimFile}) {
		t.Errorf("files for the network: %v", files)
	}
	if files := (&Maker{Arch: inventory.AMD64}).BootFiles(); len(files) != 0 {
		t.Errorf("files of amd64: %v", files)
	}
	if err := armMaker(t).placeSigned(signedARM64); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "package shim-signed") {
		t.Errorf("without packages: %v", err)
	}
	if err := armMaker(t).MakeLoaders(t.Context()); errkind.Of(err) != errkind.Internal {
		t.Errorf("without an archive: %v", err)
	}
}

// TestSecureBootLoaders: an image for Secure Boot has Debian's loaders for UEFI, and none that
// is made here; the one for BIOS stays.
func TestSecureBootLoaders(t *testing.T) {
	t.Parallel()
	family, _ := distribution.Find(distribution.Debian)
	m := &Maker{Family: family, SecureBoot: true, Dir: t.TempDir(), Seed: "sha256:test", Say: func(string) {}}
	m.Root = m.Path("root")
	for _, s := range m.platform().signed {
		put(t, filepath.Join(m.Path(loadersDir), s.paths[0]), s.paths[0])
	}
	must(t, m.placeSigned(m.platform().signed))
	for name, want := range map[string]string{
		"EFI/BOOT/BOOTX64.EFI": "usr/lib/shim/shimx64.efi.signed", "EFI/BOOT/grubx64.efi": "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
		images.ShimX64File: "usr/lib/shim/shimx64.efi.signed", images.GRUBX64File: "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
		"EFI/BOOT/mmx64.efi": "usr/lib/shim/mmx64.efi.signed", images.MOKX64File: "usr/lib/shim/mmx64.efi.signed",
	} {
		if got, err := os.ReadFile(m.Path(name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if files := slices.Sorted(maps.Keys(m.BootFiles())); !slices.Equal(files, []string{images.GRUBX64File, images.MOKX64File, images.ShimX64File}) {
		t.Errorf("files for the network: %v", files)
	}
	if made := m.platform().loaders; len(made) != 1 || made[0].file != coreFile || len(platformOf(m.Arch).loaders) != 2 {
		t.Errorf("made here: %+v, without Secure Boot %+v", made, platformOf(m.Arch).loaders)
	}
}

// TestUbuntuLoaders: those of Ubuntu are Canonical's, by the names that its packages have, old and new.
func TestUbuntuLoaders(t *testing.T) {
	t.Parallel()
	for _, shim := range []string{"usr/lib/shim/shimx64.efi.signed.latest", "usr/lib/shim/shimx64.efi.signed"} {
		family, _ := distribution.Find(distribution.Ubuntu)
		m := &Maker{Family: family, SecureBoot: true, Dir: t.TempDir(), Say: func(string) {}}
		for _, name := range []string{shim, "usr/lib/shim/mmx64.efi", "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed"} {
			put(t, filepath.Join(m.Path(loadersDir), name), name)
		}
		if err := m.placeSigned(m.platform().signed); errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "package grub-efi-amd64-signed has no usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed") {
			t.Errorf("without a GRUB for the network: %v", err)
		}
		put(t, filepath.Join(m.Path(loadersDir), "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"), "net")
		must(t, m.placeSigned(m.platform().signed))
		if got, err := os.ReadFile(m.Path("EFI/BOOT/BOOTX64.EFI")); err != nil || string(got) != shim {
			t.Errorf("shim is %q, %v", got, err)
		}
	}
}

// makeGRUB makes an image of GRUB with modules, at a name below a maker's folder.
func makeGRUB(t *testing.T, m *Maker, name, prefix string, modules ...string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(m.Path(name)), 0o755))
	must(t, m.Run(t.Context(), nil, append([]string{"grub-mkimage", "-O", "x86_64-efi", "-d", "/usr/lib/grub/x86_64-efi", "-p", prefix, "-o", m.Path(name)}, modules...)...))
}

// TestPeerPlaceConfig: what signed GRUBs have built in is read from them, and the configuration lies
// where the one of the disk looks for it.
func TestPeerPlaceConfig(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "grub-mkimage", "/usr/lib/grub/x86_64-efi/kernel.img")
	debian, _ := distribution.Find(distribution.Debian)
	rhel, _ := distribution.Find(distribution.RHEL)
	layouts := append(slices.Clone(signedNeeds), "search_fs_uuid", "mdraid1x")
	for name, c := range map[string]struct {
		family    distribution.Family
		disk, net []string
		prefix    string
		storage   []string
		text      string // of the configuration
		err       string
	}{
		"one disk":              {debian, signedNeeds, netNeeds, "/EFI/ubuntu", nil, signedConfig, ""},
		"entries":               {rhel, signedNeeds, netNeeds, "/EFI/rocky", nil, stubOf(rhel.Boot.Loader), ""},
		"a layout":              {debian, layouts, netNeeds, "/EFI/debian", []string{inventory.StorageRAID, inventory.StorageTree}, signedLayoutConfig, ""},
		"no LVM":                {debian, layouts, netNeeds, "/EFI/debian", []string{inventory.StorageLVM}, "", "no lvm built in"},
		"no HTTP":               {debian, signedNeeds, []string{"configfile", "linux", "sleep", "tftp"}, "/EFI/debian", nil, "", "no http built in"},
		"a prefix that goes up": {debian, signedNeeds, netNeeds, "/EFI/../..", nil, "", "is no folder"},
		"a prefix of no folder": {debian, signedNeeds, netNeeds, "EFI", nil, "", "is no folder"},
	} {
		m := &Maker{Family: c.family, SecureBoot: true, Storage: c.storage, Dir: t.TempDir(), Say: func(string) {}}
		makeGRUB(t, m, "EFI/BOOT/grubx64.efi", c.prefix, c.disk...)
		makeGRUB(t, m, images.GRUBX64File, "/grub", c.net...)
		err := m.placeConfig()
		if (err == nil) != (c.err == "") || err != nil && (errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := os.ReadFile(m.Path(c.prefix + "/grub.cfg")); string(got) != c.text {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestPeerTakeEFI: the configuration of a GRUB of the packages lies beside it, in the folder of its vendor and
// where it looks for it, whether nodes boot with Secure Boot or not; a GRUB that cannot be read has it beside
// it.
func TestPeerTakeEFI(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "grub-mkimage", "/usr/lib/grub/x86_64-efi/kernel.img")
	rhel, _ := distribution.Find(distribution.RHEL)
	l := rhel.Boot.Loader
	for prefix, want := range map[string][]string{
		"/EFI/rocky": {"EFI/BOOT", "EFI/rocky"}, "/EFI/other": {"EFI/BOOT", "EFI/rocky", "EFI/other"}, "/grub": {"EFI/BOOT", "EFI/rocky", "grub"}, "": {"EFI/BOOT", "EFI/rocky"},
	} {
		m := &Maker{Family: rhel, Dir: t.TempDir(), Say: func(string) {}}
		m.Root = m.Path("root")
		vendor := "root/" + l.EFI + "/rocky/"
		put(t, m.Path(vendor+shimEFI), "shim")
		if prefix == "" {
			put(t, m.Path(vendor+grubEFI), "no GRUB")
		} else {
			makeGRUB(t, m, vendor+grubEFI, prefix, signedNeeds...)
		}
		root, err := os.OpenRoot(m.Root)
		must(t, err)
		must(t, m.takeEFI(root, l))
		must(t, root.Close())
		for _, dir := range want {
			if got, err := os.ReadFile(m.Path(dir + "/grub.cfg")); string(got) != stubOf(l) {
				t.Errorf("prefix %q: %s/grub.cfg is %q, %v", prefix, dir, got, err)
			}
		}
	}
}

// TestPeerCheckChain: a kernel or a GRUB that is not signed by whom shim trusts is refused, as
// that of another distribution is. shim and GRUB are Debian's.
func TestPeerCheckChain(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "sbsign", "openssl", "/usr/lib/ipxe")
	from := os.Getenv(securePackages)
	if from == "" {
		t.Skip("needs " + securePackages + ": a folder with the folder packages, the trees of shim-signed, shim-helpers-amd64-signed and grub-efi-amd64-signed of Debian 13")
	}
	debian, _ := distribution.Find(distribution.Debian)
	m := &Maker{Family: debian, SecureBoot: true, Dir: t.TempDir(), Say: func(string) {}, kernel: "6.1"}
	must(t, os.Symlink(filepath.Join(from, "packages"), m.Path(loadersDir)))
	must(t, m.placeSigned(m.platform().signed))
	must(t, m.Run(t.Context(), nil, "openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=Canonical Ltd. Master Certificate Authority", "-keyout", "key", "-out", "crt"))
	must(t, m.Run(t.Context(), nil, "sbsign", "--key", "key", "--cert", "crt", "--output", "other", "/usr/lib/ipxe/snponly.efi"))
	ours, err := os.ReadFile(m.Path(images.GRUBX64File))
	must(t, err)
	other, err := os.ReadFile(m.Path("other"))
	must(t, err)
	plain, err := os.ReadFile("/usr/lib/ipxe/snponly.efi")
	must(t, err)
	for name, c := range map[string]struct {
		file    string
		content []byte
		want    string
	}{
		"signed by Debian":      {images.KernelFile, ours, ""},
		"signed by Canonical":   {images.KernelFile, other, "kernel 6.1: it is not signed by Debian Secure Boot CA, whom shim trusts (it is signed by: Canonical Ltd. Master Certificate Authority)"},
		"signed by nobody":      {images.KernelFile, plain, "(it is signed by: nobody)"},
		"no program":            {images.KernelFile, []byte("no program"), "no program for UEFI"},
		"another GRUB":          {"EFI/BOOT/grubx64.efi", other, "GRUB of the disk: it is not signed by"},
		"another network GRUB":  {images.GRUBX64File, plain, "GRUB of the network: it is not signed by"},
		"a shim without a name": {images.ShimX64File, plain, "no shim"},
	} {
		put(t, m.Path(images.KernelFile), string(ours))
		was, err := os.ReadFile(m.Path(c.file))
		must(t, err)
		must(t, os.WriteFile(m.Path(c.file), c.content, 0o644))
		if err := m.checkChain(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.WriteFile(m.Path(c.file), was, 0o644))
	}
}

func TestPeerSignedConfigIsGRUBs(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "grub-script-check")
	file := filepath.Join(t.TempDir(), "grub.cfg")
	put(t, file, signedConfig)
	if out, err := exec.CommandContext(t.Context(), "grub-script-check", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPeerSignedGrubStarts boots a disk of arm64 by shim and the signed GRUB, until the
// node's configuration was read from the root: on AAVMF without keys, and with those of Microsoft.
func TestPeerSignedGrubStarts(t *testing.T) {
	t.Parallel()
	const code = "/usr/share/AAVMF/AAVMF_CODE.fd"
	peertest.Need(t, "qemu-system-aarch64", code, "mke2fs", "mkfs.vfat", "mcopy", "sgdisk")
	from := os.Getenv(arm64Files)
	if from == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and " + arm64Files + ": a folder with the folder packages, the trees of shim-signed and grub-efi-arm64-signed of Debian 13 for arm64")
	}
	m := armMaker(t)
	must(t, os.Symlink(filepath.Join(from, "packages"), m.Path(loadersDir)))
	put(t, filepath.Join(m.Root, "boot/grub/grub.cfg"), grubConfig(m.Family, m.Arch))
	put(t, filepath.Join(m.Root, "boot/grub/ironrail.cfg"), "echo reached $root $prefix $grub_platform $grub_cpu end\nhalt\n")
	must(t, m.placeSigned(signedARM64))
	must(t, m.placeConfig())
	must(t, m.MakeDisk(t.Context()))
	out, err := tool.Runner{}.Output(t.Context(), "sgdisk", "-p", m.Path(DiskFile))
	if err != nil || strings.Contains(string(out), "bios") || !strings.Contains(string(out), "root") {
		t.Errorf("sgdisk: %v\n%s", err, out)
	}
	const want = "reached hd0,gpt3 (hd0,gpt3)/boot/grub efi arm64 end"
	for _, vars := range []string{"/usr/share/AAVMF/AAVMF_VARS.fd", armSecureVars} {
		if said := armConsole(t, vars, m.Path(DiskFile), " end"); !strings.Contains(said, want) {
			t.Errorf("%s: the console does not say %q:\n%s", filepath.Base(vars), want, said)
		}
	}
}

// armSecureVars are variables of AAVMF with Microsoft's keys: it enforces Secure Boot.
const armSecureVars = "/usr/share/AAVMF/AAVMF_VARS.ms.fd"

// armConsole is what a machine of arm64 says, with variables of its firmware, until it says text.
func armConsole(t *testing.T, vars, disk, text string) string {
	t.Helper()
	const code = "/usr/share/AAVMF/AAVMF_CODE.fd"
	return consoleOf(t, "qemu-system-aarch64", []string{"-machine", "virt", "-cpu", "cortex-a57", "-accel", "tcg,tb-size=128", "-m", "768", "-display", "none", "-nic", "none", "-no-reboot",
		"-serial", "stdio", "-monitor", "none", "-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + code, "-drive", "if=pflash,format=raw,unit=1,snapshot=on,file=" + vars,
		"-drive", "file=" + disk + ",if=none,id=d,format=raw,snapshot=on,file.locking=off", "-device", "virtio-blk-pci,drive=d,bootindex=0"}, text)
}

// TestPeerSecureBootARM64 boots a disk of arm64 by AAVMF with Microsoft's keys, shim and the signed
// GRUB to Debian's kernel, which is locked down and whose signature is the one that an image asks for;
// one of which bytes were changed is refused.
func TestPeerSecureBootARM64(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "qemu-system-aarch64", "/usr/share/AAVMF/AAVMF_CODE.fd", "mke2fs", "mkfs.vfat", "mcopy", "sgdisk")
	from, path := packagesOf(t, arm64Files, "shim-signed, shim-helpers-arm64-signed, grub-efi-arm64-signed and linux-image-arm64 of Debian 13")
	signed, err := os.ReadFile(path)
	must(t, err)
	for name, c := range map[string]struct {
		kernel []byte
		want   string
	}{
		"signed":  {signed, "Kernel is locked down from EFI Secure Boot"},
		"changed": {append(slices.Clone(signed[:len(signed)-100_000]), make([]byte, 100_000)...), "bad shim signature"},
	} {
		m := armMaker(t)
		m.SecureBoot = true
		must(t, os.Symlink(filepath.Join(from, "packages"), m.Path(loadersDir)))
		put(t, filepath.Join(m.Root, "boot/grub/grub.cfg"), grubConfig(m.Family, m.Arch))
		put(t, filepath.Join(m.Root, "boot/grub/ironrail.cfg"), "linux /vmlinuz console=ttyAMA0 panic=-1\nboot\n")
		put(t, filepath.Join(m.Root, "vmlinuz"), string(c.kernel))
		put(t, m.Path(images.KernelFile), string(c.kernel))
		must(t, m.placeSigned(m.platform().signed))
		must(t, m.placeConfig())
		if err := m.checkChain(); (err == nil) != (name == "signed") {
			t.Errorf("%s: %v", name, err)
		}
		must(t, m.MakeDisk(t.Context()))
		if said := armConsole(t, armSecureVars, m.Path(DiskFile), c.want); !strings.Contains(said, c.want) {
			t.Errorf("%s: the console does not say %q:\n%s", name, c.want, said)
		}
	}
}

// securePackages is a folder whose folder `packages` has the trees of shim-signed,
// grub-efi-amd64-signed and linux-image-amd64 of Debian 13.
const securePackages = "IRONRAIL_TEST_SECUREBOOT"

// packagesOf is the folder that an environment variable names, and the path of the one kernel in it: the
// test is skipped without them, or without root.
func packagesOf(t *testing.T, variable, packages string) (from, kernel string) {
	t.Helper()
	from = os.Getenv(variable)
	if from == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and " + variable + ": a folder with the folder packages, the trees of " + packages)
	}
	kernels, err := filepath.Glob(filepath.Join(from, "packages/boot/vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		t.Fatalf("kernels %v, %v", kernels, err)
	}
	return from, kernels[0]
}

// TestPeerSecureBootDisk boots a disk by OVMF with Microsoft's keys, shim and the signed GRUB to
// Debian's kernel, which is locked down; one that nobody signed is refused.
func TestPeerSecureBootDisk(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "qemu-system-x86_64", secureCode, "mke2fs", "mkfs.vfat", "mcopy", "sgdisk", "grub-mkimage", "/usr/lib/grub/i386-pc/boot.img")
	from, path := packagesOf(t, securePackages, "shim-signed, grub-efi-amd64-signed and linux-image-amd64 of Debian 13")
	family, _ := distribution.Find(distribution.Debian)
	signed, err := os.ReadFile(path)
	must(t, err)
	for name, c := range map[string]struct {
		kernel []byte
		want   string
	}{
		"signed":  {signed, "Kernel is locked down from EFI Secure Boot"},
		"changed": {append(slices.Clone(signed[:len(signed)-100_000]), make([]byte, 100_000)...), "bad shim signature"},
	} {
		m := &Maker{Family: family, SecureBoot: true, Dir: t.TempDir(), Seed: "sha256:test", Say: func(string) {}}
		m.Root = m.Path("root")
		must(t, os.Symlink(filepath.Join(from, "packages"), m.Path(loadersDir)))
		put(t, filepath.Join(m.Root, "boot/grub/grub.cfg"), grubConfig(m.Family, m.Arch))
		put(t, filepath.Join(m.Root, "boot/grub/ironrail.cfg"), "linux /vmlinuz console=ttyS0 panic=-1\nboot\n")
		put(t, filepath.Join(m.Root, "vmlinuz"), string(c.kernel))
		signedDisk(t, m)
		if said := secureConsole(t, m.Path(DiskFile), c.want); !strings.Contains(said, c.want) {
			t.Errorf("%s: the console does not say %q:\n%s", name, c.want, said)
		}
	}
}

// entriesOf is a custom.cfg that stands for blscfg, which Debian's GRUB does not have: it reads an
// entry as a script, whose kernel is not found until its options come.
const entriesOf = `function title { true; }
function version { true; }
function options {
  set root=$bls_root
  linux /boot/vmlinuz-$bls_release $*
  initrd /boot/initramfs-$bls_release.img
}
function blscfg {
  for entry in /boot/loader/entries/*.conf; do
    regexp --set=1:bls_release '/[0-9a-f]*-([^/]*)\.conf$' "$entry"
    menuentry "$entry" --id "$entry" "$entry" "$bls_release" {
      bls_release="$3"
      bls_root=$root
      set root=none
      source ($bls_root)$2
    }
  done
}
`

// TestPeerSecureBootEntries boots a disk of the kind of RHEL, whose one GRUB is for the network too, by
// OVMF with Microsoft's keys: through shim, the configuration in the folder that is built into GRUB and
// a menu of entries to a kernel that is locked down and has the options of its entry.
func TestPeerSecureBootEntries(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "qemu-system-x86_64", secureCode, "mke2fs", "mkfs.vfat", "mcopy", "sgdisk", "grub-mkimage", "/usr/lib/grub/i386-pc/boot.img")
	from, path := packagesOf(t, securePackages, "shim-signed, shim-helpers-amd64-signed, grub-efi-amd64-signed and linux-image-amd64 of Debian 13")
	family, _ := distribution.Find(distribution.RHEL)
	m := &Maker{Family: family, SecureBoot: true, Dir: t.TempDir(), Seed: "sha256:test", Say: func(string) {}}
	m.Root = m.Path("root")
	l, vendor := family.Boot.Loader, filepath.Join(m.Root, family.Boot.Loader.EFI, "rocky")
	for to, name := range map[string]string{
		filepath.Join(vendor, "shimx64.efi"): "usr/lib/shim/shimx64.efi.signed", filepath.Join(vendor, "mmx64.efi"): "usr/lib/shim/mmx64.efi.signed",
		filepath.Join(vendor, "grubx64.efi"):       "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
		filepath.Join(m.Root, "boot/vmlinuz-6.12"): strings.TrimPrefix(path, filepath.Join(from, "packages")+"/"),
		m.Path(images.KernelFile):                  strings.TrimPrefix(path, filepath.Join(from, "packages")+"/"),
	} {
		b, err := os.ReadFile(filepath.Join(from, "packages", name))
		must(t, err)
		put(t, to, string(b))
	}
	put(t, filepath.Join(m.Root, l.Menu()), entriesMenu)
	put(t, filepath.Join(m.Root, l.Folder, "custom.cfg"), entriesOf)
	put(t, filepath.Join(m.Root, "boot/initramfs-6.12.img"), initrdOf(t, []byte("no program")))
	put(t, filepath.Join(m.Root, "boot/loader/entries/0123abcd-6.12.conf"), "title Rocky\nversion 6.12\nlinux /boot/vmlinuz-6.12\ninitrd /boot/initramfs-6.12.img\noptions console=ttyS0 panic=-1 reached=entry\n")
	root, err := os.OpenRoot(m.Root)
	must(t, err)
	defer root.Close()
	must(t, m.takeEFI(root, l))
	must(t, m.takeNetwork())
	must(t, m.Run(t.Context(), nil, slices.Concat([]string{"grub-mkimage", "-O", "i386-pc", "-d", grubBIOS, "-p", grubPrefix, "-o", m.Path(coreFile)}, grubModules, []string{"biosdisk"})...))
	must(t, os.MkdirAll(filepath.Join(m.Root, l.BIOS), 0o755))
	boot, err := os.ReadFile(filepath.Join(grubBIOS, bootImage))
	must(t, err)
	put(t, filepath.Join(m.Root, l.BIOS, bootImage), string(boot))
	must(t, m.MakeDisk(t.Context()))
	const unpacked = "Trying to unpack rootfs image as initramfs"
	said := secureConsole(t, m.Path(DiskFile), unpacked)
	for _, want := range []string{unpacked, "Kernel is locked down from EFI Secure Boot", "reached=entry"} {
		if !strings.Contains(said, want) {
			t.Errorf("the console does not say %q:\n%s", want, said)
		}
	}
	if files := slices.Sorted(maps.Keys(m.BootFiles())); !slices.Equal(files, []string{images.GRUBX64File, images.MOKX64File, images.ShimX64File}) {
		t.Errorf("files for the network: %v", files)
	}
}

// signedDisk makes the disk of a maker whose signed loaders are unpacked.
func signedDisk(t *testing.T, m *Maker) {
	t.Helper()
	must(t, m.placeSigned(m.platform().signed))
	must(t, m.placeConfig())
	for _, l := range m.platform().loaders {
		must(t, m.Run(t.Context(), nil, slices.Concat([]string{"grub-mkimage", "-O", l.format, "-d", filepath.Dir(l.part), "-p", grubPrefix, "-o", m.Path(l.file)}, grubModules, l.modules)...))
	}
	must(t, m.MakeDisk(t.Context()))
}

// OVMF that enforces Secure Boot, and its variables with Microsoft's keys.
const (
	secureCode = "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd"
	secureVars = "/usr/share/OVMF/OVMF_VARS_4M.ms.fd"
)

// secureConsole is what a machine with Secure Boot says, which starts from a disk, until it says
// text.
func secureConsole(t *testing.T, disk, text string) string {
	t.Helper()
	return console(t, []string{"-machine", "q35,smm=on", "-accel", "tcg,tb-size=128", "-m", "512", "-display", "none", "-nic", "none", "-no-reboot",
		"-global", "driver=cfi.pflash01,property=secure,value=on", "-serial", "stdio", "-monitor", "none",
		"-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + secureCode, "-drive", "if=pflash,format=raw,unit=1,snapshot=on,file=" + secureVars,
		"-drive", "file=" + disk + ",if=none,id=d,format=raw,snapshot=on,file.locking=off", "-device", "virtio-blk-pci,drive=d,bootindex=0"}, text)
}

// TestPeerSecureBootFindsRoot: Debian's signed GRUB has built in what the roots of layouts lie on.
// On OVMF with Microsoft's keys it finds the root of the image's own disk by its label, and one of
// XFS by its UUID, on a partition and in a volume group, by what the agent writes.
func TestPeerSecureBootFindsRoot(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "qemu-system-x86_64", secureCode, "mke2fs", "mkfs.vfat", "mkfs.xfs", "mcopy", "sgdisk", "grub-mkimage", "/usr/lib/grub/i386-pc/boot.img")
	from := os.Getenv(securePackages)
	if from == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and " + securePackages + ": a folder with the folder packages, the trees of shim-signed, shim-helpers-amd64-signed and grub-efi-amd64-signed of Debian 13")
	}
	const uuid, config = "11111111-2222-4333-8444-555555555555", "echo reached $root $prefix $grub_platform end\nhalt\n"
	family, _ := distribution.Find(distribution.Debian)
	m := &Maker{Family: family, SecureBoot: true, Dir: t.TempDir(), Seed: "sha256:test", Say: func(string) {}, Storage: []string{inventory.StorageLVM, inventory.StorageTree, inventory.StorageXFS}}
	m.Root = m.Path("root")
	must(t, os.Symlink(filepath.Join(from, "packages"), m.Path(loadersDir)))
	put(t, filepath.Join(m.Root, "boot/grub/grub.cfg"), grubConfig(m.Family, m.Arch))
	put(t, filepath.Join(m.Root, "boot/grub/ironrail.cfg"), config)
	must(t, m.layoutConfig())
	signedDisk(t, m)
	xfs, logical := m.Path("xfs.disk"), m.Path("logical.disk")
	for _, to := range []string{xfs, logical} {
		must(t, exec.CommandContext(t.Context(), "cp", "--sparse=always", m.Path(DiskFile), to).Run())
		text, err := loadercfg.ByUUID(uuid)
		must(t, err)
		replaceConfig(t, to, text)
	}
	putXFS(t, xfs, rootStart, uuid, config)
	must(t, os.Truncate(logical, rootStart+350*mib))
	putXFS(t, logical, rootStart+putGroup(t, logical), uuid, config)
	for disk, want := range map[string]string{m.Path(DiskFile): "reached hd0,gpt3 (hd0,gpt3)/boot/grub efi end", xfs: "reached hd0,gpt3 (hd0,gpt3)/boot/grub efi end",
		logical: "reached lvm/vg0-root (lvm/vg0-root)/boot/grub efi end"} {
		if said := secureConsole(t, disk, " end"); !strings.Contains(said, want) {
			t.Errorf("%s: the console does not say %q:\n%s", filepath.Base(disk), want, said)
		}
	}
}
