// SPDX-License-Identifier: Apache-2.0

package drift

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
)

// The kinds of object in the state. They are no facts: a plan reads all facts, and
// has no use for these.
const (
	baselineKind = "drift-baseline" // Snapshot, by node: as it was accepted
	askedKind    = "drift-asked"    // Snapshot, by node: the last answer of its BMC
	setKind      = "drift-set"      // Set, by digest
)

// Record is the kind of journal record that a baseline leaves; its data are an Acceptance.
const Record state.RecordKind = "baseline"

// Acceptance says that a node was taken as it is, by whom and why.
type Acceptance struct {
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// ReadBaseline returns how a node was when it was accepted; false when that was never
// recorded, or by a later format than this program knows.
func ReadBaseline(ctx context.Context, r state.Reader, node string) (Snapshot, bool, error) {
	s, version, err := state.Get[Snapshot](ctx, r, state.Key{Kind: baselineKind, Name: node})
	return s, err == nil && version != state.Absent && s.Format <= Format, err
}

// ReadLastAnswer returns the last answer of a node's BMC; the zero Snapshot for none.
func ReadLastAnswer(ctx context.Context, r state.Reader, node string) (Snapshot, error) {
	s, _, err := state.Get[Snapshot](ctx, r, state.Key{Kind: askedKind, Name: node})
	return s, err
}

// SetOf returns a stored list; nil for one that is not there.
func SetOf(ctx context.Context, r state.Reader, digest string) (Set, error) {
	if digest == "" {
		return nil, nil
	}
	s, _, err := state.Get[Set](ctx, r, state.Key{Kind: setKind, Name: digest})
	return s, err
}

// Forget removes what is kept of a node: it was taken out, or installed anew.
func Forget(node string) []state.Put {
	return []state.Put{{Key: state.Key{Kind: baselineKind, Name: node}, Want: state.Any}, {Key: state.Key{Kind: askedKind, Name: node}, Want: state.Any}}
}

// Writer writes snapshots.
type Writer struct {
	Store state.Store
	Fence state.Fence
}

// Accept keeps s as the baseline of its node. With who and why it is journaled;
// an acceptance by tests stands in the journal already.
func (k Writer) Accept(ctx context.Context, s Snapshot, sets map[string]Set) error {
	p, err := state.PutOf(state.Key{Kind: baselineKind, Name: s.Node}, s)
	if err != nil {
		return err
	}
	b := state.Batch{Puts: []state.Put{p}}
	if s.By != "" {
		b.Records = []state.Record{state.Record{Kind: Record, Time: s.At, Subject: subject.OfNode(s.Node)}.With(Acceptance{By: s.By, Reason: s.Reason})}
	}
	return k.append(ctx, b, sets)
}

// Remember keeps the answer of a node's BMC, so that it need not be asked again
// soon.
func (k Writer) Remember(ctx context.Context, s Snapshot, sets map[string]Set) error {
	p, err := state.PutOf(state.Key{Kind: askedKind, Name: s.Node}, s)
	if err != nil {
		return err
	}
	return k.append(ctx, state.Batch{Puts: []state.Put{p}}, sets)
}

// append writes a batch and the lists that are not there yet: those come first where all
// are too much for one append, so that whatever names one finds it.
func (k Writer) append(ctx context.Context, b state.Batch, sets map[string]Set) error {
	var lists []state.Batch
	for _, digest := range slices.Sorted(maps.Keys(sets)) {
		at := state.Key{Kind: setKind, Name: digest}
		if _, there, err := k.Store.Object(ctx, at); err != nil || there {
			if err != nil {
				return err
			}
			continue
		}
		p, err := state.PutOf(at, sets[digest])
		if err != nil {
			return err
		}
		lists = append(lists, state.Batch{Puts: []state.Put{p}})
	}
	return state.AppendParts(ctx, k.Store, k.Fence, append(lists, b)...)
}

// digestOf names a list.
func digestOf(s Set) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(h, "%s\t%s\n", name, s[name]) // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// setOfPackages is a package list as it is kept.
func setOfPackages(list []wire.Package) Set {
	s := Set{}
	for _, p := range list {
		s[p.Name] = p.Version
	}
	return s
}

// Fresh reports whether an answer of a BMC is recent enough not to ask again.
func Fresh(asked Snapshot, now time.Time) bool {
	return !asked.At.IsZero() && now.Sub(asked.At) < Peace && now.Sub(asked.At) >= 0
}

// Peace is how long a BMC is left in peace after it was asked: four looks an hour,
// some ten requests each.
const Peace = 15 * time.Minute
