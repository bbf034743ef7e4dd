// SPDX-License-Identifier: Apache-2.0

package write

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

const (
	imageSize = 34 << 20 // the last chunk is short
	diskSize  = 96 << 20
)

// fixture is an image on an HTTP server and a disk to write it to.
type fixture struct {
	plain  []byte
	params wire.WriteParams
	path   string

	mu       sync.Mutex
	file     []byte
	blob     []byte
	requests int
	bad      map[int64]int // blob offset -> how often its byte is served flipped
	cut      int64         // bytes after which a connection is cut; 0: never
	down     atomic.Int64  // how many requests are refused
	notes    []string
}

// image is a disk image, cut and packed: the same for every test.
type image struct {
	plain, blob []byte
	manifest    manifest.Manifest // not signed
}

// theImage makes it once, with sgdisk: BIOS boot and root, some chunks zero.
var theImage = sync.OnceValues(func() (*image, error) {
	dir, err := os.MkdirTemp("", "ironrail-image")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "image")
	b := make([]byte, imageSize)
	for _, off := range []int{2 << 20, 9 << 20, 17 << 20, 25 << 20, 32 << 20} {
		rand.NewChaCha8([32]byte{byte(off >> 20)}).Read(b[off : off+1<<20])
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command("sgdisk", "-n", "1:2048:4095", "-t", "1:ef02", "-n", "2:4096:0", "-c", "2:root", path).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("sgdisk: %w: %s", err, out)
	}
	im := &image{}
	if im.plain, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	return im, im.cut()
})

// cut cuts the image into chunks.
func (im *image) cut() error {
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(im.plain)
	im.manifest = manifest.Manifest{Format: manifest.Format, Name: "debian.os", Size: imageSize, SHA256: hex.EncodeToString(sum[:])}
	for off := 0; off < imageSize; off += manifest.ChunkSize {
		b := im.plain[off:min(off+manifest.ChunkSize, imageSize)]
		c := manifest.Chunk{Offset: int64(len(im.blob)), Plain: int64(len(b))}
		if !disk.AllZero(b) {
			packed := encoder.EncodeAll(b, nil)
			c.Length, c.BLAKE3 = int64(len(packed)), manifest.Sum(b)
			im.blob = append(im.blob, packed...)
		}
		im.manifest.Chunks = append(im.manifest.Chunks, c)
	}
	im.manifest.Blob = int64(len(im.blob))
	return nil
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	peertest.Need(t, "sgdisk")
	im, err := theImage()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{plain: im.plain, blob: im.blob, path: filepath.Join(t.TempDir(), "disk"), bad: map[int64]int{}}
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
	f.file = file
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	if err := os.WriteFile(f.path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(f.path, diskSize); err != nil {
		t.Fatal(err)
	}
	f.params = wire.WriteParams{
		Disk:        wire.Disk{Path: f.path, Size: diskSize, Serial: "D1"},
		ManifestURL: server.URL + "/manifest.json", BlobURL: server.URL + "/blob",
		Digest: digest, PublicKey: base64.StdEncoding.EncodeToString(pub), RootSize: wire.RestOfDisk, Marker: "n1 key1",
	}
	return f
}

// ServeHTTP serves the image, with the faults that are set.
func (f *fixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if f.down.Add(-1) >= 0 {
		http.Error(w, "starting", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Path == "/manifest.json" {
		w.Write(f.file)
		return
	}
	if r.URL.Path != "/blob" {
		http.NotFound(w, r)
		return
	}
	f.mu.Lock()
	f.requests++
	b := bytes.Clone(f.blob)
	var from, to int64
	fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%d", &from, &to)
	for off, n := range f.bad {
		if n > 0 && off >= from && off <= to {
			b[off] ^= 0xff
			f.bad[off]--
		}
	}
	cut := f.cut
	f.mu.Unlock()
	if cut > 0 {
		w = cutter{w, &cut}
	}
	http.ServeContent(w, r, "blob", time.Time{}, bytes.NewReader(b))
}

// cutter ends the connection after some bytes.
type cutter struct {
	http.ResponseWriter
	left *int64
}

func (c cutter) Write(p []byte) (int, error) {
	if int64(len(p)) > *c.left {
		c.ResponseWriter.Write(p[:*c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	*c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

func (f *fixture) writer() *Writer {
	return &Writer{
		Find: func(d wire.Disk) (wire.Disk, error) {
			dev, err := disk.Open(d.Path, disk.Look)
			if err != nil {
				return d, err
			}
			defer dev.Close()
			d.Content = disk.Probe(dev, dev.Size())
			if m, ok := disk.ReadMarker(dev); ok {
				d.Marker, d.State = m.Text, string(m.State)
			}
			return d, nil
		},
		Progress: func(p wire.Progress) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if p.Note != "" {
				f.notes = append(f.notes, p.Note)
			}
		},
		Client: NewClient(nil), Wait: time.Millisecond, StallTimeout: 30 * time.Second, Stall: 30 * time.Second,
	}
}

// judge checks the disk: the image from 1 MiB on, a whole and grown partition
// table, a marker that says complete.
func (f *fixture) judge(t *testing.T) {
	t.Helper()
	got, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	root := got[1<<20 : imageSize-1<<20]
	if !bytes.Equal(root, f.plain[1<<20:imageSize-1<<20]) {
		t.Error("the disk does not hold the image")
	}
	if out, err := exec.CommandContext(t.Context(), "sgdisk", "-v", f.path).CombinedOutput(); err != nil || !strings.Contains(string(out), "No problems found") {
		t.Errorf("sgdisk -v: %v\n%s", err, out)
	}
	table, err := gpt.Read(bytes.NewReader(got), diskSize)
	if err != nil {
		t.Fatal(err)
	}
	if last, _ := table.Last(); last.Name != "root" || last.Size() != diskSize-3<<20 {
		t.Errorf("root partition %+v of %d bytes", last, last.Size())
	}
	if m, ok := disk.ReadMarker(bytes.NewReader(got)); !ok || m.State != disk.Complete || m.Text != "n1 key1" {
		t.Errorf("marker %+v", m)
	}
}

func TestPeerWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		fault   func(*fixture)
		retried int
		note    string
	}{
		{"plain", func(*fixture) {}, 0, ""},
		{"corrupt chunk", func(f *fixture) { f.bad[1000] = 3 }, 1, "chunk 0 was corrupt on the wire"},
		{"connections cut", func(f *fixture) { f.cut = 1500 << 10 }, 0, "trying again"},
		{"controller away for a while", func(f *fixture) {
			f.down.Store(5)
		}, 0, "503"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.fault(f)
			r, err := f.writer().Run(t.Context(), f.params)
			if err != nil {
				t.Fatal(err)
			}
			if r.Retried != c.retried || r.Already || r.Size != imageSize || r.Written == 0 || r.Written >= imageSize {
				t.Errorf("got %+v", r)
			}
			if !strings.Contains(strings.Join(f.notes, "\n"), c.note) {
				t.Errorf("got notes %q, want %q", f.notes, c.note)
			}
			f.judge(t)
			requests := f.requests
			again, err := f.writer().Run(t.Context(), f.params)
			if err != nil || !again.Already || again.Digest != r.Digest || again.Written != 0 {
				t.Errorf("second time: got %+v, %v; want already", again, err)
			}
			if c.name == "plain" && f.requests != requests+1 {
				t.Errorf("the second time took %d requests of the image, want 1: the first chunk", f.requests-requests)
			}
			f.judge(t)
		})
	}
}

func TestPeerRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(*fixture)
		kind  errkind.Kind
		text  string
	}{
		{"wrong digest", func(f *fixture) { f.params.Digest = "sha256:00" }, errkind.Mismatch, "the plan says sha256:00"},
		{"another key", func(f *fixture) {
			pub, _, _ := ed25519.GenerateKey(nil)
			f.params.PublicKey = base64.StdEncoding.EncodeToString(pub)
		}, errkind.Corrupt, "not signed by this controller's key"},
		{"no key", func(f *fixture) { f.params.PublicKey = "" }, errkind.Corrupt, "not signed"},
		{"not blank", func(f *fixture) { put(f.path, 5000, "data") }, errkind.Refused, "not blank: unknown data"},
		{"disk too small", func(f *fixture) { os.Truncate(f.path, imageSize) }, errkind.Mismatch, "the image needs"},
		{"no room for root", func(f *fixture) { f.params.RootSize = diskSize }, errkind.Mismatch, "has room for"},
		{"always corrupt", func(f *fixture) { f.bad[1000] = 100 }, errkind.Corrupt, "chunk 0 of 9 of the image came corrupt 6 times (fetched again 5 times, the same wrong bytes every time): expected 4194304 bytes of BLAKE3 "},
		{"image absent", func(f *fixture) { f.params.BlobURL += "x" }, errkind.Refused, "404"},
		{"controller gone", func(f *fixture) { f.down.Store(math.MaxInt64) }, errkind.Unreachable, "503"},
		{"no marker", func(f *fixture) { f.params.Marker = "" }, errkind.Internal, "marker is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.fault(f)
			w := f.writer()
			if c.kind == errkind.Unreachable {
				w.StallTimeout = 200 * time.Millisecond
			}
			_, err := w.Run(t.Context(), f.params)
			if err == nil || errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Fatalf("got %v of kind %v, want %q of kind %v", err, errkind.Of(err), c.text, c.kind)
			}
		})
	}
}

// TestPeerPartAndBegun: what a write fails by, and whether it had begun to erase.
func TestPeerPartAndBegun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(*fixture)
		part  wire.Part
		begun bool
	}{
		{"not blank", func(f *fixture) { put(f.path, 5000, "data") }, "", false},
		{"wrong digest", func(f *fixture) { f.params.Digest = "sha256:00" }, "", false},
		{"disk too small", func(f *fixture) { os.Truncate(f.path, imageSize) }, "", false},
		{"always corrupt", func(f *fixture) { f.bad[1000] = 100 }, wire.PartChunk, true},
		{"image absent", func(f *fixture) { f.params.BlobURL += "x" }, wire.PartStream, true},
		{"no room for root", func(f *fixture) { f.params.RootSize = diskSize }, wire.PartDisk, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c.fault(f)
			_, err := f.writer().Run(t.Context(), f.params)
			part := wire.Part("")
			for p, ok := errors.AsType[*wire.PartError](err); ok; p, ok = errors.AsType[*wire.PartError](p.Err) {
				part = p.Part
			}
			if err == nil || part != c.part || errkind.HasBegun(err) != c.begun {
				t.Errorf("part %q, begun %v, want %q and %v: %v", part, errkind.HasBegun(err), c.part, c.begun, err)
			}
		})
	}
}

// put writes text somewhere into a file.
func put(path string, off int64, text string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		f.WriteAt([]byte(text), off)
		f.Close()
	}
}

// A refused disk keeps every byte.
func TestPeerRefusedDiskIsUntouched(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	put(f.path, 70<<20, "somebody's data")
	put(f.path, 1000, "x")
	before, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.writer().Run(t.Context(), f.params); errkind.Of(err) != errkind.Refused {
		t.Fatalf("got %v", err)
	}
	after, err := os.ReadFile(f.path)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the disk was changed (%v)", err)
	}
	f.params.AllowData = true
	if _, err := f.writer().Run(t.Context(), f.params); err != nil {
		t.Fatal(err)
	}
	f.judge(t)
	f.params.Marker, f.params.AllowData = "n1 another", false
	if _, err := f.writer().Run(t.Context(), f.params); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), `written by ironrail as "n1 key1"`) {
		t.Errorf("another key over an installed disk: got %v", err)
	}
}

// The agent is killed in mid-write; the same write goes on without allow_data and
// fetches only what is missing.
func TestPeerResume(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cut = int64(len(f.blob)) * 3 / 4
	ctx, cancel := context.WithCancel(t.Context())
	w := f.writer()
	w.Wait = time.Hour // the first trouble is where it dies
	note := w.Progress
	w.Progress = func(p wire.Progress) {
		note(p)
		if p.Note != "" {
			cancel()
		}
	}
	if _, err := w.Run(ctx, f.params); err == nil {
		t.Fatal("the cut write ended well")
	}
	d, err := f.writer().Find(f.params.Disk)
	if err != nil || d.State != "writing" || d.Marker != f.params.Marker {
		t.Errorf("half-written disk is seen as %+v, %v", d, err)
	}
	f.cut = 0
	r, err := f.writer().Run(t.Context(), f.params)
	if err != nil {
		t.Fatal(err)
	}
	if full := int64(5 * manifest.ChunkSize); r.Already || r.Written == 0 || r.Written >= full {
		t.Errorf("got %+v, want less than %d written", r, full)
	}
	f.judge(t)
}

// A disk that was changed after it was complete is not called done.
func TestPeerChangedDisk(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.writer().Run(t.Context(), f.params); err != nil {
		t.Fatal(err)
	}
	put(f.path, 17<<20, "rot")
	r, err := f.writer().Run(t.Context(), f.params)
	if err != nil || r.Already || r.Written != 2*manifest.ChunkSize { // the rotten one, and the first for its grown table
		t.Errorf("got %+v, %v", r, err)
	}
	f.judge(t)
}

// A configured disk is not written again by the same write.
func TestPeerConfigured(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, err := f.writer().Run(t.Context(), f.params)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := disk.Open(f.path, disk.Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m, _ := disk.ReadMarker(dev)
	m.State = disk.Configured
	if err := disk.PutMarker(dev, m); err != nil {
		t.Fatal(err)
	}
	put(f.path, 17<<20, "host settings")
	if r, err := f.writer().Run(t.Context(), f.params); err != nil || !r.Already || r.Digest != first.Digest {
		t.Errorf("got %+v, %v", r, err)
	}
}
