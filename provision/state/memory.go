package state

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/provision/errkind"
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
	journal []Record
	objects map[string]Object
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory {
	return &Memory{disk: &memoryDisk{objects: map[string]Object{},
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
	for _, p := range b.Puts {
		if err := p.Key.check(); err != nil {
			return 0, err
		}
		if p.Value != nil && !json.Valid(p.Value) {
			return 0, fmt.Errorf("state: object %s is not JSON", p.Key)
		}
		if got := d.objects[p.Key.String()].Version; p.Want != Any && got != p.Want {
			return 0, &errkind.Error{Kind: errkind.Refused, Err: &ConflictError{Key: p.Key, Want: p.Want, Got: got}}
		}
	}
	return d.store(b), nil
}

// store is called with d.mu held.
func (d *memoryDisk) store(b Batch) (first uint64) {
	for i, r := range b.Records {
		r.Seq = uint64(len(d.journal)) + 1
		r.Data = bytes.Clone(r.Data)
		if i == 0 {
			first = r.Seq
		}
		d.journal = append(d.journal, r)
	}
	for _, p := range b.Puts {
		if p.Value == nil {
			delete(d.objects, p.Key.String())
			continue
		}
		d.version++
		d.objects[p.Key.String()] = Object{Key: p.Key, Version: d.version, Value: bytes.Clone(p.Value)}
	}
	return first
}

// Read calls f for the records from seq on. f may append.
func (m *Memory) Read(ctx context.Context, from uint64, f func(Record) error) error {
	if err := m.usable(ctx); err != nil {
		return err
	}
	m.disk.mu.Lock()
	journal := m.disk.journal // records never change
	m.disk.mu.Unlock()
	for i := max(from, 1) - 1; i < uint64(len(journal)); i++ {
		if err := f(journal[i]); err != nil {
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
	o, ok := m.disk.objects[k.String()]
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
