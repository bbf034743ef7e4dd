// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/diskfs/go-diskfs/partition/gpt"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/raw"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// The simulated image, in bytes: a whole disk with a partition table, the mark of a
// file system and what it says to be, cut and signed like a real one, but small. How
// large a real one is is Options.ImageSize.
const (
	sector    = 512
	mib       = 1 << 20
	biosStart = mib
	rootStart = 2 * mib
	rootSize  = 2 * mib
	diskSize  = 5 * mib // two chunks
	realData  = 96 << 10
)

// simulateArtifacts puts a simulated disk of each image, and a repository of simulated
// packages of each driver stack, into the state folder of the site. Pinned digests are
// taken off: nobody can make other bytes of the same digest.
// Those of spoilt, by name, lack their boot partition: they can be written and
// configured, and no firmware finds anything to boot.
func simulateArtifacts(ctx context.Context, s *provision.Site, seed uint64, indexes repo.Recorded, spoilt ...string) error {
	for _, i := range s.Inv.Images {
		recipe := artifacts.Recipe(i)
		if recipe == "" {
			continue // of a kind that no node has
		}
		i.Digest = ""
		if err := simulateImage(ctx, s, i, recipe, seed, indexes, slices.Contains(spoilt, i.Name)); err != nil {
			return fmt.Errorf("simulated image %s: %w", i.Name, err)
		}
	}
	return simulateDrivers(ctx, s, indexes)
}

// Simulate puts a simulated disk of each image of a site that the image store does not have,
// and the repositories of simulated packages, into its state folder. Other than a rehearsal it
// leaves pinned digests.
func Simulate(ctx context.Context, s *provision.Site, seed uint64) error {
	for _, i := range s.Inv.Images {
		recipe := artifacts.Recipe(i)
		if recipe == "" {
			continue
		}
		switch digest, _, err := s.Artifacts.Images.Find(recipe); {
		case err != nil:
			return err
		case digest != "":
			continue
		}
		if err := simulateImage(ctx, s, i, recipe, seed, "", false); err != nil {
			return fmt.Errorf("simulated image %s: %w", i.Name, err)
		}
	}
	return simulateDrivers(ctx, s, "")
}

// simulateDrivers makes a repository for each driver stack and image.
func simulateDrivers(ctx context.Context, s *provision.Site, indexes repo.Recorded) error {
	done := map[string]bool{}
	for _, n := range s.Inv.Nodes {
		for _, d := range n.Drivers {
			if n.Image == nil || done[d.Name+"/"+n.Image.Name] || artifacts.Recipe(n.Image) == "" {
				continue
			}
			done[d.Name+"/"+n.Image.Name] = true
			if digest, err := s.Artifacts.Digest(n.Image); err != nil || !s.Artifacts.Images.Has(digest) {
				continue // pinned to one that is not there: the plan says so
			}
			if err := simulatePackages(ctx, s, d, n.Image, indexes); err != nil {
				return fmt.Errorf("simulated packages of driver %s: %w", d.Name, err)
			}
		}
	}
	return nil
}

// simulateImage builds one image and puts it into the store.
func simulateImage(ctx context.Context, s *provision.Site, i *inventory.Image, recipe string, seed uint64, indexes repo.Recorded, spoilt bool) (err error) {
	unlock, err := s.Artifacts.Images.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	dir, discard, err := s.Artifacts.Images.Scratch()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, discard()) }()
	disk := filepath.Join(dir, "disk")
	is, system, err := systemOf(ctx, s.Inv, i, indexes)
	if err != nil {
		return err
	}
	foreign, form := i.Kind == raw.Kind{}.Name(), ""
	if i.Diskless() {
		form, err = manifest.Squashfs, writeSquashfs(disk, is, seed)
	} else {
		err = writeDisk(disk, is, seed, spoilt, len(i.Storage) > 0 && !foreign)
	}
	if err != nil {
		return err
	}
	files := map[string]string{}
	if len(i.Storage) > 0 {
		if err := simulateTree(ctx, dir, is, seed, files); err != nil {
			return err
		}
		if foreign {
			if err := simulateLoaders(ctx, dir, is, seed, spoilt, files); err != nil {
				return err
			}
		}
	}
	simulated, err := simulatedFiles(i, is, system)
	if err != nil {
		return err
	}
	for name, text := range simulated {
		files[name] = filepath.Join(dir, "file-"+name)
		if err := os.WriteFile(files[name], []byte(text), 0o644); err != nil {
			return err
		}
	}
	initrd := ""
	if is.NoInitrd {
		initrd = manifest.InitrdOnNode
	}
	_, err = s.Artifacts.Images.Put(ctx, store.Source{Initrd: initrd, Form: form, Name: i.Kind + "." + i.Name, Recipe: recipe, Disk: disk, Files: files}, func(string) {})
	return err
}

// simulatedFiles are the files, with their content, that travel with a simulated image.
func simulatedFiles(i *inventory.Image, is twin.Twin, system repo.System) (map[string]string, error) {
	files := map[string]string{images.KernelFile: "kernel of a rehearsal\n", images.InitrdFile: "", images.DriversFile: simulatedDrivers}
	if f, _ := distribution.FamilyOf(i); f.Manager == distribution.Dnf && i.Source == "" {
		sources, err := json.Marshal(repo.DnfSources{Release: i.Release, Kernel: is.Kernel})
		if err != nil {
			return nil, err
		}
		files[images.DatabaseFile], files[images.RepositoriesFile] = "", string(sources)
	} else {
		files[images.StatusFile], files[images.SourcesFile], files[images.KeyringFile] = string(system.Status), string(system.Sources), ""
	}
	if i.Arch == inventory.ARM64 || i.SecureBoot {
		for _, name := range images.SignedLoaders(i.Arch) {
			files[name] = "MZ simulation of " + name + "\n"
		}
	}
	return files, nil
}

// simulateTree packs the files of a small root file system for disk layouts: what the
// system says to be, and bytes that do not compress.
func simulateTree(ctx context.Context, dir string, is twin.Twin, seed uint64, files map[string]string) error {
	b := make([]byte, twin.Size, twin.Size+realData)
	copy(b, is.Encode())
	b = append(b, noise(seed)...)
	for _, name := range []string{manifest.TreeFile, manifest.TreeBlob} {
		files[name] = filepath.Join(dir, name)
	}
	return store.PackTree(ctx, bytes.NewReader(b), int64(len(b)), dir, func(string) {})
}

// simulateLoaders packs a disk with loaders of layouts, for an image whose own disk has
// others.
func simulateLoaders(ctx context.Context, dir string, is twin.Twin, seed uint64, spoilt bool, files map[string]string) error {
	disk := filepath.Join(dir, "loaders.disk")
	if err := writeDisk(disk, is, seed, spoilt, true); err != nil {
		return err
	}
	for _, name := range bootdisk.LoaderFiles() {
		files[name] = filepath.Join(dir, name)
	}
	return store.PackLoaders(ctx, disk, dir, func(string) {})
}

// noise are bytes that do not compress.
func noise(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, realData)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	return data
}

// writeDisk writes the small whole disk: protective MBR, GPT, a BIOS boot
// partition (with arm64 an EFI system partition; of another type when it is spoilt), an EFI system partition with the
// configuration of the loader where disk layouts want it, and a root partition with the
// superblock of ext4 and what the system says to be.
func writeDisk(path string, is twin.Twin, seed uint64, spoilt, layouts bool) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(diskSize); err != nil {
		return err
	}
	part := func(n int, start, size uint64, kind gpt.Type, name, guid string) *gpt.Partition {
		return &gpt.Partition{Index: n, Start: start / sector, End: (start+size)/sector - 1, Size: size, Type: kind, Name: name, GUID: guid}
	}
	boot, bootName, root := gpt.BIOSBoot, "bios", gpt.LinuxRootX86_64
	if is.Arch == inventory.ARM64 {
		boot, bootName, root = gpt.EFISystemPartition, "esp", gpt.LinuxRootArm64
	}
	if spoilt {
		boot = gpt.LinuxFilesystem
	}
	rootStart, diskSize := int64(rootStart), int64(diskSize)
	var esp []*gpt.Partition
	if layouts {
		esp = append(esp, part(2, uint64(rootStart), mib, gpt.EFISystemPartition, "esp", "8E4C7C6A-6F1B-4B0E-9C41-9A4C6B1D0004"))
		config, err := loadercfg.ByLabel(bootdisk.Label)
		if err == nil {
			_, err = f.WriteAt(config, rootStart)
		}
		if err == nil {
			err = f.Truncate(diskSize + mib)
		}
		if err != nil {
			return err
		}
		rootStart, diskSize = rootStart+mib, diskSize+mib
	}
	table := &gpt.Table{LogicalSectorSize: sector, PhysicalSectorSize: sector, ProtectiveMBR: true, GUID: "8E4C7C6A-6F1B-4B0E-9C41-9A4C6B1D0001",
		Partitions: append([]*gpt.Partition{
			part(1, biosStart, mib, boot, bootName, "8E4C7C6A-6F1B-4B0E-9C41-9A4C6B1D0002"),
			part(2+len(esp), uint64(rootStart), rootSize, root, "root", "8E4C7C6A-6F1B-4B0E-9C41-9A4C6B1D0003"),
		}, esp...)}
	if err := table.Write(f, diskSize); err != nil {
		return errkind.New(errkind.Internal, "partition table: %w", err)
	}
	data := noise(seed)
	_, err1 := f.WriteAt(data[:realData/2], rootStart+64<<10)
	_, err2 := f.WriteAt(data[realData/2:], rootStart+rootSize-realData)
	_, err3 := f.WriteAt(superblock(), rootStart+1024)
	_, err4 := f.WriteAt(is.Encode(), rootStart+twin.Place)
	_, err5 := f.WriteAt([]byte{0xeb, 0x63}, 0) // a loader for a BIOS begins so
	return errors.Join(err1, err2, err3, err4, err5, f.Sync())
}

// writeSquashfs writes the small image of a system that is kept in memory: what a squashfs begins
// with, and what the system says to be.
func writeSquashfs(path string, is twin.Twin, seed uint64) error {
	b := make([]byte, diskSize)
	copy(b, twin.SquashfsMagic)
	copy(b[twin.Place:], is.Encode())
	copy(b[64<<10:], noise(seed))
	return os.WriteFile(path, b, 0o644)
}

// superblock is as much of ext4's as tells it from other file systems: magic,
// features and label (Documentation/filesystems/ext4/super.rst).
func superblock() []byte {
	b := make([]byte, 1024)
	b[0x38], b[0x39] = 0x53, 0xEF
	b[0x5C] = 0x04 // has_journal
	b[0x60] = 0x40 // extents
	copy(b[0x78:], bootdisk.Label)
	return b
}

// simulatedDrivers are what the kernel of a distribution has drivers for, cut down to NICs
// and disks: those that are found by class, by vendor, and of virtual machines.
const simulatedDrivers = `alias pci:v*d*sv*sd*bc01sc*i*
alias pci:v000014E4d*sv*sd*bc02sc*i*
alias pci:v000015B3d*sv*sd*bc02sc*i*
alias pci:v00001AF4d*sv*sd*bc*sc*i*
alias pci:v00008086d*sv*sd*bc02sc*i*
alias virtio:d00000001v*
alias virtio:d00000002v*
alias virtio:d00000008v*
module dm_mod
module dm_crypt
module raid1
module raid10
module xfs
`
