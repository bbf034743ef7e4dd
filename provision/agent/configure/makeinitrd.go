// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// MakeInitrd makes the initrd of a kernel, boot/initrd.img-RELEASE, in a root file system
// that is mounted, with the programs of that system. It calls line for each line that they
// print. It may be called again after it was cut off anywhere. See InitrdAt for a real one.
type MakeInitrd func(ctx context.Context, root rootfs.Root, release string, line func(string)) error

// kernels begins the names of kernels below the root, and initrd those of their initrds,
// as Debian and Ubuntu have them.
const (
	kernels = "boot/vmlinuz-"
	initrd  = "boot/initrd.img-"
)

// makeInitrds makes the initrd of each kernel of a root, also where an earlier run has made
// one: nothing tells whether that is whole.
func (c *Configurator) makeInitrds(ctx context.Context, root rootfs.Root) error {
	if c.MakeInitrd == nil {
		return errkind.New(errkind.Unsupported, "this agent makes no initrd").Do("Build the agent and the controller from the same ironrail.")
	}
	names, err := fs.Glob(root.FS(), kernels+"*")
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errkind.New(errkind.Invalid, "the image has no kernel in /boot to make an initrd for").Do("Build the image again with this version.")
	}
	lines := int64(0)
	for _, name := range names {
		release := strings.TrimPrefix(name, kernels)
		c.phase("initrd")
		err := c.MakeInitrd(ctx, root, release, func(string) {
			lines++
			if c.Progress != nil {
				c.Progress(wire.Progress{Phase: "initrd", Done: lines})
			}
		})
		if err == nil {
			err = checkInitrd(root, release)
		}
		if err != nil {
			return fmt.Errorf("initrd of kernel %s: %w", release, err)
		}
	}
	return nil
}

// archiveMarks begin the archives that Linux unpacks as an initrd (lib/decompress.c, and
// cpio's own format).
var archiveMarks = []string{"070701", "070702", "\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "BZh", "\x02\x21\x4c\x18", "\x5d\x00\x00", "\x89LZO"}

// checkInitrd looks whether an initrd was made.
func checkInitrd(root rootfs.Root, release string) error {
	f, err := root.FS().Open(initrd + release)
	if err != nil {
		return errkind.New(errkind.Invalid, "the programs of the image ended well, and made none: %w", err)
	}
	defer f.Close()
	begin := make([]byte, 6)
	n, err := io.ReadFull(f, begin)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	for _, mark := range archiveMarks {
		if bytes.HasPrefix(begin[:n], []byte(mark)) {
			return nil
		}
	}
	return errkind.New(errkind.Invalid, "/%s%s is no archive that Linux unpacks: it begins with %q", initrd, release, begin[:n]).
		Do("Correct the image (packages initramfs-tools and zstd, COMPRESS in /etc/initramfs-tools/initramfs.conf), build it, and run `ironrail apply` again.")
}
