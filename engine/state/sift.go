// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// The story of one node is a thousandth of what a site of 12,500 nodes has recorded: these
// look at how a record or an object begins, and decode what they are asked for.

// Choice says which records are read: those of any of its subjects, kinds of subject or
// kinds of record.
type Choice struct {
	Subjects     []subject.ID
	SubjectKinds []subject.Kind
	Kinds        []RecordKind
}

func (c *Choice) takes(r *Record) bool {
	return slices.Contains(c.Kinds, r.Kind) || slices.Contains(c.SubjectKinds, r.Subject.Kind) || slices.Contains(c.Subjects, r.Subject)
}

// marks are what stands in the head of every record that a choice takes: one of kinds
// behind the name of that field, or one of subjects behind that of the other.
type marks struct{ kinds, subjects [][]byte }

var (
	kindField    = []byte(`"kind":`)
	subjectField = []byte(`"subject":`)
)

func (c *Choice) marks() (m marks, err error) {
	quote := func(text string) []byte {
		raw, errText := json.Marshal(text)
		if err == nil {
			err = errText
		}
		return raw
	}
	for _, s := range c.Subjects {
		m.subjects = append(m.subjects, quote(s.String()))
	}
	for _, k := range c.SubjectKinds {
		raw := quote(subject.ID{Kind: k}.String())
		m.subjects = append(m.subjects, raw[:max(len(raw)-1, 0)]) // its name follows
	}
	for _, k := range c.Kinds {
		m.kinds = append(m.kinds, quote(string(k)))
	}
	return m, err
}

// mayTake reports whether a stored record may be one that is taken. The names of its own
// fields come before its data, and no text has their quotes; one without a subject may seem
// to have one in its data.
func (m *marks) mayTake(v []byte) bool {
	at := bytes.Index(v, kindField)
	if at < 0 {
		return true
	}
	v = v[at+len(kindField):]
	if startsWithAny(v, m.kinds) {
		return true
	}
	at = bytes.Index(v, subjectField)
	return at >= 0 && startsWithAny(v[at+len(subjectField):], m.subjects)
}

func startsWithAny(v []byte, list [][]byte) bool {
	return slices.ContainsFunc(list, func(m []byte) bool { return bytes.HasPrefix(v, m) })
}

// ReadChosen calls f for every record that a choice takes, in order. Of a file the others
// are neither decoded nor compared with their checksums. An error from f ends it.
func ReadChosen(ctx context.Context, r Reader, c Choice, f func(Record) error) error {
	b, ok := r.(*Bolt)
	if !ok {
		return r.Read(ctx, 1, func(rec Record) error {
			if !c.takes(&rec) {
				return nil
			}
			return f(rec)
		})
	}
	chosen, err := b.choose(ctx, c)
	if err != nil {
		return err
	}
	for _, rec := range chosen {
		if err := f(rec); err != nil {
			return err
		}
	}
	return nil
}

// choose reads the records that a choice takes.
func (b *Bolt) choose(ctx context.Context, c Choice) (out []Record, err error) {
	marks, err := c.marks()
	if err != nil {
		return nil, err
	}
	err = b.view(ctx, func(tx *bbolt.Tx) error {
		n := 0
		return tx.Bucket(journalBucket).ForEach(func(k, v []byte) error {
			if n++; n%(16*readChunk) == 0 {
				b.letGo(tx)
			}
			if !marks.mayTake(v) {
				return nil
			}
			r, err := b.record(k, v)
			if err != nil {
				return damagedError(b.path, err)
			}
			if c.takes(&r) {
				out = append(out, r)
			}
			return nil
		})
	})
	return out, err
}

// ReadChosenSteps reads the last state of the steps that are named, and of all that failed.
func ReadChosenSteps(ctx context.Context, r Reader, named map[plan.StepID]bool) (map[plan.StepID]Step, error) {
	out := map[plan.StepID]Step{}
	err := readObjectsIf(ctx, r, stepKind, func(o raw) bool {
		return named[plan.StepID(o.name)] || fieldIs(o.value, "state", func(v []byte) bool { return string(v) == `"`+string(StepIsFailed)+`"` })
	}, func(s Step) { out[s.ID] = s })
	return out, err
}

// ReadEffectsOf reads the last state of the effects of steps, by their key.
func ReadEffectsOf(ctx context.Context, r Reader, steps map[plan.StepID]bool) (map[string]Effect, error) {
	out := map[string]Effect{}
	err := readObjectsIf(ctx, r, effectKind, func(o raw) bool {
		return fieldIs(o.value, "step", func(v []byte) bool {
			if len(v) < 2 || bytes.IndexByte(v, '\\') >= 0 {
				return true
			}
			return steps[plan.StepID(v[1:len(v)-1])]
		})
	}, func(e Effect) {
		if steps[e.Step] {
			out[e.Key] = e
		}
	})
	return out, err
}

// fieldIs reports whether the field of an object, as JSON, is as is says; true when that
// cannot be seen without decoding it.
func fieldIs(value []byte, name string, is func([]byte) bool) bool {
	w := walk{b: value}
	for w.field() {
		if v := w.value(); string(w.key) == name {
			return is(v)
		}
	}
	return !w.whole()
}

// readObjectsIf decodes the objects of a kind that are wanted.
func readObjectsIf[T any](ctx context.Context, r Reader, kind string, wanted func(raw) bool, f func(T)) error {
	return scanKind(ctx, r, kind, func(n int, at func(int) (raw, error)) error {
		for i := range n {
			o, err := at(i)
			if err != nil {
				return err
			}
			if !wanted(o) {
				continue
			}
			var v T
			if err := json.Unmarshal(o.value, &v); err != nil {
				return fmt.Errorf("object %s is not readable: %w", o.name, err)
			}
			f(v)
		}
		return nil
	})
}
