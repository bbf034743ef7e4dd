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
	return &Memory{disk: &memoryDisk{objects: map[Key]Object{},
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
	return Fence{Number: d.fence, Owner: owner}, nil
}

// Append checks everything, then writes.
func (m *Memory) Append(ctx context.Context, f Fence, b Batch) (uint64, error) {
	if err := m.usable(ctx); err != nil {
		return 0, err
	}
	d := m.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.Number != d.fence || d.fence == 0 {
		return 0, &errkind.Error{Kind: errkind.Refused, Err: ErrFenced}
	}
	for i := range b.Puts {
		p := &b.Puts[i]
		if err := p.check(); err != nil {
			return 0, err
		}
		if p.Want == Any {
			continue
		}
		if got := d.objects[p.Key].Version; got != p.Want {
			return 0, &errkind.Error{Kind: errkind.Refused, Err: &ConflictError{Key: p.Key, Want: p.Want, Got: got}}
		}
	}
	return d.store(b), nil
}

// store is called with d.mu held.
func (d *memoryDisk) store(b Batch) (first uint64) {
	for i, r := range b.Records {
		r.Seq = d.journal.n + 1
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

// mostAtOnce is how many records or objects SaveAs writes in one batch.
const mostAtOnce = 100

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
	var b Batch
	flush := func(least int) error {
		if n := len(b.Records) + len(b.Puts); n == 0 || n < least {
			return nil
		}
		_, err := to.Append(ctx, fence, b)
		b = Batch{}
		return err
	}
	for i := range journal.n {
		b.Records = append(b.Records, journal.at(i))
		if err := flush(mostAtOnce); err != nil {
			return err
		}
	}
	for _, p := range puts {
		b.Puts = append(b.Puts, p)
		if err := flush(mostAtOnce); err != nil {
			return err
		}
	}
	return flush(1)
}
