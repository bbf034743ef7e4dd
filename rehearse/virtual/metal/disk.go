// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// Disk is one disk of a node. It is sparse, keeps what was written to it over
// every reboot, and is safe for concurrent use.
type Disk struct {
	node *Node
	slot slot

	mu       sync.Mutex
	serial   string // guarded by mu, like all below
	wwn      string
	content  blocks
	root     *Root   // what is in its root file system; nil: what the image has, or none
	bad      []fault // sectors
	counters DiskCounters
}

// DiskCounters is what was done to a disk since it was made.
type DiskCounters struct {
	Reads, Writes           int   // calls
	BytesRead, BytesWritten int64 // of real bytes
	Erases                  int   // times that the disk was told to forget all of its content
}

// fault is a range with a defect.
type fault struct {
	off, end    int64
	read, write bool // fails
	flip        bool // reads other bytes than were written
}

// newDisk puts a blank disk into a bay.
func newDisk(n *Node, s slot) *Disk {
	d := &Disk{
		node: n, slot: s, serial: s.serial, wwn: s.wwn,
		content: blocks{store: n.options.Shared.blocks, segments: map[int64]*segment{}},
	}
	if d.serial == "" {
		d.serial = serialOf(n.made, s.name)
	}
	if d.wwn == "" {
		d.wwn = wwnOf(n.made, s.name)
	}
	return d
}

// addDisks puts the disks into a new node. The one of its disk layout has the serial
// number or World Wide Name that the node says.
func (n *Node) addDisks(inv *inventory.Node) {
	named := inv.InstallDisk != "" && inv.Disks != nil
	for _, s := range n.shape.disks {
		if named && s.block == inv.Disks.On {
			if s.wwn = inventory.NormalWWN(inv.InstallDisk); s.wwn == "" {
				s.serial = inv.InstallDisk
			}
			named = false
		}
		n.disks = append(n.disks, newDisk(n, s))
	}
}

// Name is the kernel's name of the disk, such as nvme0n1.
func (d *Disk) Name() string { return d.slot.name }

// wwnOf makes the World Wide Name of a disk.
func wwnOf(node, name string) string {
	sum := deriveBytes(node, "wwn "+name)
	return "5" + hex.EncodeToString(sum[:8])[1:]
}

// Serial is the disk's serial number.
func (d *Disk) Serial() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.serial
}

// WWN is the disk's World Wide Name.
func (d *Disk) WWN() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wwn
}

// Size is the bytes of the disk.
func (d *Disk) Size() int64 { return d.slot.size }

// Counters returns what was done to the disk.
func (d *Disk) Counters() DiskCounters {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counters
}

// FailWrites makes every write fail that touches a range.
func (d *Disk) FailWrites(off, length int64) {
	d.corrupt(fault{off: off, end: off + length, write: true})
}

// FailReads makes every read fail that touches a range.
func (d *Disk) FailReads(off, length int64) {
	d.corrupt(fault{off: off, end: off + length, read: true})
}

// Flip makes the bytes of a range read back with a bit turned: the disk does not
// keep what was written, and does not know it.
func (d *Disk) Flip(off, length int64) { d.corrupt(fault{off: off, end: off + length, flip: true}) }

func (d *Disk) corrupt(f fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bad = append(d.bad, f)
}

// hits reports whether a range has a defect of a kind. Called with mu held.
func (d *Disk) hits(off, length int64, kind func(fault) bool) bool {
	for _, f := range d.bad {
		if kind(f) && off < f.end && f.off < off+length {
			return true
		}
	}
	return false
}

// ReadAt reads at once, whatever the time that a kernel would take: for a look at
// the disk from outside. A range past the end is an error.
func (d *Disk) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > d.slot.size {
		return 0, fmt.Errorf("read of %d bytes at %d: disk has %d: %w", len(p), off, d.slot.size, syscall.EINVAL)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counters.Reads++
	d.counters.BytesRead += int64(len(p))
	if d.hits(off, int64(len(p)), func(f fault) bool { return f.read }) {
		return 0, fmt.Errorf("read %s: %w", d.slot.name, syscall.EIO)
	}
	d.content.read(p, off)
	for _, f := range d.bad {
		for i := max(f.off, off); f.flip && i < min(f.end, off+int64(len(p))); i++ {
			p[i-off] ^= 1
		}
	}
	return len(p), nil
}

// Zeroed is disk.Sparse. A range with a defect has to be read.
func (d *Disk) Zeroed(off, length int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.hits(off, length, func(f fault) bool { return f.read || f.flip }) && d.content.zeroed(off, length)
}

// writeAt is ReadAt's counterpart.
func (d *Disk) writeAt(p []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(p)) > d.slot.size {
		return 0, fmt.Errorf("write of %d bytes at %d: disk has %d", len(p), off, d.slot.size)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.counters.Writes++
	if d.hits(off, int64(len(p)), func(f fault) bool { return f.write }) {
		return 0, fmt.Errorf("write %s: %w", d.slot.name, syscall.EIO)
	}
	d.counters.BytesWritten += int64(len(p))
	d.touched(off + int64(len(p)))
	d.content.write(p, off)
	return len(p), nil
}

// touched forgets the root file system when something was written where it lies:
// anywhere behind the install marker. Called with mu held.
func (d *Disk) touched(end int64) {
	if end > disk.MarkerOffset+disk.MarkerSize {
		d.root = nil
	}
}

// zero is a write of zeroes.
func (d *Disk) zero(off, length int64) error {
	if off < 0 || length < 0 || off+length > d.slot.size {
		return fmt.Errorf("zeroing %d bytes at %d: disk has %d", length, off, d.slot.size)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hits(off, length, func(f fault) bool { return f.write }) {
		return fmt.Errorf("write %s: %w", d.slot.name, syscall.EIO)
	}
	d.touched(off + length)
	d.content.zero(off, length)
	return nil
}

// rates are the bytes a second of a disk by its type, and its seek-free latency
// does not matter here: vendors' data sheets, sequential, rounded down.
var rates = map[string]struct{ read, write int64 }{
	"nvme":     {6e9, 3e9},
	"sata":     {500e6, 450e6},
	"sas":      {1e9, 900e6},
	"virtio":   {1e9, 500e6},
	memoryKind: {10e9, 10e9},
}

// zeroing is how much faster a disk zeroes a range than it writes one.
const zeroing = 20

// patience is how much work a handle lets pile up before it makes its user wait:
// a kernel's cache for writes, its read-ahead for reads. It keeps the timers few.
const (
	writeCache = 5 * time.Second
	readAhead  = time.Second
)

// handle is an open disk: a disk.Device.
type handle struct {
	*Disk
	name  string
	ctx   context.Context
	scale int64

	debtMu sync.Mutex
	debt   time.Duration // guarded by debtMu: work that nobody has waited for
}

// open opens the disk for a kernel; what it is made to wait for ends with ctx.
func (d *Disk) open(ctx context.Context, name string, use disk.Use) *handle {
	h := &handle{Disk: d, name: name, ctx: ctx, scale: d.node.options.Scale}
	if use == disk.Look {
		h.scale = 1 // a look is at single sectors, not at an image
	}
	return h
}

var (
	_ disk.Device = (*handle)(nil)
	_ disk.Sparse = (*handle)(nil)
)

// owe adds the time for so many bytes and waits when more than limit has piled up.
func (h *handle) owe(n, rate int64, limit time.Duration) error {
	h.debtMu.Lock()
	h.debt += time.Duration(float64(n*h.scale) / float64(rate) * float64(time.Second))
	due := h.debt
	if due < limit {
		due = 0
	}
	h.debt -= due
	h.debtMu.Unlock()
	if due == 0 {
		return context.Cause(h.ctx)
	}
	return h.node.options.Clock.Sleep(h.ctx, due)
}

// Name is disk.Device.
func (h *handle) Name() string { return h.name }

// SectorSize is disk.Device.
func (h *handle) SectorSize() int { return 512 }

// ReadAt is disk.Device.
func (h *handle) ReadAt(p []byte, off int64) (int, error) {
	n, err := h.Disk.ReadAt(p, off)
	if err != nil {
		return n, err
	}
	return n, h.owe(int64(n), rates[h.slot.kind].read, readAhead)
}

// WriteAt is disk.Device.
func (h *handle) WriteAt(p []byte, off int64) (int, error) {
	n, err := h.writeAt(p, off)
	if err != nil {
		return n, err
	}
	return n, h.owe(int64(n), rates[h.slot.kind].write, writeCache)
}

// Zero is disk.Device.
func (h *handle) Zero(off, length int64) error {
	if err := h.zero(off, length); err != nil {
		return err
	}
	return h.owe(length, zeroing*rates[h.slot.kind].write, writeCache)
}

// Discard is disk.Device.
func (h *handle) Discard(off, length int64) {
	if off == 0 {
		h.mu.Lock()
		h.counters.Erases++
		h.mu.Unlock()
	}
	_ = h.zero(off, length) // advice: a disk that cannot does nothing
}

// Sync is disk.Device: it waits for everything that has piled up.
func (h *handle) Sync() error { return h.owe(0, 1, 0) }

// Forget is disk.Device.
func (h *handle) Forget() error { return h.Sync() }

// Reread is disk.Device.
func (h *handle) Reread() error { return context.Cause(h.ctx) }

// Close is disk.Device.
func (h *handle) Close() error { return nil }
