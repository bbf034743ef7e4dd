// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Where Debian keeps GRUB's parts.
const (
	grubBIOS = "/usr/lib/grub/i386-pc"
	grubEFI  = "/usr/lib/grub/x86_64-efi"
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

// GrubConfig is /boot/grub/grub.cfg. The agent writes ironrail.cfg beside it, which
// sets ironrail_args. /vmlinuz is the newest kernel: the kernel packages keep it so.
// UEFI's own console reaches the serial port where the node has one; GRUB writing
// there as well would say everything twice.
const GrubConfig = `# Written by ironrail; kernel arguments of this node are in ironrail.cfg.
if [ "$grub_platform" = "pc" ]; then
  if serial --unit=0 --speed=115200; then
    terminal_input console serial
    terminal_output console serial
  fi
fi
set timeout=0
set default=0
set ironrail_args="console=tty0 console=ttyS0,115200"
if [ -f /boot/grub/ironrail.cfg ]; then
  source /boot/grub/ironrail.cfg
fi
menuentry "Debian" {
  linux /vmlinuz root=LABEL=` + Label + ` ro $ironrail_args
  initrd /initrd.img
}
`

// grubModules are built in, since the root holds no GRUB modules to load.
var grubModules = []string{
	"part_gpt", "ext2", "search", "search_label", "normal", "configfile", "linux", "test", "echo", "sleep", "reboot", "halt",
	"serial", "terminal", "ls", "cat", "gzio",
}

// MakeLoaders builds GRUB for BIOS and UEFI.
func (m *Maker) MakeLoaders(ctx context.Context) error {
	early := m.Path("early.cfg")
	if err := os.WriteFile(early, []byte(grubEarly), 0o644); err != nil {
		return err
	}
	efi := filepath.Join(m.Dir, "EFI", "BOOT")
	if err := os.MkdirAll(efi, 0o755); err != nil {
		return err
	}
	for _, l := range []struct {
		format, dir, out string
		modules          []string
	}{
		{"i386-pc", grubBIOS, m.Path("core.img"), []string{"biosdisk", "vga_text"}},
		{"x86_64-efi", grubEFI, filepath.Join(efi, "BOOTX64.EFI"), []string{"fat", "all_video", "efi_gop"}},
	} {
		argv := []string{"grub-mkimage", "-O", l.format, "-d", l.dir, "-p", grubPrefix, "-c", early, "-o", l.out}
		if err := m.Run(ctx, nil, append(append(argv, grubModules...), l.modules...)...); err != nil {
			return err
		}
	}
	return nil
}

// bios puts GRUB for BIOS on the disk, as grub-bios-setup would, which wants a
// block device.
func (m *Maker) bios(disk *os.File) error {
	boot, err := os.ReadFile(filepath.Join(grubBIOS, "boot.img"))
	if err != nil {
		return err
	}
	core, err := os.ReadFile(m.Path("core.img"))
	if err != nil {
		return err
	}
	if boot, core, err = embedCore(boot, core, biosStart/sector, biosSize); err != nil {
		return err
	}
	if _, err := disk.WriteAt(boot, 0); err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(disk, biosStart), newZeroPadded(core, biosSize))
	return err
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
