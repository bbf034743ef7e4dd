// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// file makes a sparse file of 64 MiB and returns its path.
func file(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 64<<20); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPeerProbe(t *testing.T) {
	t.Parallel()
	at := func(off int64, text string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if _, err := f.WriteAt([]byte(text), off); err != nil {
				t.Fatal(err)
			}
		}
	}
	tool := func(name string, args ...string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			peertest.Need(t, name)
			if out, err := exec.CommandContext(t.Context(), name, append(args, path)...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, out)
			}
		}
	}
	for _, c := range []struct {
		name string
		put  func(*testing.T, string)
		want string
	}{
		{"blank", func(*testing.T, string) {}, ""},
		{"one byte in the first MiB", at(70000, "x"), "unknown data at byte 70000"},
		{"one byte at the end", at(64<<20-1, "x"), "unknown data at byte 67108863"},
		{"ext4", tool("mke2fs", "-q", "-t", "ext4", "-L", "data"), "ext4 label data"},
		{"ext2", tool("mke2fs", "-q", "-t", "ext2"), "ext2"},
		{"vfat", tool("mkfs.vfat", "-n", "ESP"), "vfat label ESP"},
		{"swap", tool("mkswap", "-L", "s"), "swap label s"},
		{"LVM", at(512, "LABELONE"), "LVM physical volume"},
		{"xfs", at(0, "XFSB"), "xfs"},
		{"mdraid 1.2", at(4096, "\xfc\x4e\x2b\xa9"), "mdraid member"},
		{"mdraid 1.0", at(64<<20-8192, "\xfc\x4e\x2b\xa9"), "mdraid member"},
		{"GPT", tool("sgdisk", "-n", "1:2048:4095", "-t", "1:ef02", "-n", "2:0:0"), "GPT; p1 BIOS boot; p2 no known file system"},
		{"MBR", at(446, "\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x08\x00\x00"+strings.Repeat("\x00", 48)+"\x55\xaa"), "MBR; p1 type 83"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := file(t)
			c.put(t, path)
			d, err := Open(path, Look)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if got := Probe(d, d.Size()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestPeerBackupTableAlone(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "sgdisk")
	path := file(t)
	if out, err := exec.CommandContext(t.Context(), "sgdisk", "-n", "1:2048:0", path).CombinedOutput(); err != nil {
		t.Fatalf("sgdisk: %v\n%s", err, out)
	}
	d, err := Open(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Zero(0, 1<<20); err != nil {
		t.Fatal(err)
	}
	if got := Probe(d, d.Size()); !strings.HasPrefix(got, "GPT, backup only") {
		t.Errorf("got %q", got)
	}
}

func TestMarker(t *testing.T) {
	t.Parallel()
	d, err := Open(file(t), Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if m, ok := ReadMarker(d); ok {
		t.Errorf("blank disk has marker %+v", m)
	}
	want := Marker{Text: "n1 key", State: Writing, Digest: "sha256:ab", Image: "cd"}
	if err := PutMarker(d, want); err != nil {
		t.Fatal(err)
	}
	if got, ok := ReadMarker(d); !ok || got != want {
		t.Errorf("got %+v, %v", got, ok)
	}
	if err := PutMarker(d, Marker{Text: strings.Repeat("x", MarkerSize)}); err == nil {
		t.Error("a marker that does not fit was taken")
	}
	if _, err := d.WriteAt([]byte("!"), MarkerOffset+markerHeader+3); err != nil {
		t.Fatal(err)
	}
	if m, ok := ReadMarker(d); ok {
		t.Errorf("damaged marker was read as %+v", m)
	}
}

func TestZero(t *testing.T) {
	t.Parallel()
	d, err := Open(file(t), Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.WriteAt(bytes.Repeat([]byte{7}, 3<<20), 1000); err != nil {
		t.Fatal(err)
	}
	if err := d.Zero(1001, 3<<20-2); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3<<20)
	if _, err := d.ReadAt(got, 1000); err != nil {
		t.Fatal(err)
	}
	if got[0] != 7 || got[len(got)-1] != 7 || !AllZero(got[1:len(got)-1]) {
		t.Error("zeroed more or less than was asked for")
	}
	if err := d.Zero(d.Size()-1, 2); err == nil {
		t.Error("zeroing past the end was taken")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/dev/null", t.TempDir(), "/no/such/disk"} {
		if d, err := Open(path, Look); err == nil {
			d.Close()
			t.Errorf("%s was opened as a disk", path)
		}
	}
}

func FuzzMarker(f *testing.F) {
	b, _ := Marker{Text: "x"}.bytes()
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) { parseMarker(b) })
}

// torn is a disk whose bytes from a point on cannot be read.
type torn struct {
	io.ReaderAt
	from, to int64
}

func (d torn) ReadAt(b []byte, off int64) (int, error) {
	if off < d.to && off+int64(len(b)) > d.from {
		n := max(0, d.from-off)
		if n > 0 {
			d.ReaderAt.ReadAt(b[:n], off)
		}
		return int(n), syscall.EIO
	}
	return d.ReaderAt.ReadAt(b, off)
}

// FuzzProbe: what is called blank is erased, whatever a disk holds that is read
// whole, and a disk that fails a read is never blank.
func FuzzProbe(f *testing.F) {
	f.Add(make([]byte, 4096), uint32(0))
	for _, s := range append(slices.Concat(starts, ends), tables...) {
		b := make([]byte, 16<<10)
		copy(b[max(s.off, 0)%int64(len(b)-512):], s.magic)
		f.Add(b, uint32(100))
	}
	f.Fuzz(func(t *testing.T, b []byte, bad uint32) {
		size := int64(len(b))
		if got := Probe(bytes.NewReader(b), size); got == "" && size <= 2*edge && notErased(b) >= 0 {
			t.Errorf("%d bytes that are not erased are called blank", len(b))
		}
		if at := int64(bad); at < size {
			if got := Probe(torn{bytes.NewReader(b), at, at + 1}, size); got == "" {
				t.Errorf("a disk of %d bytes whose byte %d cannot be read is called blank", size, at)
			}
		}
	})
}
