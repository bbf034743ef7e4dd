// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Memory is a throw-away store: a rehearsal's, and a fast one for tests. It
// keeps every rule of the contract but surviving the process.
type Memory struct {
	disk   *memoryDisk
	mu     sync.Mutex // guards closed
	closed bool
}

// memoryDisk is what handles on one memory store share.
type memoryDisk struct {
	info Info

	mu      sync.Mutex // guards what follows
	fence   uint64
	version uint64
	journal memoryJournal
	objects map[Key]Object
	blocks  map[Digest][]byte
	unnamed unnamed // blocks put under this fence, and not named since
	last    Batch   // that was written last
}

// memoryJournal is a list of records that grows without being copied. Those that are
// there never change, so that a copy of it may be read while more are added.
type memoryJournal struct {
	pages []*[recordsOfPage]Record
	n     uint64
}

const recordsOfPage = 512

func (j *memoryJournal) add(r Record) {
	if j.n%recordsOfPage == 0 {
		j.pages = append(j.pages, new([recordsOfPage]Record))
	}
	j.pages[j.n/recordsOfPage][j.n%recordsOfPage] = r
	j.n++
}

func (j *memoryJournal) at(i uint64) Record { return j.pages[i/recordsOfPage][i%recordsOfPage] }

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{disk: &memoryDisk{objects: map[Key]Object{}, blocks: map[Digest][]byte{}, unnamed: unnamed{},
		info: Info{Format: Format, Lineage: rand.Text(), Created: time.Now().UTC()}}}
}

// Reopen returns another handle on the same data, as a new process has it after
// the old one died.
func (m *Memory) Reopen() *Memory { return &Memory{disk: m.disk} }

// Info says what this state is.
func (m *Memory) Info() Info { return m.disk.info }

// Claim raises the fence.
func (m *Memory) Claim(ctx context.Context, owner string) (Fence, error) {
	if err := m.usable(ctx); err != nil {
		return Fence{}, err
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fence++
	d.unnamed = unnamed{}
	return Fence{Number: d.fence, Owner: owner}, nil
}

// Append checks everything, then writes.
func (m *Memory) Append(ctx context.Context, f Fence, b Batch) (uint64, error) {
	p, err := newPending(f, b)
	if err == nil {
		err = m.usable(ctx)
	}
	if err != nil {
		return 0, err
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.admit(p); err != nil {
		return 0, err
	}
	return d.store(p), nil
}

// admit is called with d.mu held.
func (d *memoryDisk) admit(p *pending) error {
	if err := checkFence(p.fence, d.fence); err != nil {
		return err
	}
	for _, x := range p.named {
		if _, ok := d.blocks[x]; !ok {
			return missingBlock(x)
		}
	}
	for _, p := range p.batch.Puts {
		if p.Want == Any {
			continue
		}
		if got := d.objects[p.Key].Version; got != p.Want {
			return &errkind.Error{Kind: errkind.Refused, Err: &ConflictError{Key: p.Key, Want: p.Want, Got: got}}
		}
	}
	return nil
}

// store is called with d.mu held.
func (d *memoryDisk) store(p *pending) (first uint64) {
	b := p.batch
	d.last = b
	d.unnamed.drop(p.named)
	for i, r := range b.Records {
		r.Seq = d.journal.n + 1
		if r.Fence, r.Append = 0, ""; i == 0 {
			r.Fence, r.Append = p.fence.Number, b.ID
		}
		if !b.encoded(r.Data) {
			r.Data = bytes.Clone(r.Data)
		}
		if i == 0 {
			first = r.Seq
		}
		d.journal.add(r)
	}
	for _, p := range b.Puts {
		if p.Value == nil {
			delete(d.objects, p.Key)
			continue
		}
		if !p.encoded {
			p.Value = bytes.Clone(p.Value)
		}
		d.version++
		d.objects[p.Key] = Object{Key: p.Key, Version: d.version, Value: p.Value}
	}
	return first
}

// Read calls f for the records from seq on. f may append.
func (m *Memory) Read(ctx context.Context, from uint64, f func(Record) error) error {
	if err := m.usable(ctx); err != nil {
		return err
	}
	m.disk.mu.Lock()
	journal := m.disk.journal
	m.disk.mu.Unlock()
	for i := max(from, 1) - 1; i < journal.n; i++ {
		if err := f(journal.at(i)); err != nil {
			return err
		}
	}
	return nil
}

// Object returns one object.
func (m *Memory) Object(ctx context.Context, k Key) (Object, bool, error) {
	if err := m.usable(ctx); err != nil {
		return Object{}, false, err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	o, ok := m.disk.objects[k]
	return o, ok, nil
}

// Objects returns the objects of a kind by name.
func (m *Memory) Objects(ctx context.Context, kind string) ([]Object, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	var out []Object
	for _, o := range m.disk.objects {
		if o.Key.Kind == kind {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b Object) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	return out, nil
}

// Lease is that of a store that no other process has.
func (m *Memory) Lease(Fence) Lease { return Forever{} }

// Outcome reports whether an append was written.
func (m *Memory) Outcome(ctx context.Context, f Fence, id string) (first uint64, done bool, err error) {
	if err := m.usable(ctx); err != nil {
		return 0, false, err
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.last.Records) == 0 && d.last.ID == id && d.fence == f.Number {
		return 0, true, nil
	}
	for i := d.journal.n; i > 0; i-- {
		switch r := d.journal.at(i - 1); {
		case r.Append == id && r.Fence == f.Number:
			return i, true, nil
		case r.Append != "" && r.Fence < f.Number:
			return 0, false, nil
		}
	}
	return 0, false, nil
}

// PutBlocks keeps blocks.
func (m *Memory) PutBlocks(ctx context.Context, f Fence, blocks ...[]byte) ([]Digest, error) {
	err := checkBlocks(blocks)
	if err == nil {
		err = m.usable(ctx)
	}
	if err != nil {
		return nil, err
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := checkFence(f, d.fence); err != nil {
		return nil, err
	}
	out := make([]Digest, len(blocks))
	for i, b := range blocks {
		out[i] = DigestOf(b)
		if _, ok := d.blocks[out[i]]; !ok {
			d.blocks[out[i]] = bytes.Clone(b)
		}
	}
	d.unnamed.add(out)
	return out, nil
}

// Block returns a block.
func (m *Memory) Block(ctx context.Context, x Digest) ([]byte, error) {
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	b, ok := m.disk.blocks[x]
	if !ok {
		return nil, missingBlock(x)
	}
	return b, nil
}

// Sweep removes blocks that no object names.
func (m *Memory) Sweep(ctx context.Context, f Fence) (n int, err error) {
	if err := m.usable(ctx); err != nil {
		return 0, err
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := checkFence(f, d.fence); err != nil {
		return 0, err
	}
	named := map[Digest]bool{}
	for x := range d.unnamed {
		named[x] = true
	}
	for k, o := range d.objects {
		ds, err := NamedBlocks(k, o.Value)
		if err != nil {
			return 0, err
		}
		for _, x := range ds {
			named[x] = true
		}
	}
	for x := range d.blocks {
		if !named[x] {
			delete(d.blocks, x)
			n++
		}
	}
	return n, nil
}

// Close ends this handle.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

func (m *Memory) usable(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return ErrClosed
	}
	return nil
}

// SaveAs writes all that the store has into a new state file. The records have their numbers and times;
// versions of objects are new. The error is fs.ErrExist where there is a file.
func (m *Memory) SaveAs(ctx context.Context, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("state: %s: %w", path, fs.ErrExist)
	}
	d := m.disk
	d.mu.Lock()
	journal, puts := d.journal, make([]Put, 0, len(d.objects))
	for k, o := range d.objects {
		puts = append(puts, Put{Key: k, Value: o.Value, Want: Any})
	}
	d.mu.Unlock()
	slices.SortFunc(puts, func(a, b Put) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	to, err := Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	fence, err := to.Claim(ctx, "rehearsal")
	if err != nil {
		return err
	}
	var parts []Batch
	write := func() error {
		err := AppendParts(ctx, to, fence, parts...)
		parts = nil
		return err
	}
	for i := range journal.n {
		if parts = append(parts, Batch{Records: []Record{journal.at(i)}}); len(parts) == MaxEntries {
			err = errors.Join(err, write())
		}
	}
	err = errors.Join(err, write())
	for _, p := range puts {
		named, errNamed := NamedBlocks(p.Key, p.Value)
		for _, x := range named {
			block, errBlock := m.Block(ctx, x)
			_, errPut := to.PutBlocks(ctx, fence, block)
			err = errors.Join(err, errBlock, errPut)
		}
		if parts = append(parts, Batch{Puts: []Put{p}}); len(parts) == MaxEntries {
			err = errors.Join(err, write())
		}
		err = errors.Join(err, errNamed)
	}
	return errors.Join(err, write())
}
