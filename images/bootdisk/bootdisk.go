// SPDX-License-Identifier: Apache-2.0

// Package bootdisk makes a whole-disk image of a root file system that is a folder:
// what boots it on BIOS and UEFI is put around it without a loop device. Kinds of
// images that bring a root file system, and no disk, share it.
//
// The disk:
//
//	       0  MBR: GRUB's boot.img, and the protective partition
//	   512 B  GPT
//	1020 KiB  4 KiB of zeroes, for ironrail's install marker
//	   1 MiB  p1, BIOS boot partition: GRUB's core.img; x86-64 only
//	   2 MiB  p2, EFI system partition, FAT32: EFI/BOOT/BOOTX64.EFI or BOOTAA64.EFI
//	  66 MiB  p3, root, ext4, label ironrail-root; grown on the node
package bootdisk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
)

// Label is the label of the root file system; GRUB and the kernel find it by this.
const Label = "ironrail-root"

// Epoch is the SOURCE_DATE_EPOCH of all images: 2025-01-01 00:00:00 UTC.
const Epoch = "1735689600"

// DiskFile is the whole-disk image in a maker's folder.
const DiskFile = "disk"

// Maker makes the disk of one image.
type Maker struct {
	Root string // the root file system, a folder
	Dir  string // everything that is made lies in it
	Seed string // what identifiers of the disk are derived from: the digest of the recipe
	Say  func(string)

	Family distribution.Family // whose system the root is
	Arch   inventory.Arch      // of its programs; "": x86-64
	Files  map[string]string   // of the root, besides Settings, by their name below it
	// Storage is what disk layouts need, as inventory.Image has it; none: the disk is only
	// written as it is.
	Storage []string

	// SecureBoot: nodes boot it with Secure Boot, by signed loaders alone.
	SecureBoot bool

	// InMemory: nodes keep the root in memory. There is no disk: MakeSquashfs is called in place of
	// what makes one.
	InMemory bool

	// Archives are where loaders come from that this controller's own packages do not have:
	// signed ones. Their keys are in Keyring, a file below the root.
	Archives []repo.Source
	Keyring  string

	kernel   string // release of the newest in the root, once PackRamdisk found it
	configAt string // folder of the EFI system partition, its first, in which a signed GRUB looks for its configuration; "": none is signed
}

// Kernel is the release of the kernel that PackRamdisk packed.
func (m *Maker) Kernel() string { return m.kernel }

// Path is a file in the maker's folder.
func (m *Maker) Path(name string) string { return filepath.Join(m.Dir, name) }

// id derives an identifier of the disk from the recipe, so that two builds have
// the same.
func (m *Maker) id(what string) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(m.Seed+"/"+what))
}

// Run runs a tool in the maker's folder; see tool.Runner.
func (m *Maker) Run(ctx context.Context, each func(line string), argv ...string) error {
	r := tool.Runner{Dir: m.Dir, Env: []string{
		"SOURCE_DATE_EPOCH=" + Epoch, "E2FSPROGS_FAKE_TIME=" + Epoch, "MKE2FS_CONFIG=" + m.Path(mke2fsConf), "MTOOLS_SKIP_CHECK=1",
	}}
	return r.Run(ctx, each, argv...)
}

// PackRamdisk packs kernel and modules for the install from the root file system,
// as images.KernelFile and images.InitrdFile, and lists its drivers as images.DriversFile.
func (m *Maker) PackRamdisk(ctx context.Context) error {
	root, err := os.OpenRoot(m.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	release, err := NewestKernel(root.FS())
	if err != nil {
		return err
	}
	m.kernel = release
	if err := CopyOut(root, m.Family.Boot.KernelFile(release), m.Path(images.KernelFile)); err != nil {
		return err
	}
	drivers, err := os.Create(m.Path(images.DriversFile))
	if err != nil {
		return err
	}
	if err := errors.Join(modalias.Collect(drivers, root.FS(), release), drivers.Close()); err != nil {
		return err
	}
	out, err := os.Create(m.Path(images.InitrdFile))
	if err != nil {
		return err
	}
	defer out.Close()
	size, err := ramdisk.PackModules(ctx, out, root.FS(), release, m.InMemory)
	if err != nil {
		return err
	}
	if len(m.Storage) > 0 {
		if err := PackTools(ctx, out, root.FS(), m.Storage); err != nil {
			return err
		}
	}
	m.Say(fmt.Sprintf("install ramdisk of %s: %d modules, %.1f MiB", release, size.Modules, float64(size.Packed)/(1<<20)))
	if len(size.Absent) > 0 {
		m.Say("this kernel lacks for the install: " + strings.Join(size.Absent, ", "))
	}
	return out.Close()
}
