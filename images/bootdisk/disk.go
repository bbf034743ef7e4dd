// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/diskfs/go-diskfs/partition/gpt"
)

// Where the loaders lie, in bytes: on the disk of an image, and on each disk that a layout
// puts them on. The BIOS boot partition starts at 1 MiB and not earlier, so that the
// install marker before it belongs to no partition.
const (
	BIOSStart = 1 * mib
	ESPStart  = BIOSStart + biosSize
	ESPSize   = 64 * mib // FAT32 needs 65,525 clusters; with 512 bytes each these are 32 MiB
)

// The rest of an image's disk, in bytes.
const (
	sector    = 512
	mib       = 1 << 20
	biosSize  = 1 * mib
	rootStart = ESPStart + ESPSize
	gptEnd    = 1 * mib // backup GPT and alignment
	rootSpare = 300 * mib
	journal   = 64 * mib
	growBytes = 8 << 40 // the root can be grown to this while mounted
)

// mke2fsConf is written into the build's folder: the features of the file system
// must not depend on the controller's e2fsprogs, and GRUB 2.06 reads no
// metadata_csum_seed.
const mke2fsConf = "mke2fs.conf"

const mke2fsText = `[defaults]
	base_features = sparse_super,large_file,filetype,resize_inode,dir_index,ext_attr
	default_mntopts = acl,user_xattr
	blocksize = 4096
	inode_size = 256
	inode_ratio = 16384
[fs_types]
	ext4 = {
		features = has_journal,extent,huge_file,flex_bg,metadata_csum,64bit,dir_nlink,extra_isize
	}
`

// MakeDisk puts everything together in DiskFile.
func (m *Maker) MakeDisk(ctx context.Context) error {
	content, err := treeSize(m.Root)
	if err != nil {
		return err
	}
	// Extent trees and folders' indexes: 2 %. Then a whole number of MiB.
	rootSize := (content + content/50 + journal + rootSpare + mib - 1) / mib * mib
	total := rootStart + rootSize + gptEnd
	f, err := os.Create(m.Path(DiskFile))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(total); err != nil {
		return err
	}
	if err := m.rootFS(ctx, rootSize); err != nil {
		return err
	}
	if err := m.esp(ctx, f); err != nil {
		return err
	}
	if err := m.partitions(f, rootSize, total); err != nil {
		return err
	}
	if err := m.bios(f); err != nil {
		return err
	}
	m.Say(fmt.Sprintf("disk: %d MiB, root %d MiB with %d MiB in it", total/mib, rootSize/mib, content/mib))
	return errors.Join(f.Sync(), f.Close())
}

// rootFS makes the root file system in its place on the disk.
func (m *Maker) rootFS(ctx context.Context, size int64) error {
	if err := os.WriteFile(m.Path(mke2fsConf), []byte(mke2fsText), 0o644); err != nil {
		return err
	}
	extended := []string{
		"offset=" + strconv.Itoa(rootStart), "hash_seed=" + m.id("hash seed").String(),
		"resize=" + strconv.Itoa(growBytes/4096), "lazy_itable_init=0", "lazy_journal_init=0", "nodiscard",
	}
	return m.Run(ctx, nil, "mke2fs", "-q", "-F", "-t", "ext4", "-L", Label, "-U", m.id("root").String(), "-J", "size="+strconv.Itoa(journal/mib),
		"-E", strings.Join(extended, ","), "-d", m.Root, m.Path(DiskFile), strconv.FormatInt(size/1024, 10)+"k")
}

// esp makes the EFI system partition and copies it to its place.
func (m *Maker) esp(ctx context.Context, disk *os.File) error {
	img := m.Path("esp.img")
	f, err := os.Create(img)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Truncate(ESPSize); err != nil {
		return err
	}
	id := m.id("esp")
	if err := m.Run(ctx, nil, "mkfs.vfat", "--invariant", "-F", "32", "-s", "1", "-n", "IRONRAIL", "-i", fmt.Sprintf("%x", id[:4]), img); err != nil {
		return err
	}
	folders := []string{"EFI"}
	if m.configAt != "" && m.configAt != "EFI" {
		folders = append(folders, m.configAt)
	}
	if err := m.Run(ctx, nil, slices.Concat([]string{"mcopy", "-s", "-i", img}, folders, []string{"::/"})...); err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(disk, ESPStart), f)
	return err
}

// partitions writes the GPT with its backup, and the protective MBR. A root of no size is
// left out.
func (m *Maker) partitions(disk *os.File, rootSize, total int64) error {
	part := func(n int, start, size int64, kind gpt.Type, name string) *gpt.Partition {
		return &gpt.Partition{
			Index: n, Start: uint64(start / sector), End: uint64((start+size)/sector) - 1, Size: uint64(size),
			Type: kind, Name: name, GUID: strings.ToUpper(m.id("partition " + name).String()),
		}
	}
	p := platformOf(m.Arch)
	parts := []*gpt.Partition{part(2, ESPStart, ESPSize, gpt.EFISystemPartition, "esp")}
	if rootSize > 0 {
		parts = append(parts, part(3, rootStart, rootSize, p.root, "root"))
	}
	if p.hasBIOS() {
		parts = append([]*gpt.Partition{part(1, BIOSStart, biosSize, gpt.BIOSBoot, "bios")}, parts...)
	}
	table := &gpt.Table{
		LogicalSectorSize: sector, PhysicalSectorSize: sector, ProtectiveMBR: true, GUID: strings.ToUpper(m.id("disk").String()),
		Partitions: parts,
	}
	if err := table.Write(disk, total); err != nil {
		return fmt.Errorf("partition table: %w", err)
	}
	return nil
}

// inodeOf returns the inode of a file that has several names.
func inodeOf(info fs.FileInfo) (uint64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return st.Ino, ok && st.Nlink > 1 && !info.IsDir()
}
