// SPDX-License-Identifier: Apache-2.0

package secureboot

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// immutable is FS_IMMUTABLE_FL (include/uapi/linux/fs.h).
const immutable = 0x10

// makeMutable takes the immutable flag off a file of efivarfs; a file system without such flags
// has nothing to take off.
func makeMutable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags, err := unix.IoctlGetInt(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil
	}
	if err != nil || flags&immutable == 0 {
		return err
	}
	return unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags&^immutable)
}
