// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/inventory"
)

// platform is what the disk of an architecture differs in.
type platform struct {
	root    gpt.Type // of the partition of the root file system
	console string   // the serial console, where the site names none
	loaders []loader // that are made here
	signed  []signed // that are taken from packages
}

// loader is GRUB for one kind of firmware. Part is a file of it, as Debian's package
// has it, beside its modules.
type loader struct {
	format, pkg, part string
	file              string // below the maker's folder
	modules           []string
}

var efiModules = []string{"fat", "all_video", "efi_gop"}

var platforms = map[inventory.Arch]platform{
	inventory.AMD64: {gpt.LinuxRootX86_64, "ttyS0,115200", []loader{
		{"i386-pc", "grub-pc-bin", grubBIOS + "/" + bootImage, coreFile, []string{"biosdisk", "vga_text"}},
		{"x86_64-efi", "grub-efi-amd64-bin", "/usr/lib/grub/x86_64-efi/kernel.img", "EFI/BOOT/BOOTX64.EFI", efiModules},
	}, nil},
	inventory.ARM64: {gpt.LinuxRootArm64, "ttyAMA0,115200", nil, signedARM64},
}

// platform is that of the image: with Secure Boot, no GRUB for UEFI is made here.
func (m *Maker) platform() platform {
	p := platformOf(m.Arch)
	if m.SecureBoot {
		p.signed = signedOf(m.Family.Name, m.Arch)
		p.loaders = slices.DeleteFunc(slices.Clone(p.loaders), func(l loader) bool { return l.file != coreFile })
	}
	return p
}

// hasBIOS reports whether machines of the platform may have a BIOS.
func (p platform) hasBIOS() bool {
	return slices.ContainsFunc(p.loaders, func(l loader) bool { return l.file == coreFile })
}

// platformOf is the platform of an architecture; x86-64 where none is named.
func platformOf(arch inventory.Arch) platform {
	if p, ok := platforms[arch]; ok {
		return p
	}
	return platforms[inventory.AMD64]
}

// grubBIOS is where Debian keeps GRUB for BIOS, bootImage what goes into the MBR, and coreFile
// its image as it is made.
const (
	grubBIOS  = "/usr/lib/grub/i386-pc"
	bootImage = "boot.img"
	coreFile  = "core.img"
)

// grubEarly is built into GRUB. It runs in GRUB's rescue parser, which knows
// variables but no conditions. The prefix points at partition 3 of the disk that
// GRUB came from; that is the hint, so a second disk with an older image cannot
// be taken while the right one is there.
const grubEarly = `search.fs_label ` + Label + ` root $root
set prefix=($root)/boot/grub
`

// grubPrefix has no drive: GRUB fills in the one that it was loaded from.
const grubPrefix = "(,gpt3)/boot/grub"

// grubConfig is /boot/grub/grub.cfg. The agent writes ironrail.cfg beside it, which
// sets ironrail_args. The links lead to the newest kernel: its packages keep them so.
// UEFI's own console reaches the serial port where the node has one; GRUB writing
// there as well would say everything twice.
func grubConfig(f distribution.Family, arch inventory.Arch) string {
	return menu(f, arch, "")
}

// ForeignMenu is /boot/grub/grub.cfg of a system that ironrail did not make and whose files
// are put onto a layout: the agent sees by it that the system is to be set up as such.
func ForeignMenu(f distribution.Family, arch inventory.Arch) string {
	return menu(f, arch, loadercfg.Foreign)
}

// serialTerminal has GRUB on a BIOS use the serial port as well.
const serialTerminal = `if [ "$grub_platform" = "pc" ]; then
  if serial --unit=0 --speed=115200; then
    terminal_input console serial
    terminal_output console serial
  fi
fi
`

// menu is a grub.cfg; first are lines of their own.
func menu(f distribution.Family, arch inventory.Arch, first string) string {
	return `# Written by ironrail; kernel arguments of this node are in ironrail.cfg.
` + first + serialTerminal + `set timeout=0
set default=0
set ironrail_args="console=tty0 console=` + platformOf(arch).console + `"
if [ -f /boot/grub/ironrail.cfg ]; then
  source /boot/grub/ironrail.cfg
fi
menuentry "` + f.Title + `" {
  linux ` + f.Boot.KernelLink + ` root=LABEL=` + Label + ` ro $ironrail_args
  initrd ` + f.Boot.InitrdLink + `
}
`
}

// grubModules are built in, since the root holds no GRUB modules to load.
var grubModules = []string{
	"part_gpt", "ext2", "search", "search_label", "normal", "configfile", "linux", "test", "echo", "sleep", "reboot", "halt",
	"serial", "terminal", "ls", "cat", "gzio",
}

// MakeLoaders builds GRUB for the firmware of the architecture.
func (m *Maker) MakeLoaders(ctx context.Context) error {
	if l := m.Family.Boot.Loader; l != nil {
		return m.takeLoaders(ctx, l)
	}
	early := m.Path("early.cfg")
	if err := os.WriteFile(early, []byte(grubEarly), 0o644); err != nil {
		return err
	}
	if err := os.MkdirAll(m.Path("EFI/BOOT"), 0o755); err != nil {
		return err
	}
	if len(m.platform().signed) > 0 {
		if err := m.TakeSigned(ctx); err != nil {
			return err
		}
	}
	modules, prefix, config := grubModules, grubPrefix, []string{"-c", early}
	if len(m.Storage) > 0 {
		if err := m.layoutConfig(); err != nil {
			return err
		}
		modules, prefix, config = slices.Concat(grubModules, layoutModules), layoutPrefix, nil
		if slices.Contains(m.Storage, inventory.StorageLVM) {
			modules = append(modules, lvmModule)
		}
	}
	for _, l := range m.platform().loaders {
		argv := slices.Concat([]string{"grub-mkimage", "-O", l.format, "-d", filepath.Dir(l.part), "-p", prefix, "-o", m.Path(l.file)}, config, modules)
		for _, more := range l.modules {
			if !slices.Contains(modules, more) {
				argv = append(argv, more)
			}
		}
		if err := m.Run(ctx, nil, argv...); err != nil {
			return err
		}
	}
	return nil
}

// bios puts GRUB for BIOS on the disk, as grub-bios-setup would, which wants a
// block device.
func (m *Maker) bios(disk *os.File) error {
	if !platformOf(m.Arch).hasBIOS() {
		return nil
	}
	boot, err := m.readBootImage()
	if err != nil {
		return err
	}
	core, err := os.ReadFile(m.Path(coreFile))
	if err != nil {
		return err
	}
	if boot, core, err = embedCore(boot, core, BIOSStart/sector, biosSize); err != nil {
		return err
	}
	if _, err := disk.WriteAt(boot, 0); err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(disk, BIOSStart), newZeroPadded(core, biosSize))
	return err
}

// readBootImage reads GRUB's boot.img, of the same GRUB as core.img.
func (m *Maker) readBootImage() ([]byte, error) {
	l := m.Family.Boot.Loader
	if l == nil {
		return os.ReadFile(filepath.Join(grubBIOS, bootImage))
	}
	root, err := os.OpenRoot(m.Root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.ReadFile(l.BIOS + "/" + bootImage)
}

// Places in boot.img and in the first sector of core.img, from GRUB's
// include/grub/i386/pc/boot.h and util/setup.c.
const (
	bootCode        = 440  // what boot.img may use of the MBR; the disk's signature and partitions follow
	kernelSector    = 0x5c // GRUB_BOOT_MACHINE_KERNEL_SECTOR: 64-bit LBA of core.img
	driveCheck      = 0x66 // GRUB_BOOT_MACHINE_DRIVE_CHECK: a jump of two bytes
	blockList       = sector - 12
	blockListLen    = blockList + 8
	blockListTarget = blockList + 10
	coreTarget      = 0x820 // (GRUB_BOOT_MACHINE_KERNEL_ADDR + 0x200) >> 4
)

// embedCore prepares boot.img and core.img for a core.img that starts at sector lba
// and has room bytes: boot.img is told where it is, and the list of blocks at the
// end of core's first sector where the rest of it is. It changes copies.
func embedCore(boot, core []byte, lba uint64, room int) (mbr, rest []byte, err error) {
	switch {
	case len(boot) != sector || boot[0] != 0xeb || boot[1] != 0x63: // jmp over the BIOS parameter block
		return nil, nil, errkind.New(errkind.Invalid, "GRUB's boot.img is not as expected (%d bytes)", len(boot))
	case len(core) <= sector || len(core) > room:
		return nil, nil, errkind.New(errkind.Invalid, "GRUB's core.img has %d bytes, and there is room for %d", len(core), room)
	case binary.LittleEndian.Uint16(core[blockListTarget:]) != coreTarget:
		return nil, nil, errkind.New(errkind.Invalid, "GRUB's core.img has no list of blocks where one is expected")
	}
	mbr = append([]byte{}, boot[:bootCode]...)
	binary.LittleEndian.PutUint64(mbr[kernelSector:], lba)
	// Some BIOSes pass 0 instead of the drive; without this jump boot.img corrects
	// them, which is right for anything but a floppy.
	mbr[driveCheck], mbr[driveCheck+1] = 0x90, 0x90
	rest = append([]byte{}, core...)
	binary.LittleEndian.PutUint64(rest[blockList:], lba+1)
	binary.LittleEndian.PutUint16(rest[blockListLen:], uint16((len(core)+sector-1)/sector-1))
	return mbr, rest, nil
}

// newZeroPadded reads b and then zeroes up to size bytes.
func newZeroPadded(b []byte, size int) io.Reader {
	return io.NewSectionReader(zeroPadded(b), 0, int64(size))
}

type zeroPadded []byte

func (z zeroPadded) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(z)) {
		copy(p, z[off:])
	}
	return len(p), nil
}
