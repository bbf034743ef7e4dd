// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"testing"

	"github.com/ironrail/ironrail/provision/agent/disk"
)

// TestZeroed: what a disk says of a range without a read is what a read says, and a
// look at it finds the same either way.
func TestZeroed(t *testing.T) {
	for _, off := range []int64{0, 4095, 4096, 1 << 20, 200<<20 + 70, 2 << 30} {
		d := BuildNode(hgxNode(), Options{}).Disks()[0]
		if err := d.Fill(off, []byte("x")); err != nil {
			t.Fatal(err)
		}
		for _, s := range disk.Places(d.Size()) {
			b := make([]byte, s.Length)
			if _, err := d.ReadAt(b, s.Off); err != nil {
				t.Fatal(err)
			}
			if d.Zeroed(s.Off, s.Length) && !disk.AllZero(b) {
				t.Errorf("byte %d: %d bytes at %d are called zero", off, s.Length, s.Off)
			}
		}
		if with, without := disk.Probe(d, d.Size()), disk.Probe(readOnly{d}, d.Size()); with != without || with == "" {
			t.Errorf("byte %d: %q, and by reading all %q", off, with, without)
		}
	}
	d := BuildNode(hgxNode(), Options{}).Disks()[0]
	d.FailReads(20<<20, 1)
	if got := disk.Probe(d, d.Size()); got != "unreadable at byte 20971520" {
		t.Errorf("a disk that fails reads is %q", got)
	}
}

// readOnly hides that a disk is sparse.
type readOnly struct{ d *Disk }

func (r readOnly) ReadAt(b []byte, off int64) (int, error) { return r.d.ReadAt(b, off) }
