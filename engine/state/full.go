// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"syscall"

	"github.com/ironrail/ironrail/internal/errkind"
)

// FullDisk says of an error that the disk has no room, when it is that; else it
// returns err as it is.
func FullDisk(err error) error {
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, full) {
			return errkind.New(errkind.Interrupted, "disk full: %w", err).
				Do("Nothing that was recorded is lost. Free space on the disk of the state folder and apply again: it goes on from here.")
		}
	}
	return err
}
