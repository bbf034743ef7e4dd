// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestAligned(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 511, 4096, 1 << 20} {
		b := Aligned(n)
		if len(b) != n || cap(b) != n || uintptr(unsafe.Pointer(&b[0]))%directAlign != 0 {
			t.Errorf("%d bytes: %d of %d at %p", n, len(b), cap(b), &b[0])
		}
	}
}

// TestDirectAndCached: what is written by one way is read by the other, whatever is
// aligned and in whichever order.
func TestDirectAndCached(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dev, err := Open(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if dev.(*node).direct == nil {
		t.Skip("the file system of this folder has no direct I/O")
	}
	want := make([]byte, 1<<20)
	for i, c := range []struct{ off, length, skew int }{
		{0, 8192, 0}, {4096, 4096, 0}, {100, 5000, 0}, {8192, 4096, 1}, {0, 12288, 0}, {12288, 512, 0}, {1<<20 - 4096, 4096, 0}, {1<<20 - 100, 100, 0},
	} {
		p := Aligned(c.length + c.skew)[c.skew:]
		for n := range p {
			p[n] = byte(i + n)
		}
		copy(want[c.off:], p)
		if n, err := dev.WriteAt(p, int64(c.off)); n != c.length || err != nil {
			t.Fatalf("%+v: wrote %d, %v", c, n, err)
		}
		for _, whole := range [][]byte{Aligned(1 << 20), make([]byte, 1<<20+1)[1:]} {
			if _, err := dev.ReadAt(whole, 0); err != nil || !bytes.Equal(whole, want) {
				t.Fatalf("after %+v: other bytes, %v", c, err)
			}
		}
	}
	if err := dev.Sync(); err != nil {
		t.Error(err)
	}
	if _, err := dev.WriteAt(Aligned(8192), 1<<20-4096); err == nil {
		t.Error("a write past the end is taken")
	}
}

// TestDirectRefused: a disk that takes no direct I/O is used through the cache.
func TestDirectRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, make([]byte, 8192), 0o600); err != nil {
		t.Fatal(err)
	}
	dev, err := Open(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	d := dev.(*node)
	if d.direct == nil {
		t.Skip("the file system of this folder has no direct I/O")
	}
	// EINVAL is what file systems and disks answer (open(2), O_DIRECT).
	if !d.direct.refused(os.NewSyscallError("pwrite", unix.EINVAL)) || d.direct.usable(Aligned(4096), 0) {
		t.Error("direct I/O that was refused is tried again")
	}
	p := Aligned(4096)
	p[0] = 7
	if n, err := dev.WriteAt(p, 4096); n != 4096 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	got := Aligned(4096)
	if _, err := dev.ReadAt(got, 4096); err != nil || got[0] != 7 {
		t.Errorf("%d, %v", got[0], err)
	}
}
