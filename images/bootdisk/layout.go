// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/roottree"
	"github.com/ironrail/ironrail/inventory"
)

// toolsOf are the programs of the image that a layout is made with.
func toolsOf(storage []string) []string {
	tools := []string{"mke2fs", "mkswap"}
	if slices.Contains(storage, inventory.StorageRAID) {
		tools = append(tools, "mdadm")
	}
	if slices.Contains(storage, inventory.StorageXFS) {
		tools = append(tools, "mkfs.xfs")
	}
	return tools
}

// layoutModules are built into GRUB where the root may be on an array or XFS.
var layoutModules = []string{"fat", "search_fs_uuid", "regexp", "mdraid1x", "xfs"}

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
	r, w := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := roottree.Pack(w, m.Root)
		w.CloseWithError(err)
		packed <- err
	}()
	err = store.PackTree(ctx, r, size, m.Dir, m.Say)
	r.CloseWithError(io.ErrClosedPipe)
	if e := <-packed; err == nil && e != nil {
		err = fmt.Errorf("files of the root: %w", e)
	}
	return err
}
