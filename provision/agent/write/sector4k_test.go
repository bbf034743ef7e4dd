// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// loop4K makes a loop device with logical sectors of 4096 bytes over the fixture's
// disk, and names it as the disk.
func (f *fixture) loop4K(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "-f", "--show", "-P", "-b", "4096", f.path).CombinedOutput()
	if err != nil {
		t.Skipf("no loop device with sectors of 4096 bytes: %v: %s", err, out)
	}
	f.path = strings.TrimSpace(string(out))
	f.params.Disk.Path = f.path
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", f.path).CombinedOutput(); err != nil {
			t.Errorf("losetup -d: %v: %s", err, out)
		}
	})
}

// tool runs one of the judges on the disk.
func (f *fixture) tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	peertest.Need(t, name)
	out, err := exec.CommandContext(t.Context(), name, append(args, f.path)...).CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
	return string(out)
}

// TestPeerSector4K: an image that was made for 512-byte sectors stands on a 4Kn disk
// with a table for that disk, and is found there by a second write.
func TestPeerSector4K(t *testing.T) {
	f := newFixture(t)
	f.loop4K(t)
	if _, err := f.writer().Run(t.Context(), f.params); err != nil {
		t.Fatal(err)
	}
	if out := f.tool(t, "sgdisk", "-v"); !strings.Contains(out, "No problems found") {
		t.Errorf("sgdisk -v says:\n%s", out)
	}
	if out := f.tool(t, "sfdisk", "--verify"); !strings.Contains(out, "No errors detected") {
		t.Errorf("sfdisk --verify says:\n%s", out)
	}
	dump := f.tool(t, "sfdisk", "-d")
	for _, want := range []string{"first-lba: 6\n", "sector-size: 4096", "p1 : start=         256, size=         256", "p2 : start=         512, size=       23808", `name="root"`} {
		if !strings.Contains(dump, want) {
			t.Errorf("sfdisk -d does not say %q:\n%s", want, dump)
		}
	}
	if out := f.tool(t, "blkid", "-p"); !strings.Contains(out, `PTTYPE="gpt"`) {
		t.Errorf("blkid: %s", out)
	}
	dev, err := disk.Open(f.path, disk.Look)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	table, err := gpt.Read(dev, dev.Size())
	if err != nil || table.Sector() != gpt.Sector4K || table.Backup {
		t.Fatalf("table %+v, %v", table, err)
	}
	if last, _ := table.Last(); last.Offset() != 2<<20 || last.Size() != diskSize-3<<20 {
		t.Errorf("root lies at byte %d and has %d", last.Offset(), last.Size())
	}
	if m, ok := disk.ReadMarker(dev); !ok || m.State != disk.Complete {
		t.Errorf("marker %+v, %v", m, ok)
	}
	b := make([]byte, 3584)
	if _, err := dev.ReadAt(b, 512); err != nil || !disk.AllZero(b) {
		t.Error("the table for 512-byte sectors is still there")
	}
	if res, err := f.writer().Run(t.Context(), f.params); err != nil || !res.Already {
		t.Errorf("again: %+v, %v", res, err)
	}
	f.params.Marker = "n1 key2"
	if _, err := f.writer().Run(t.Context(), f.params); err == nil || !strings.Contains(err.Error(), "GPT; p1 BIOS boot; p2 ") {
		t.Errorf("another install: %v", err)
	}
}

// TestPeerSector4KRefused: nothing is written to a 4Kn disk that the image cannot stand
// on, or that the firmware cannot start.
func TestPeerSector4KRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*testing.T, *fixture, *Writer)
		kind  errkind.Kind
		want  string
	}{
		"partition that is not aligned": {func(t *testing.T, f *fixture, _ *Writer) { f.unaligned(t) }, errkind.Mismatch,
			"partition 2 begins at byte 2100224"},
		"BIOS": {func(_ *testing.T, _ *fixture, w *Writer) { w.BIOS = true }, errkind.Unsupported, "boots by BIOS"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.loop4K(t)
			w := f.writer()
			c.spoil(t, f, w)
			_, err := w.Run(t.Context(), f.params)
			if err == nil || errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" {
				t.Errorf("got %v, action %q", err, errkind.Action(err))
			}
			b, err := os.ReadFile(f.path)
			if err != nil || !disk.AllZero(b) {
				t.Errorf("the disk was written to (%v)", err)
			}
		})
	}
}

// TestPeerNoLoaderForBIOS: nothing is written to a node with a BIOS that would find no
// loader in the image.
func TestPeerNoLoaderForBIOS(t *testing.T) {
	f := newFixture(t)
	w := f.writer()
	w.BIOS = true
	_, err := w.Run(t.Context(), f.params)
	if errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), "no boot loader for a BIOS") || errkind.Action(err) == "" {
		t.Errorf("got %v, action %q", err, errkind.Action(err))
	}
	if b, err := os.ReadFile(f.path); err != nil || !disk.AllZero(b) {
		t.Errorf("the disk was written to (%v)", err)
	}
}

// unaligned makes the image one whose second partition begins in the middle of
// 4096 bytes.
func (f *fixture) unaligned(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(path, make([]byte, imageSize), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "sgdisk", "-a", "1", "-n", "1:2048:4095", "-t", "1:ef02", "-n", "2:4102:0", path).CombinedOutput()
	if err != nil {
		t.Fatalf("sgdisk: %v\n%s", err, out)
	}
	im := &image{}
	if im.plain, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	if err := im.cut(); err != nil {
		t.Fatal(err)
	}
	f.publish(t, im)
}

// publish signs an image and serves it.
func (f *fixture) publish(t *testing.T, im *image) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := im.manifest
	if err := m.Sign(key); err != nil {
		t.Fatal(err)
	}
	file, digest, err := m.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	f.plain, f.blob, f.file = im.plain, im.blob, file
	f.params.Digest, f.params.PublicKey = digest, base64.StdEncoding.EncodeToString(pub)
}

// TestPeerLookAgain: what comes onto the disk after it was found, or cannot be read by
// then, is seen before the first byte goes.
func TestPeerLookAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil  func(*fixture, *Writer)
		want   string
		action string
	}{
		"data since": {func(f *fixture, _ *Writer) { put(f.path, 40<<20, "live") }, "not blank: unknown data at byte 41943040", "Look whether the data is needed"},
		"fails reads since": {func(_ *fixture, w *Writer) {
			w.Open = func(path string, use disk.Use) (disk.Device, error) {
				d, err := disk.Open(path, use)
				return failing{d}, err
			}
		}, "not blank: unreadable at byte 20971520", "replace it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.writer()
			w.Find = func(d wire.Disk) (wire.Disk, error) { c.spoil(f, w); return d, nil } // it was blank when it was found
			before, _ := os.ReadFile(f.path)
			_, err := w.Run(t.Context(), f.params)
			if err == nil || errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), c.want) || !strings.Contains(errkind.Action(err), c.action) {
				t.Errorf("got %v, action %q", err, errkind.Action(err))
			}
			after, _ := os.ReadFile(f.path)
			copy(after[40<<20:], before[40<<20:40<<20+4])
			if !bytes.Equal(before, after) {
				t.Error("the disk was written to")
			}
		})
	}
}

// failing is a disk of which a sector at 20 MiB cannot be read.
type failing struct{ disk.Device }

func (d failing) ReadAt(b []byte, off int64) (int, error) {
	if bad := int64(20 << 20); off <= bad && off+int64(len(b)) > bad {
		return int(bad - off), os.ErrInvalid
	}
	return d.Device.ReadAt(b, off)
}
