// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"errors"
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// FIFREEZE and FITHAW of linux/fs.h: _IOWR('X', 119, int) and _IOWR('X', 120, int).
const (
	freeze = 0xc0045877
	thaw   = 0xc0045878
)

// Flush writes out what a mounted file system at dir holds, so that a boot loader reads
// it. GRUB replays no log: sync(2) suffices for ext4, whose blocks it writes to their
// places, and not for XFS, which leaves them in its log. Freezing empties the log; the
// file system is thawed at once, by this very process, which nothing but SIGKILL ends in
// between: a root that stayed frozen would stop the machine. One that somebody else has
// frozen is an error, and stays so.
func Flush(dir string) (err error) {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("file system of %s: %w", dir, err)
	}
	if st.Type != unix.XFS_SUPER_MAGIC {
		return nil
	}
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	if err := unix.IoctlSetInt(int(f.Fd()), freeze, 0); err != nil {
		return fmt.Errorf("freeze %s: %w", dir, err)
	}
	err = unix.IoctlSetInt(int(f.Fd()), thaw, 0)
	for errors.Is(err, unix.EINTR) {
		err = unix.IoctlSetInt(int(f.Fd()), thaw, 0)
	}
	if err != nil {
		return fmt.Errorf("thaw %s: %w", dir, err)
	}
	return nil
}
