// SPDX-License-Identifier: Apache-2.0

package wipe_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/wipe"
)

const size = 256 << 20

// between is a byte that no look at the disk comes to.
const between = 150<<20 + 512<<10

// dirty makes a file that stands for a disk, with marks at both ends and in the
// middle of it.
func dirty(t *testing.T) wire.Disk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for off, text := range map[int64]string{0: "XFSB", 1<<20 - 4096: "ironrail", size / 2: "secret", between: "secret", size - 8192: "\xfc\x4e\x2b\xa9"} {
		if _, err := f.WriteAt([]byte(text), off); err != nil {
			t.Fatal(err)
		}
	}
	return wire.Disk{Name: "sda", Path: path, Size: size, Serial: "S1"}
}

func found(d wire.Disk) (wire.Disk, error) { return d, nil }

func content(t *testing.T, d wire.Disk) string {
	t.Helper()
	dev, err := disk.Open(d.Path, disk.Look)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	return disk.Probe(dev, dev.Size())
}

// TestEnds: a disk that does not discard is blank wherever a look at it comes to, and
// the result says what is left between these places.
func TestEnds(t *testing.T) {
	t.Parallel()
	d := dirty(t)
	res, err := wipe.Wiper{Find: found}.Run(t.Context(), wire.WipeParams{Disks: []wire.Disk{d}})
	if err != nil {
		t.Fatal(err)
	}
	if got := content(t, d); got != "" {
		t.Errorf("the disk still holds %q", got)
	}
	if w := res.Disks[0]; w.Discarded || w.Zeroed <= 128<<20 || !strings.Contains(w.Note, "still there") {
		t.Errorf("result %+v", w)
	}
	f, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 6)
	if _, err := f.ReadAt(b, between); err != nil || string(b) != "secret" {
		t.Errorf("the middle reads %q: a result that says so would be wrong", b)
	}
}

// TestOneMissing: when one of the disks is not what it was, none is touched.
func TestOneMissing(t *testing.T) {
	t.Parallel()
	a, b := dirty(t), dirty(t)
	gone := errkind.New(errkind.Mismatch, "there is no such disk")
	w := wipe.Wiper{Find: func(d wire.Disk) (wire.Disk, error) {
		if d.Path == b.Path {
			return d, gone
		}
		return d, nil
	}}
	if _, err := w.Run(t.Context(), wire.WipeParams{Disks: []wire.Disk{a, b}}); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
	if content(t, a) == "" {
		t.Error("the first disk was wiped")
	}
	if _, err := w.Run(t.Context(), wire.WipeParams{}); err == nil {
		t.Error("nothing was asked for, and that was done")
	}
}

// TestCutOff: a wipe that is stopped and asked for again ends with a blank disk.
func TestCutOff(t *testing.T) {
	t.Parallel()
	d := dirty(t)
	ctx, stop := context.WithCancel(t.Context())
	w := wipe.Wiper{Find: found, Open: func(path string, use disk.Use) (disk.Device, error) {
		dev, err := disk.Open(path, use)
		return &stopping{Device: dev, after: 5, stop: stop}, err
	}}
	if _, err := w.Run(ctx, wire.WipeParams{Disks: []wire.Disk{d}}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if content(t, d) == "" {
		t.Fatal("it was not cut off")
	}
	if _, err := (wipe.Wiper{Find: found}).Run(t.Context(), wire.WipeParams{Disks: []wire.Disk{d}}); err != nil {
		t.Fatal(err)
	}
	if got := content(t, d); got != "" {
		t.Errorf("the disk still holds %q", got)
	}
}

// stopping cancels the work after some zeroings.
type stopping struct {
	disk.Device
	after int
	stop  context.CancelFunc
}

func (s *stopping) Zero(off, length int64) error {
	if s.after--; s.after == 0 {
		s.stop()
	}
	return s.Device.Zero(off, length)
}

// TestDoesNotKeep: a disk that takes writes and does not keep them is no blank one.
func TestDoesNotKeep(t *testing.T) {
	t.Parallel()
	d := dirty(t)
	w := wipe.Wiper{Find: found, Open: func(path string, use disk.Use) (disk.Device, error) {
		dev, err := disk.Open(path, use)
		return zeroIgnored{dev}, err
	}}
	_, err := w.Run(t.Context(), wire.WipeParams{Disks: []wire.Disk{d}})
	var p *wire.PartError
	if !errors.As(err, &p) || p.Part != wire.PartDisk || errkind.Of(err) != errkind.Mismatch {
		t.Errorf("error %v", err)
	}
}

type zeroIgnored struct{ disk.Device }

func (zeroIgnored) Zero(int64, int64) error { return nil }
