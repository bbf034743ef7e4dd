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
		put(t, filepath.Join(m.Path(loadersDir), s.path), s.path)
	}
	must(t, m.placeSigned(signedARM64))
	for name, want := range map[string]string{
		"EFI/BOOT/BOOTAA64.EFI": "usr/lib/shim/shimaa64.efi.signed", "EFI/BOOT/grubaa64.efi": "usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed",
		images.ShimFile: "usr/lib/shim/shimaa64.efi.signed", images.GRUBFile: "usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed", "EFI/debian/grub.cfg": signedConfig,
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
		put(t, filepath.Join(m.Path(loadersDir), s.path), s.path)
	}
	must(t, m.placeSigned(m.platform().signed))
	for name, want := range map[string]string{
		"EFI/BOOT/BOOTX64.EFI": "usr/lib/shim/shimx64.efi.signed", "EFI/BOOT/grubx64.efi": "usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed",
		images.ShimX64File: "usr/lib/shim/shimx64.efi.signed", images.GRUBX64File: "usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed", "EFI/debian/grub.cfg": signedConfig,
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
	put(t, m.Path(images.KernelFile), "no program")
	if err := m.checkKernelSigned(); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "signed by: nobody") {
		t.Errorf("a kernel that nobody signed: %v", err)
	}
	m.Storage = []string{inventory.StorageTree}
	must(t, m.placeSigned(m.platform().signed))
	if got, err := os.ReadFile(m.Path("EFI/debian/grub.cfg")); err != nil || string(got) != signedLayoutConfig {
		t.Errorf("with a layout: %q, %v", got, err)
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
// node's configuration was read from the root.
func TestPeerSignedGrubStarts(t *testing.T) {
	t.Parallel()
	const code, vars = "/usr/share/AAVMF/AAVMF_CODE.fd", "/usr/share/AAVMF/AAVMF_VARS.fd"
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
	must(t, m.MakeDisk(t.Context()))
	out, err := tool.Runner{}.Output(t.Context(), "sgdisk", "-p", m.Path(DiskFile))
	if err != nil || strings.Contains(string(out), "bios") || !strings.Contains(string(out), "root") {
		t.Errorf("sgdisk: %v\n%s", err, out)
	}
	said := consoleOf(t, "qemu-system-aarch64", []string{"-machine", "virt", "-cpu", "cortex-a57", "-accel", "tcg,tb-size=128", "-m", "512", "-display", "none", "-nic", "none",
		"-serial", "stdio", "-monitor", "none", "-drive", "if=pflash,format=raw,unit=0,readonly=on,file=" + code, "-drive", "if=pflash,format=raw,unit=1,snapshot=on,file=" + vars,
		"-drive", "file=" + m.Path(DiskFile) + ",if=none,id=d,format=raw,snapshot=on,file.locking=off", "-device", "virtio-blk-pci,drive=d,bootindex=0"}, " end")
	if want := "reached hd0,gpt3 (hd0,gpt3)/boot/grub efi arm64 end"; !strings.Contains(said, want) {
		t.Errorf("console does not say %q:\n%s", want, said)
	}
}

// securePackages is a folder whose folder `packages` has the trees of shim-signed,
// grub-efi-amd64-signed and linux-image-amd64 of Debian 13.
const securePackages = "IRONRAIL_TEST_SECUREBOOT"

// TestPeerSecureBootDisk boots a disk by OVMF with Microsoft's keys, shim and the signed GRUB to
// Debian's kernel, which is locked down; one that nobody signed is refused.
func TestPeerSecureBootDisk(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "qemu-system-x86_64", secureCode, "mke2fs", "mkfs.vfat", "mcopy", "sgdisk", "grub-mkimage", "/usr/lib/grub/i386-pc/boot.img")
	from := os.Getenv(securePackages)
	if from == "" || os.Geteuid() != 0 {
		t.Skip("needs root, and " + securePackages + ": a folder with the folder packages, the trees of shim-signed, grub-efi-amd64-signed and linux-image-amd64 of Debian 13")
	}
	kernels, err := filepath.Glob(filepath.Join(from, "packages/boot/vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		t.Fatalf("kernels %v, %v", kernels, err)
	}
	family, _ := distribution.Find(distribution.Debian)
	signed, err := os.ReadFile(kernels[0])
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

// signedDisk makes the disk of a maker whose signed loaders are unpacked.
func signedDisk(t *testing.T, m *Maker) {
	t.Helper()
	must(t, m.placeSigned(m.platform().signed))
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
