// SPDX-License-Identifier: Apache-2.0

package gpt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

const (
	small = 64 << 20
	large = 256 << 20
)

// image makes a disk image with sgdisk: BIOS boot, ESP and root, as ours are.
func image(t *testing.T) string {
	t.Helper()
	peertest.Need(t, "sgdisk")
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, small); err != nil {
		t.Fatal(err)
	}
	run(t, "-n", "1:2048:4095", "-t", "1:ef02", "-n", "2:4096:36863", "-t", "2:ef00", "-n", "3:36864:0", "-t", "3:8300", "-c", "3:ironrail-root", path)
	return path
}

func run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sgdisk", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("sgdisk %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func TestPeerGrow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		size int64
		want int64 // size of the root partition afterwards
		err  string
	}{
		{"left as it is", 0, (small>>9 - 33 - 36864) << 9, ""},
		{"to a size", 100 << 20, 100 << 20, ""},
		{"to the rest", Rest, large - 1<<20 - 18<<20, ""},
		{"never smaller", 1 << 20, (small>>9 - 33 - 36864) << 9, ""},
		{"too large", large, 0, "has room for"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := image(t)
			if err := os.Truncate(path, large); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			table, err := Read(f, large)
			if err != nil {
				t.Fatal(err)
			}
			err = table.Grow(c.size)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("got error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := table.Write(f); err != nil {
				t.Fatal(err)
			}
			judge(t, f, path, c.want)
		})
	}
}

// judge lets sgdisk check the table, then reads it back twice, the second time
// from the backup.
func judge(t *testing.T, f *os.File, path string, want int64) {
	t.Helper()
	if out := run(t, "-v", path); !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk -v says:\n%s", out)
	}
	for _, backup := range []bool{false, true} {
		if backup {
			if _, err := f.WriteAt(make([]byte, Sector), Sector); err != nil {
				t.Fatal(err)
			}
		}
		table, err := Read(f, large)
		if err != nil {
			t.Fatal(err)
		}
		last, _ := table.Last()
		if table.Backup != backup || last.Number != 3 || last.Name != "ironrail-root" || last.Size() != want {
			t.Errorf("backup %v: got %+v of %d bytes, want partition 3 of %d", table.Backup, last, last.Size(), want)
		}
	}
}

func TestNone(t *testing.T) {
	t.Parallel()
	if _, err := Read(bytes.NewReader(make([]byte, small)), small); !errors.Is(err, errNone) {
		t.Errorf("got %v, want errNone", err)
	}
}

// FuzzRead makes the sums right, so that what is fuzzed is what they protect.
func FuzzRead(f *testing.F) {
	f.Add(uint32(128), uint32(128), uint64(2), make([]byte, 256))
	f.Add(uint32(1024), uint32(1024), uint64(1<<63), []byte{1})
	f.Fuzz(func(t *testing.T, count, size uint32, start uint64, entries []byte) {
		disk := make([]byte, 4<<20)
		h := disk[Sector:]
		copy(h, signature)
		binary.LittleEndian.PutUint32(h[12:], headerSize)
		binary.LittleEndian.PutUint64(h[24:], 1)
		binary.LittleEndian.PutUint64(h[72:], start)
		binary.LittleEndian.PutUint32(h[80:], count)
		binary.LittleEndian.PutUint32(h[84:], size)
		copy(disk[2*Sector:], entries[:min(len(entries), 1<<20)])
		if n := uint64(count) * uint64(size); n <= 1<<20 && start < 4096 {
			binary.LittleEndian.PutUint32(h[88:], crc32.ChecksumIEEE(disk[start*Sector:min(start*Sector+n, 4<<20)]))
		}
		binary.LittleEndian.PutUint32(h[16:], headerSum(h))
		table, err := Read(bytes.NewReader(disk), int64(len(disk)))
		if err != nil {
			return
		}
		for _, p := range table.Partitions() {
			if p.Size() <= 0 || p.Offset() < 0 {
				t.Errorf("partition %+v", p)
			}
		}
		before, _ := table.Last()
		if err := table.Grow(Rest); err != nil {
			return
		}
		if after, _ := table.Last(); after.Number == before.Number && after.Last < before.Last {
			t.Errorf("partition shrank from %+v to %+v", before, after)
		}
	})
}
