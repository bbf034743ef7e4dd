// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// held is the memory of a node: a file.
type held struct{ path string }

func (h held) Image(size int64) (disk.Device, error) {
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(size); err != nil {
		return nil, err
	}
	return disk.Open(h.path, disk.Shared)
}

func (held) Mount(context.Context, func(rootfs.Root) error) error { return nil }

// memoryFixture serves the image as one that is kept in memory.
func memoryFixture(t *testing.T) (*fixture, *Writer) {
	t.Helper()
	f := newFixture(t)
	pub, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := manifest.Manifest{Format: manifest.Format, Name: "diskless.os", Form: manifest.Squashfs}
	f.plain = bytes.Clone(f.plain)
	copy(f.plain[disk.MarkerOffset:], "a squashfs has bytes here too")
	f.pack(t, &m)
	if err := m.Sign(key); err != nil {
		t.Fatal(err)
	}
	if f.file, f.params.Digest, err = m.Marshal(); err != nil {
		t.Fatal(err)
	}
	f.params.PublicKey, f.params.Memory, f.params.Disk = base64.StdEncoding.EncodeToString(pub), true, wire.Disk{}
	w := f.writer()
	w.Find, w.Memory = nil, held{f.path}
	return f, w
}

// pack cuts the plain image into chunks.
func (f *fixture) pack(t *testing.T, m *manifest.Manifest) {
	t.Helper()
	im := image{plain: f.plain}
	if err := im.cut(); err != nil {
		t.Fatal(err)
	}
	f.blob = im.blob
	m.Size, m.SHA256, m.Chunks, m.Blob = im.manifest.Size, im.manifest.SHA256, im.manifest.Chunks, im.manifest.Blob
}

// TestPeerMemory: an image comes into memory whole, byte by byte, damaged chunks are fetched again,
// what is there stays, and what was cut off goes on. No disk is looked at.
func TestPeerMemory(t *testing.T) {
	t.Parallel()
	f, w := memoryFixture(t)
	f.cut = int64(len(f.blob)) / 2
	ctx, cancel := context.WithCancel(t.Context())
	w.Wait = time.Hour // the first trouble is where it dies
	w.Progress = func(p wire.Progress) {
		if p.Note != "" {
			cancel()
		}
	}
	if _, err := w.Run(ctx, f.params); err == nil {
		t.Fatal("the cut write ended well")
	}
	f.cut, f.bad[int64(len(f.blob))-100] = 0, 1
	w.Progress, w.Wait = nil, time.Millisecond
	r, err := w.Run(t.Context(), f.params)
	if err != nil || r.Already || r.Written == 0 || r.Written >= 5*manifest.ChunkSize || r.Retried != 1 || r.Size != imageSize {
		t.Errorf("%+v, %v", r, err)
	}
	if got, err := os.ReadFile(f.path); err != nil || !bytes.Equal(got, f.plain) {
		t.Errorf("memory holds something else: %v", err)
	}
	if r, err := w.Run(t.Context(), f.params); err != nil || !r.Already {
		t.Errorf("once more: %+v, %v", r, err)
	}
}

// TestPeerOtherForm: an image for disks is not kept in memory, and one for memory is not written to
// a disk.
func TestPeerOtherForm(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.params.Memory = true
	w := f.writer()
	w.Memory = held{f.path + ".memory"}
	if _, err := w.Run(t.Context(), f.params); errkind.Of(err) != errkind.Conflict {
		t.Errorf("a disk in memory: %v", err)
	}
	if w.Memory = nil; errkind.Of(func() error { _, err := w.Run(t.Context(), f.params); return err }()) != errkind.Unsupported {
		t.Error("an agent without memory takes it")
	}
	f, w = memoryFixture(t)
	f.params.Memory, f.params.Disk = false, wire.Disk{Path: f.path, Size: diskSize}
	w.Find = f.writer().Find
	if _, err := w.Run(t.Context(), f.params); errkind.Of(err) != errkind.Conflict {
		t.Errorf("a squashfs on a disk: %v", err)
	}
	if got, err := os.ReadFile(f.path); err != nil || !disk.AllZero(got) {
		t.Errorf("the disk is not as it was: %v", err)
	}
}
