// SPDX-License-Identifier: Apache-2.0

// Package write puts an image on a disk: the right disk or none, every chunk
// checked before it is written and read back afterwards, and at every moment a
// marker on the disk that says how far it came.
package write

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/memory"
	"github.com/ironrail/ironrail/provision/agent/volumes"
)

// Writer writes images. One write at a time.
type Writer struct {
	Find         func(wire.Disk) (wire.Disk, error) // the disk as it is now, or Mismatch; required
	Open         disk.Opener                        // nil: disk.Open
	Progress     func(wire.Progress)                // may be called by several goroutines; nil: nobody listens
	Client       *http.Client                       // required; see NewClient
	StallTimeout time.Duration                      // how long the image may not come on at all; default 10 min
	Stall        time.Duration                      // how long a connection may give nothing; default 30 s
	Wait         time.Duration                      // first wait before a retry; default 500 ms
	Workers      int                                // chunks that are unpacked and written at a time; default: one a CPU, at most 8
	Buffers      *Buffers                           // shared by several writers; nil: this one has its own
	Node         volumes.Node                       // makes disk layouts; nil: none is made
	Memory       memory.Node                        // keeps images that are no disks; nil: none is kept
	BIOS         bool                               // the node's firmware is a BIOS: it starts no disk with 4096-byte sectors

	mu     sync.Mutex
	report wire.Progress // guarded by mu
}

// job is one write.
type job struct {
	*Writer
	params   wire.WriteParams
	image    manifest.Manifest
	open     disk.Opener
	dev      disk.Device
	marker   disk.Marker
	resume   bool // the disk carries our marker: what is right already stays
	unmarked bool // dev is no disk: it has no place for a marker
	written  atomic.Int64
	retried  atomic.Int32
	verified time.Duration
}

// Run writes the image of p, or finds that it was written already. It may be
// called again after it was cut off anywhere: the marker on the disk tells.
func (w *Writer) Run(ctx context.Context, p wire.WriteParams) (wire.WriteResult, error) {
	key, err := base64.StdEncoding.DecodeString(p.PublicKey)
	if err != nil || p.Marker == "" {
		return wire.WriteResult{}, errkind.New(errkind.Internal, "parameters of the write: public key or marker is missing or damaged")
	}
	switch {
	case p.Memory:
		return w.runMemory(ctx, p, key)
	case p.Layout != nil:
		return w.runLayout(ctx, p, key)
	}
	found, err := w.Find(p.Disk)
	if err != nil {
		return wire.WriteResult{}, err
	}
	if err := mayErase(found, p); err != nil {
		return wire.WriteResult{}, err
	}
	image, err := w.manifestOf(ctx, p, key)
	if err != nil {
		return wire.WriteResult{}, err
	}
	if err := isDisk(image); err != nil {
		return wire.WriteResult{}, err
	}
	open := w.Open
	if open == nil {
		open = disk.Open
	}
	dev, err := open(p.Disk.Path, disk.Exclusive)
	if err != nil {
		return wire.WriteResult{}, err
	}
	defer dev.Close()
	j := &job{Writer: w, params: p, image: image, open: open, dev: dev, marker: disk.Marker{Text: p.Marker, Digest: p.Digest}}
	w.begin(image.Size)
	if err := j.fits(); err != nil {
		return wire.WriteResult{}, err
	}
	return j.run(ctx)
}

// mayErase is the last gate before a disk loses its content.
func mayErase(d wire.Disk, p wire.WriteParams) error {
	if d.Content == "" || p.AllowData || d.Marker == p.Marker {
		return nil
	}
	what := d.Content
	if d.Marker != "" {
		what += fmt.Sprintf(", written by ironrail as %q", d.Marker)
	}
	err := errkind.New(errkind.Refused, "disk %s is not blank: %s", d.Path, what)
	if disk.Unreadable(d.Content) {
		return err.Do("The disk fails reads: look at its health and replace it. A disk that cannot be read is never taken for blank.")
	}
	return err.Do("Look whether the data is needed; to erase it, allow it for this node in the inventory, or replace the node with `ironrail rebuild`.")
}

// lookAgain is the same gate with what stands on the disk now that nobody else uses
// it: Find looked before the manifest was fetched.
func (j *job) lookAgain(old disk.Marker) error {
	if j.params.AllowData || old.Text == j.params.Marker {
		return nil
	}
	now := j.params.Disk
	now.Marker = old.Text
	dev, err := j.open(j.params.Disk.Path, disk.Look)
	if err != nil {
		return err
	}
	defer dev.Close()
	now.Content = disk.Probe(dev, dev.Size())
	return mayErase(now, j.params)
}

// fits checks that the image can stand and start on this disk.
func (j *job) fits() error {
	switch n := j.dev.SectorSize(); {
	case n != gpt.Sector && n != gpt.Sector4K:
		return errkind.New(errkind.Unsupported, "disk %s has logical sectors of %d bytes; images fit onto %d and %d", j.params.Disk.Path, n, gpt.Sector, gpt.Sector4K).
			Do("Set the disk to 512-byte logical sectors (nvme format, sg_format), or use another one.")
	case n == gpt.Sector4K && j.BIOS:
		return errkind.New(errkind.Unsupported, "disk %s has logical sectors of %d bytes; this node boots by BIOS, which starts no such disk", j.params.Disk.Path, n).
			Do("Set the node to UEFI boot, or the disk to 512-byte logical sectors (nvme format, sg_format), or use another disk.")
	}
	for i, c := range j.image.Chunks {
		if c.Length > maxPacked {
			return errkind.New(errkind.Invalid, "chunk %d of the image has %d bytes packed, at most %d are sensible", i, c.Length, maxPacked)
		}
	}
	if need := j.image.Size + 1<<20; j.dev.Size() < need { // room for the backup table
		return errkind.New(errkind.Mismatch, "disk %s has %d bytes, the image needs %d", j.params.Disk.Path, j.dev.Size(), need).
			Do("Use a larger disk or a smaller image.")
	}
	return nil
}

// run looks at the marker and does what is left.
func (j *job) run(ctx context.Context) (wire.WriteResult, error) {
	old, ok := disk.ReadMarker(j.dev)
	j.resume = ok && old.Text == j.params.Marker && old.Digest == j.params.Digest
	began := time.Now()
	if j.resume && j.already(ctx, old) {
		return wire.WriteResult{Size: j.image.Size, Digest: j.image.SHA256, Already: true, Verified: time.Since(began).Seconds()}, nil
	}
	if err := ctx.Err(); err != nil {
		return wire.WriteResult{}, context.Cause(ctx)
	}
	if err := j.lookAgain(old); err != nil {
		return wire.WriteResult{}, err
	}
	if err := errors.Join(j.movable(ctx), j.startable(ctx)); err != nil {
		return wire.WriteResult{}, err
	}
	for _, step := range []struct {
		by wire.Part // what it fails by, unless the error says otherwise; "": nobody can tell
		do func(context.Context) error
	}{{wire.PartDisk, j.erase}, {"", j.stream}, {wire.PartDisk, j.verify}, {wire.PartDisk, j.grow}} {
		if err := step.do(ctx); err != nil {
			// The first step writes at once: what failed here had begun.
			return wire.WriteResult{}, errkind.Begun(fmt.Errorf("disk %s: %w", j.params.Disk.Path, &wire.PartError{Part: step.by, Err: err}))
		}
	}
	return wire.WriteResult{
		Written: j.written.Load(), Size: j.image.Size, Digest: j.image.SHA256, Retried: int(j.retried.Load()),
		Seconds: (time.Since(began) - j.verified).Seconds(), Verified: j.verified.Seconds(),
	}, nil
}

// already reports whether the disk holds the whole image of this very write. One
// that was configured since differs from the image in its root file system, so
// the marker is believed there; one that was only written is read back.
func (j *job) already(ctx context.Context, old disk.Marker) bool {
	switch old.State {
	case disk.Configured:
		return old.Image == j.image.SHA256
	case disk.Complete:
		patch, err := j.tableFromImage(ctx)
		if err == nil {
			err = j.check(ctx, patch)
		}
		if err != nil {
			j.note(fmt.Sprintf("the disk was written before, but: %v; it is written again", err))
		}
		return err == nil
	}
	return false
}

// erase marks the disk as half-written, before anything else, so that a write
// that is cut off is known as ours. Then it takes away what others could find on
// the disk: both ends, where partition tables, arrays and volume groups have
// their marks, and what follows the image. The rest is overwritten or discarded.
func (j *job) erase(context.Context) error {
	j.marker.State = disk.Writing
	if err := disk.PutMarker(j.dev, j.marker); err != nil || j.resume {
		return err
	}
	j.progress("erase", 0)
	const end, after = 8 << 20, disk.MarkerOffset + disk.MarkerSize
	size, image := j.dev.Size(), j.image.Size
	j.dev.Discard(0, disk.MarkerOffset)
	j.dev.Discard(after, size-after)
	for _, span := range [][2]int64{{0, disk.MarkerOffset}, {after, end}, {image, image + end}, {size - end, size}} {
		from, to := max(span[0], 0), min(span[1], size)
		if from < after && to > after {
			from = after // never the marker
		}
		if err := j.dev.Zero(from, to-from); err != nil {
			return fmt.Errorf("erase: %w", err)
		}
	}
	return nil
}

// grow gives the root partition its size and marks the write as complete. A cut
// before the last line makes the next run read the disk back again.
func (j *job) grow(context.Context) error {
	table, err := gpt.Read(j.dev, j.dev.Size())
	if err != nil {
		return errkind.New(errkind.Invalid, "the image has no partition table: %w", err)
	}
	if err := table.Move(int64(j.dev.SectorSize()), j.dev.Size()); err != nil {
		return errkind.New(errkind.Mismatch, "the image does not fit onto this disk: %w", err)
	}
	if err := table.Grow(j.params.RootSize); err != nil {
		return errkind.New(errkind.Mismatch, "%w", err).Do("Use a larger disk, or a smaller root size in the disk layout.")
	}
	if err := table.Write(j.dev); err != nil {
		return err
	}
	j.marker.State, j.marker.Image = disk.Complete, j.image.SHA256
	if err := disk.PutMarker(j.dev, j.marker); err != nil {
		return err
	}
	return j.dev.Reread()
}

// movable checks, before anything is erased, that the partitions of the image can
// stand on a disk with larger sectors than the image was made for.
func (j *job) movable(ctx context.Context) error {
	sector := int64(j.dev.SectorSize())
	if sector == gpt.Sector {
		return nil
	}
	first, err := j.tableOfImage(ctx)
	if err != nil {
		return fmt.Errorf("partition table of the image: %w", err)
	}
	table, err := gpt.Read(bytes.NewReader(first), j.image.Size)
	if err != nil {
		return errkind.New(errkind.Invalid, "the image has no partition table: %w", err)
	}
	if err := table.Move(sector, j.dev.Size()); err != nil {
		return errkind.New(errkind.Mismatch, "the image does not fit onto disk %s: %w", j.params.Disk.Path, err).
			Do("Use an image whose partitions are aligned to 4096 bytes, or set the disk to 512-byte logical sectors (nvme format, sg_format).")
	}
	return nil
}

// startable checks, before anything is erased, that a node with a BIOS finds a loader in
// the first sector of the image: images for UEFI alone have none.
func (j *job) startable(ctx context.Context) error {
	if !j.BIOS {
		return nil
	}
	first, err := j.tableOfImage(ctx)
	if err != nil {
		return fmt.Errorf("first sector of the image: %w", err)
	}
	const code = 440 // bytes of the MBR before the disk's signature
	if disk.AllZero(first[:min(code, len(first))]) {
		return errkind.New(errkind.Unsupported, "the image has no boot loader for a BIOS in its first sector, and this node boots by BIOS").
			Do("Set the node to UEFI boot, or take an image for both.")
	}
	return nil
}

// workers is how many chunks are unpacked, hashed and written at a time.
func (w *Writer) workers() int {
	if w.Workers > 0 {
		return w.Workers
	}
	return min(runtime.GOMAXPROCS(0), 8)
}

// begin makes the writer ready for so many bytes.
func (w *Writer) begin(total int64) {
	if w.Buffers == nil {
		w.Buffers = &Buffers{}
	}
	w.report = wire.Progress{Total: total}
}

// progress begins a phase, or adds to it.
func (w *Writer) progress(phase string, add int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.report.Phase != phase {
		w.report.Phase, w.report.Done = phase, 0
	}
	w.report.Done += add
	if w.Progress != nil {
		w.Progress(w.report)
	}
}

// note passes on something that a person should know.
func (w *Writer) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Progress != nil {
		p := w.report
		p.Note = text
		w.Progress(p)
	}
}

// fetcher returns a fetcher of a URL.
func (w *Writer) fetcher(url string) fetcher {
	f := fetcher{client: w.Client, url: url, stall: w.Stall}
	if f.stall == 0 {
		f.stall = 30 * time.Second
	}
	return f
}
