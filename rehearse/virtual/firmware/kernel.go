// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"bytes"
	"net/netip"

	"github.com/ironrail/ironrail/internal/addr"
)

// How much of the files is kept: what says which kernel it is, and the end of the
// initrd, where the node's own segment lies. All else is read and dropped.
const (
	headSize = 1 << 10
	tailSize = 16 << 10
)

// Kernel is what was booted.
type Kernel struct {
	Cmdline    string
	Kernel     []byte // its first KiB
	KernelSize int64
	Initrd     []byte // the last 16 KiB of all initrds, joined as the kernel gets them
	InitrdSize int64
	Address    netip.Prefix // of the node, from DHCP
	MAC        addr.MAC     // of the NIC that booted
}

// head keeps the first bytes that are written.
type head struct {
	b []byte
	n int64
}

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.n += int64(len(p))
	h.b = append(h.b, p[:min(len(p), headSize-len(h.b))]...)
	return len(p), nil
}

// tail keeps the last bytes that are written.
type tail struct {
	b []byte
	n int64
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.n += int64(len(p))
	t.b = append(t.b, p[max(0, len(p)-tailSize):]...)
	if over := len(t.b) - tailSize; over > tailSize {
		t.b = append(t.b[:0], t.b[over:]...)
	}
	return len(p), nil
}

// last returns what is kept.
func (t *tail) last() []byte { return bytes.Clone(t.b[max(0, len(t.b)-tailSize):]) }

// pad fills up to a multiple of four bytes, as iPXE does between initrds.
func (t *tail) pad() { _, _ = t.Write(make([]byte, -t.n&3)) }
