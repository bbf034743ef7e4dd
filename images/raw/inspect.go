// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/entries"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/sysdisk"
	"github.com/ironrail/ironrail/inventory"
)

// The install marker takes the last 4 KiB before 1 MiB of every system disk.
const (
	markerStart = 1<<20 - 4<<10
	markerEnd   = 1 << 20
)

// tools are what a build runs, with the Debian package that has them.
var tools = []struct{ name, pkg string }{{"mount", "mount"}, {"umount", "mount"}, {"mdir", "mtools"}}

func (b *builder) checkTools(context.Context) error {
	for _, t := range tools {
		if _, err := exec.LookPath(t.name); err != nil {
			return errkind.New(errkind.Unsupported, "this controller lacks %s, which reads images", t.name).Do("Install it: apt-get install " + t.pkg)
		}
	}
	if os.Geteuid() != 0 {
		return errkind.New(errkind.Refused, "an image is read as root: its file systems are mounted, read-only").Do("Run the build as root.")
	}
	if b.recipe.onto() {
		return bootdisk.CheckTools(bootdisk.Tools(inventory.AMD64))
	}
	return nil
}

// partitions finds the parts of the disk that matter, by what they are.
func (b *builder) partitions(ctx context.Context) error {
	f, err := os.Open(b.disk)
	if err != nil {
		return err
	}
	defer f.Close()
	table, err := gpt.Read(f, b.size)
	if err != nil {
		return errkind.New(errkind.Invalid, "the disk of %d bytes cannot be read as a whole disk: %w", b.size, err).
			Do("Take the image of a whole disk with a GUID partition table, as vendors publish for clouds with UEFI.")
	}
	if table.Sector() != gpt.Sector {
		return errkind.New(errkind.Unsupported, "the partition table is made for sectors of %d bytes; one for %d is moved onto either kind of disk", table.Sector(), gpt.Sector)
	}
	b.parts = sysdisk.Parts(f, table)
	if err := b.markerFree(f); err != nil {
		return err
	}
	if err := b.findESP(ctx); err != nil {
		return err
	}
	return b.findRoot(ctx, table)
}

// markerFree checks that nothing is lost by the install marker.
func (b *builder) markerFree(f io.ReaderAt) error {
	for _, p := range b.parts {
		if p.Offset() < markerEnd && p.Offset()+p.Size() > markerStart {
			return errkind.New(errkind.Unsupported, "partition %d begins at byte %d; the last 4 KiB before 1 MiB have to be free for the install marker", p.Number, p.Offset()).
				Do("Take an image whose first partition begins at 1 MiB, as tools align it today.")
		}
	}
	p := make([]byte, markerEnd-markerStart)
	if _, err := f.ReadAt(p, markerStart); err != nil || !isZero(p) {
		return errkind.New(errkind.Unsupported, "there is data in the last 4 KiB before 1 MiB, where the install marker goes")
	}
	return nil
}

// findESP finds the EFI system partition, by its type, and the loader in it.
func (b *builder) findESP(ctx context.Context) error {
	esps := slices.DeleteFunc(slices.Clone(b.parts), func(p sysdisk.Part) bool { return p.Type != gpt.EFISystem })
	if len(esps) != 1 {
		return errkind.New(errkind.Unsupported, "the disk has %d EFI system partitions, and one is needed: UEFI would start nothing, or nobody knows which", len(esps))
	}
	const loader = "::/EFI/BOOT/BOOTX64.EFI"
	if out, err := (tool.Runner{Env: []string{"MTOOLS_SKIP_CHECK=1"}}).Output(ctx, "mdir", "-b", "-i", fmt.Sprintf("%s@@%d", b.disk, esps[0].Offset()), loader); err != nil {
		return errkind.New(errkind.NotFound, "the EFI system partition (%d) has no %s, which UEFI starts where it knows nothing else: %w", esps[0].Number, strings.TrimPrefix(loader, "::"), err).
			Do(fmt.Sprintf("Take an image for UEFI. %s", strings.TrimSpace(string(out))))
	}
	return nil
}

// isMountable reports whether a partition has a file system that systems lie on.
func isMountable(p sysdisk.Part) bool { return p.Kind == sysdisk.Ext4 || p.Kind == sysdisk.XFS }

// findRoot finds the root file system: the one partition that holds a system.
func (b *builder) findRoot(ctx context.Context, table *gpt.Table) error {
	var roots []sysdisk.Part
	for _, p := range b.parts {
		if !isMountable(p) {
			continue
		}
		found := false
		err := b.mounted(ctx, p, func(root fs.FS) error {
			found = distribution.Holds(root, "etc/os-release") || distribution.Holds(root, "usr/lib/os-release")
			return nil
		})
		if err != nil {
			return err
		}
		if found {
			roots = append(roots, p)
		}
	}
	switch len(roots) {
	case 0:
		return errkind.New(errkind.NotFound, "none of the %d partitions holds a system: there is no os-release on ext4 or xfs", len(b.parts)).Do("Encrypted, LVM, btrfs and ZFS roots are not installed as they are.")
	case 1:
	default:
		return errkind.New(errkind.Refused, "partitions %d and %d both hold a system", roots[0].Number, roots[1].Number)
	}
	if last, _ := table.Last(); last.Number != roots[0].Number {
		return errkind.New(errkind.Unsupported, "the root file system is partition %d, and partition %d lies behind it: it could not be grown", roots[0].Number, last.Number)
	}
	b.root = roots[0]
	b.say(fmt.Sprintf("root file system: partition %d, %s, %d MiB of %d MiB", b.root.Number, b.root.Kind, b.root.Size()>>20, b.size>>20))
	return nil
}

// mountDir is where a part of the disk is mounted.
func (b *builder) mountDir(p sysdisk.Part) string { return b.path(fmt.Sprintf("mnt%d", p.Number)) }

// mounted mounts a part of the disk read-only, without its journal, for as long as do
// takes.
func (b *builder) mounted(ctx context.Context, p sysdisk.Part, do func(root fs.FS) error) (err error) {
	dir := b.mountDir(p)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	options := fmt.Sprintf("ro,loop,offset=%d,sizelimit=%d,nosuid,nodev,noexec,", p.Offset(), p.Size()) + map[string]string{sysdisk.Ext4: "noload", sysdisk.XFS: "norecovery,nouuid"}[p.Kind]
	if err := (tool.Runner{}).Run(ctx, nil, "mount", "-t", p.Kind, "-o", options, b.disk, dir); err != nil {
		return errkind.New(errkind.Corrupt, "partition %d: its %s cannot be mounted: %w", p.Number, p.Kind, err)
	}
	defer func() {
		err = errors.Join(err, (tool.Runner{}).Run(context.WithoutCancel(ctx), nil, "umount", dir))
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return do(root.FS())
}

// inspect reads what an installation needs to know of the system, and copies out what
// later builds need.
func (b *builder) inspect(ctx context.Context) error {
	return b.mounted(ctx, b.root, func(root fs.FS) error {
		for _, check := range []func(fs.FS) error{b.checkSystem, b.checkPrograms, checkArchitecture, b.checkMounts, b.checkLayouts, checkSSH, checkInitrd, entries.CheckDracut, entries.CheckLabels} {
			if err := check(root); err != nil {
				return err
			}
		}
		err := b.withBoot(ctx, root, func(boot fs.FS) error {
			if err := b.checkLoader(root, boot); err != nil {
				return err
			}
			if err := b.ramdisk(ctx, root, boot); err != nil {
				return err
			}
			return b.checkKernel(root, boot)
		})
		if err != nil {
			return err
		}
		return b.keep(root)
	})
}

const sshd = "usr/sbin/sshd"

// checkPrograms looks for what an installation needs in the image.
func (b *builder) checkPrograms(root fs.FS) error {
	if missing := b.family.Disk.Missing(root); len(missing) > 0 {
		return errkind.New(errkind.Unsupported, "the image lacks %s", strings.Join(missing, "; ")).Do("Take a server image of the distribution, or add the packages to yours.")
	}
	return nil
}

// checkArchitecture looks at a program of the system: os-release(5) does not say what
// processors it is for.
func checkArchitecture(root fs.FS) error {
	f, err := root.Open(sshd)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 20) // up to e_machine of the ELF header
	if _, err := io.ReadFull(f, head); err != nil || string(head[:4]) != elf.ELFMAG {
		return errkind.New(errkind.Corrupt, "/%s is no ELF program", sshd)
	}
	if machine := elf.Machine(binary.LittleEndian.Uint16(head[18:])); machine != elf.EM_X86_64 {
		return errkind.New(errkind.Mismatch, "the image is of another architecture: its /%s is for %s; images for %s are installed", sshd, machine, elf.EM_X86_64).
			Do("Take the vendor's image for amd64 (x86_64), with its checksum.")
	}
	return nil
}

// copyOut copies a file of the image.
func copyOut(root fs.FS, name, to string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(filepath.Clean(to))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
