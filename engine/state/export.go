// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/bbolt"

	"github.com/ironrail/ironrail/internal/subject"
)

// ExportFormat names the lines that Export writes. Fields are only ever added.
const ExportFormat = "ironrail-state-1"

// exported is one line of an export: exactly one field is set, the first line has
// State.
type exported struct {
	State  *exportedState  `json:"state,omitempty"`
	Record *Record         `json:"record,omitempty"`
	Object *exportedObject `json:"object,omitempty"`
}

type exportedState struct {
	Export string `json:"export"` // ExportFormat
	Contents
}

type exportedObject struct {
	Kind    string          `json:"kind"`
	Name    string          `json:"name"`
	Version uint64          `json:"version"`
	Value   json.RawMessage `json:"value"`
}

// Export writes everything as JSON lines: the state, its records in order, its
// objects by key. The same state gives the same bytes.
func (b *Bolt) Export(ctx context.Context, w io.Writer) error {
	p, err := b.CountContents(ctx)
	if err != nil {
		return err
	}
	return b.export(ctx, w, p)
}

// export writes the lines after a first one that has p.
func (b *Bolt) export(ctx context.Context, w io.Writer, p Contents) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(exported{State: &exportedState{ExportFormat, p}})
	if err == nil {
		err = b.Read(ctx, b.info.First, func(r Record) error { return enc.Encode(exported{Record: &r}) })
	}
	if err == nil {
		err = b.eachObject(ctx, func(o Object) error {
			value, err := WholeValue(ctx, b, o)
			if err != nil {
				return err
			}
			return enc.Encode(exported{Object: &exportedObject{o.Key.Kind, o.Key.Name, o.Version, value}})
		})
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("state: export: %w", err)
	}
	return nil
}

// eachObject gives every object to f by key. Its value is good until f returns.
func (b *Bolt) eachObject(ctx context.Context, f func(Object) error) error {
	return b.view(ctx, func(tx *bbolt.Tx) error {
		return tx.Bucket(objectBucket).ForEach(func(k, raw []byte) error {
			version, value, err := b.object(k, raw)
			if err != nil {
				return damagedError(b.path, err)
			}
			if _, ok := isBlock(k); ok {
				return nil
			}
			return f(Object{Key: keyOf(k), Version: version, Value: value})
		})
	})
}

// FindDangling finds what refers to something that is not there. None of it is
// damage: planning takes it as unknown.
func (b *Bolt) FindDangling(ctx context.Context) (notes []string, err error) {
	nodes, err := ReadNodes(ctx, b)
	if err != nil {
		return nil, err
	}
	run, left, err := lastRun(ctx, b)
	if err != nil {
		return nil, err
	}
	if left {
		if _, ok, err := b.Object(ctx, PlanKey(run.Plan)); err != nil || !ok {
			notes = append(notes, fmt.Sprintf("run %s was stopped, and its plan %s is not there: it cannot be resumed", run.ID, run.Plan))
		}
	}
	lost := map[string]int{}
	err = scanKind(ctx, b, factKind, func(n int, at func(int) (raw, error)) error {
		for i := range n {
			o, err := at(i)
			if err != nil {
				return err
			}
			of, _, _ := strings.Cut(o.name, "#")
			kind, node, _ := strings.Cut(of, "/")
			if _, ok := nodes[node]; kind == string(subject.Node) && !ok {
				lost[node]++
			}
		}
		return nil
	})
	for _, n := range slices.Sorted(maps.Keys(lost)) {
		notes = append(notes, fmt.Sprintf("%d facts of node %s are recorded, and the node is not", lost[n], n))
	}
	return notes, err
}
