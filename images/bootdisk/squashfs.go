// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"context"
	"fmt"
	"os"
)

// SquashfsFile is the root as a squashfs in a maker's folder.
const SquashfsFile = "root.squashfs"

// MakeSquashfs makes the root file system one that nodes keep in memory: compressed by zstd, which
// kernels of distributions read (CONFIG_SQUASHFS_ZSTD), in blocks of 256 KiB, since all of it is in memory
// and larger ones compress better.
func (m *Maker) MakeSquashfs(ctx context.Context) error {
	if err := m.Run(ctx, nil, "mksquashfs", m.Root, m.Path(SquashfsFile), "-noappend", "-no-progress", "-quiet", "-comp", "zstd", "-Xcompression-level", "15", "-b", "256K", "-no-exports"); err != nil {
		return err
	}
	info, err := os.Stat(m.Path(SquashfsFile))
	if err != nil {
		return err
	}
	content, err := treeSize(m.Root)
	if err != nil {
		return err
	}
	m.Say(fmt.Sprintf("squashfs: %d MiB, of %d MiB of files", info.Size()/mib, content/mib))
	return nil
}
