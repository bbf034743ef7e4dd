// SPDX-License-Identifier: Apache-2.0

package kexec

import (
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// fileWithFD is a file that the kernel can read by itself; those of a real root are.
type fileWithFD interface{ Fd() uintptr }

// Load hands the files over to the kernel, which verifies their signatures where it is locked
// down.
func Load(system fs.FS, e Entry) error {
	var fds [2]int
	for i, name := range []string{e.Kernel, e.Initrd} {
		f, err := system.Open(strings.TrimPrefix(name, "/"))
		if err != nil {
			return err
		}
		defer f.Close()
		real, ok := f.(fileWithFD)
		if !ok {
			return errkind.New(errkind.Unsupported, "%s is no file of a file system", name)
		}
		fds[i] = int(real.Fd())
	}
	if err := unix.KexecFileLoad(fds[0], fds[1], e.Args+" "+wire.KexecArgument, 0); err != nil {
		return fmt.Errorf("kexec_file_load %s: %w", e.Kernel, err)
	}
	return nil
}
