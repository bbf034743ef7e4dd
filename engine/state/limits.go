// SPDX-License-Identifier: Apache-2.0

package state

import (
	"crypto/rand"
	"fmt"

	"github.com/ironrail/ironrail/internal/errkind"
)

// What one append may hold in any store. They are those of a transaction of etcd as it is
// configured by default (128 operations, 1.5 MiB), less what a store adds to it.
const (
	MaxEntries = 100       // records and puts of a batch together
	MaxBatch   = 1 << 20   // bytes of a batch: see Batch.Size
	MaxValue   = 512 << 10 // bytes of the value of an object, of the data of a record, and of a block
)

// LimitError is the refusal of what is larger than a store takes. Nothing of it was
// written.
type LimitError struct {
	What     string // such as "the value of object step/n1/install.write"
	Is, Most int
	Unit     string // "bytes" or "entries"
}

// Error says what is too large, and by how much.
func (e *LimitError) Error() string {
	return fmt.Sprintf("state: %s has %d %s; the most are %d", e.What, e.Is, e.Unit, e.Most)
}

func limitError(what string, is, most int, unit string) error {
	return &errkind.Error{Kind: errkind.Unsupported, Err: &LimitError{what, is, most, unit}}
}

// Check refuses a batch that no store may write: more than MaxEntries or MaxBatch, a value
// above MaxValue, a key that is not kind/name, or a value that is not JSON.
func (b *Batch) Check() error {
	if n := len(b.Records) + len(b.Puts); n > MaxEntries {
		return limitError("a batch", n, MaxEntries, "entries")
	}
	for i := range b.Puts {
		p := &b.Puts[i]
		if len(p.Value) > MaxValue {
			return limitError("the value of object "+p.Key.String(), len(p.Value), MaxValue, "bytes")
		}
		if err := p.check(); err != nil {
			return err
		}
	}
	for i := range b.Records {
		if n := len(b.Records[i].Data); n > MaxValue {
			return limitError(fmt.Sprintf("the data of a record of kind %s", b.Records[i].Kind), n, MaxValue, "bytes")
		}
	}
	if n := b.Size(); n > MaxBatch {
		return limitError("a batch", n, MaxBatch, "bytes")
	}
	return nil
}

// Size is how many bytes of a batch count towards MaxBatch: its texts and values, without
// what a store writes around them.
func (b *Batch) Size() (n int) {
	for i := range b.Records {
		r := &b.Records[i]
		n += len(r.Run) + len(r.Kind) + len(r.Step) + len(r.Subject.Kind) + len(r.Subject.Name) + len(r.Data)
	}
	for i := range b.Puts {
		p := &b.Puts[i]
		n += len(p.Key.Kind) + len(p.Key.Name) + len(p.Value)
	}
	return n
}

// Fits reports whether more can be added to b in one append.
func (b *Batch) Fits(more Batch) bool {
	return len(b.Records)+len(b.Puts)+len(more.Records)+len(more.Puts) <= MaxEntries && b.Size()+more.Size() <= MaxBatch
}

// Add adds the records and puts of another batch.
func (b *Batch) Add(more Batch) {
	b.Records = append(b.Records, more.Records...)
	b.Puts = append(b.Puts, more.Puts...)
}

// NewAppendID makes the id of an append: 80 random bits.
func NewAppendID() string { return rand.Text()[:16] }
