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

	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/roottree"
	"github.com/ironrail/ironrail/inventory"
)

// Program is one that an image must hold where disk layouts of its nodes need it.
type Program struct {
	Name    string // in /usr/sbin or /sbin
	Package string // that has it, as Debian and Ubuntu call it
}

// programs are all of them, by what layouts need: they make the layout in the install
// ramdisk, and keep it on the node.
var programs = []struct {
	storage string // of inventory.StorageTree and so on
	Program
}{
	{inventory.StorageTree, Program{"mke2fs", "e2fsprogs"}},
	{inventory.StorageTree, Program{"mkswap", "util-linux"}},
	{inventory.StorageLVM, Program{"dmsetup", "dmsetup"}},
	{inventory.StorageLVM, Program{"lvm", "lvm2"}},
	{inventory.StorageRAID, Program{"mdadm", "mdadm"}},
	{inventory.StorageXFS, Program{"mkfs.xfs", "xfsprogs"}},
}

// Programs are those that layouts need; none where there is no layout.
func Programs(storage []string) (list []Program) {
	for _, p := range programs {
		if slices.Contains(storage, p.storage) {
			list = append(list, p.Program)
		}
	}
	return list
}

// layoutModules are built into GRUB where the root may be on an array or XFS, and
// lvmModule where it may be in a volume group; not everywhere, since loaders that read
// more are others than those that images were built with.
var layoutModules = []string{"fat", "search_fs_uuid", "regexp", "mdraid1x", "xfs"}

const lvmModule = "lvm"

// layoutPrefix is the folder with GRUB's configuration on the EFI system partition of
// the disk that GRUB was loaded from, on BIOS too.
const layoutPrefix = "(,gpt2)" + loadercfg.Folder

// layoutConfig is where GRUB looks for the root of the image's own disk. The agent
// writes another text over it where the disk has a layout.
func (m *Maker) layoutConfig() error {
	if err := os.MkdirAll(m.Path("EFI/ironrail"), 0o755); err != nil {
		return err
	}
	text, err := loadercfg.ByLabel(Label)
	if err != nil {
		return err
	}
	return os.WriteFile(m.Path("EFI/ironrail/grub.cfg"), text, 0o644)
}

// PackTools packs the programs of a system that layouts are made with, behind the modules
// of an install ramdisk.
func PackTools(ctx context.Context, to io.Writer, root fs.FS, storage []string) error {
	var names []string
	for _, p := range Programs(storage) {
		names = append(names, p.Name)
	}
	return ramdisk.PackTools(ctx, to, root, names, map[string]string{mke2fsConf: mke2fsText})
}

// TreeFiles are the files of an image that layouts need beside its disk.
func (m *Maker) TreeFiles() []string {
	if len(m.Storage) == 0 {
		return nil
	}
	return []string{manifest.TreeFile, manifest.TreeBlob}
}

// PackTree packs the root file system as files, where a layout needs it.
func (m *Maker) PackTree(ctx context.Context) error {
	if len(m.Storage) == 0 {
		return nil
	}
	size, err := treeSize(m.Root)
	if err != nil {
		return err
	}
	return m.PackParts(ctx, size, []roottree.Part{{Dir: m.Root}}, nil)
}

// PackParts packs a root file system of several parts and further files. About size bytes
// come.
func (m *Maker) PackParts(ctx context.Context, size int64, parts []roottree.Part, files []roottree.File) error {
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := roottree.PackParts(w, parts, files)
		w.CloseWithError(err)
		packed <- err
	}()
	err := store.PackTree(ctx, r, size, m.Dir, m.Say)
	r.CloseWithError(io.ErrClosedPipe)
	if e := <-packed; err == nil && e != nil {
		err = fmt.Errorf("files of the root: %w", e)
	}
	return err
}

// loadersDisk is the disk of PackLoaders in a maker's folder.
const loadersDisk = "loaders.disk"

// LoaderFiles are the files of an image that PackLoaders makes.
func LoaderFiles() []string { return []string{manifest.LoadersFile, manifest.LoadersBlob} }

// PackLoaders makes and packs a disk that has the loaders of layouts and nothing else, for
// an image whose own disk has others.
func (m *Maker) PackLoaders(ctx context.Context) (err error) {
	if err := m.MakeLoaders(ctx); err != nil {
		return err
	}
	f, err := os.Create(m.Path(loadersDisk))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	const total = rootStart + gptEnd
	if err := f.Truncate(total); err != nil {
		return err
	}
	if err := errors.Join(m.esp(ctx, f), m.partitions(f, 0, total), m.bios(f)); err != nil {
		return err
	}
	return store.PackLoaders(ctx, f.Name(), m.Dir, m.Say)
}
