// SPDX-License-Identifier: Apache-2.0

package state

import (
	"syscall"

	"go.etcd.io/bbolt"
)

// A file is read through a mapping of it, and what was read stays in the memory of
// the process until the mapping ends: that of 12,500 nodes has 200 MiB, of which a
// plan needs each page once. So a reader of much lets go of it as it goes on. The
// pages stay in the system's cache while there is room there, and are mapped again
// where they are read again; the kernel maps 16 of them at a time, which makes few
// pages that lie apart many.

// letGo takes what was read of the file out of the process. What was read in the
// transaction may still be read. That the kernel refuses is no error: the memory is
// held for longer.
func (b *Bolt) letGo(tx *bbolt.Tx) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, tx.DB().Info().Data, uintptr(tx.Size()), syscall.MADV_DONTNEED)
}

// looked is after how many pages a walk over a file lets go of them.
const looked = 1 << 10
