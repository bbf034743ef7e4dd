// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/engine/plan"
)

// A plan of 12,500 nodes has 200 MB. A small one is the value of its object; any other lies
// in blocks, which its object names in order. Parts says how many blocks each part of it
// takes: the first part is the plan without its steps, each other one a list of steps.
type planList struct {
	blockList
	Parts []int `json:"parts"`
	// Packed is how each part was made smaller before it was cut into blocks; "": not at all.
	Packed string `json:"packed,omitempty"`
}

// packedZstd is a frame of Zstandard (RFC 8878) for each part.
const packedZstd = "zstd"

const (
	inlinePlan = 128 << 10        // bytes of a plan that needs no blocks
	partOfPlan = MaxValue * 7 / 8 // bytes at which a list of steps is closed
	togetherAt = 16 << 20         // bytes of blocks that are written together

	mostUnpacked = 1 << 30 // bytes of one part
)

// PutPlan makes the Put that stores a plan at its key, whatever is there now. What does not
// fit into the object is written to blocks first.
func PutPlan(ctx context.Context, s Store, f Fence, p *plan.Plan) (Put, error) {
	k := PlanKey(p.ID)
	head := *p
	head.Steps = nil
	raw, err := encodeValue(k, &head)
	if err != nil {
		return Put{}, err
	}
	w := planWriter{packs: true, put: func(blocks [][]byte) ([]Digest, error) { return s.PutBlocks(ctx, f, blocks...) }}
	if err := w.addPart(raw); err != nil {
		return Put{}, err
	}
	for i := range p.Steps {
		raw, err := encodeValue(k, &p.Steps[i])
		if err != nil {
			return Put{}, err
		}
		if err := w.addStep(raw); err != nil {
			return Put{}, err
		}
	}
	if w.list.Blocks == nil && w.whole+len(w.steps) <= inlinePlan {
		return PutOf(k, p)
	}
	list, err := w.end()
	if err != nil {
		return Put{}, err
	}
	return PutOf(k, list)
}

// planWriter cuts a plan into parts and parts into blocks.
type planWriter struct {
	list  planList
	put   func([][]byte) ([]Digest, error)
	steps []byte   // the list of steps that is not closed
	ready [][]byte // blocks that are not written
	bytes int      // of ready
	whole int      // of all parts, before they were packed
	packs bool     // parts; those of anything but a plan lie in blocks as they are
	pack  *zstd.Encoder
}

// addStep adds a step, as JSON.
func (w *planWriter) addStep(raw []byte) error {
	if len(w.steps) > 0 && len(w.steps)+len(raw) > partOfPlan {
		if err := w.closeList(); err != nil {
			return err
		}
	}
	if w.steps = append(w.steps, ','); len(w.steps) == 1 {
		w.steps[0] = '['
	}
	w.steps = append(w.steps, raw...)
	return nil
}

func (w *planWriter) closeList() error {
	list := append(w.steps, ']')
	w.steps = nil
	return w.addPart(list)
}

// addPart adds a part.
func (w *planWriter) addPart(part []byte) (err error) {
	if w.packs && w.pack == nil {
		if w.pack, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
			return err
		}
	}
	w.whole += len(part)
	if w.packs {
		part = w.pack.EncodeAll(part, nil)
	}
	n := 0
	for b := range slices.Chunk(part, MaxValue) {
		w.ready = append(w.ready, b)
		n++
	}
	w.list.Parts = append(w.list.Parts, n)
	if w.bytes += len(part); w.bytes >= togetherAt {
		return w.flush()
	}
	return nil
}

func (w *planWriter) flush() error {
	ds, err := w.put(w.ready)
	w.list.Blocks = append(w.list.Blocks, ds...)
	w.ready, w.bytes = nil, 0
	return err
}

// end writes what is left and returns what the object of the plan says.
func (w *planWriter) end() (*planList, error) {
	if len(w.steps) > 0 {
		if err := w.closeList(); err != nil {
			return nil, err
		}
	}
	err := w.flush()
	if w.list.Bytes = w.whole; w.packs {
		w.list.Packed = packedZstd
	}
	return &w.list, err
}

// planParts are the pieces of a stored plan: the plan without its steps, and lists of
// steps in their order. All are JSON.
type planParts struct {
	head  func(raw []byte) error
	steps func(list []byte) error
	anew  func() // what was given is void: the plan was replaced, and is given again
}

// readPlanParts gives the parts of a stored plan to f one by one; false: there is no such
// plan. What is given is good until f returns.
func readPlanParts(ctx context.Context, r Reader, planID string, f planParts) (bool, error) {
	k := PlanKey(planID)
	found, list, err := readPlanOnce(ctx, r, k, f)
	for was := list; list != nil; was = list {
		if _, missing := errors.AsType[*MissingBlockError](err); !missing {
			break
		}
		f.anew()
		if found, list, err = readPlanOnce(ctx, r, k, f); list != nil && slices.Equal(list.Blocks, was.Blocks) {
			break // it was not replaced: its blocks are lost
		}
	}
	if err != nil {
		err = fmt.Errorf("state: object %s: %w", k, err)
	}
	return found, err
}

// readPlanOnce is readPlanParts without a second try. It returns the list of a plan in blocks.
func readPlanOnce(ctx context.Context, r Reader, k Key, f planParts) (found bool, list *planList, err error) {
	err = peekObject(ctx, r, k, func(value []byte) (err error) {
		found = true
		if list, err = listOfPlan(k, value); err != nil || list != nil {
			return err
		}
		return cutPlan(value, f)
	})
	if err == nil && list != nil {
		err = list.read(ctx, r, f)
	}
	return found, list, err
}

// listOfPlan reads what the object of a plan in blocks says; nil for one that has it all.
func listOfPlan(k Key, value []byte) (*planList, error) {
	named, err := NamedBlocks(k, value)
	if err != nil || named == nil {
		return nil, err
	}
	l := &planList{}
	if err := json.Unmarshal(value, l); err != nil {
		return nil, err
	}
	if l.Packed != "" && l.Packed != packedZstd {
		return nil, fmt.Errorf("its parts are packed by %q, which this version does not know", l.Packed)
	}
	n := 0
	for _, p := range l.Parts {
		n += max(p, 0)
	}
	if n != len(l.Blocks) || len(l.Parts) == 0 {
		return nil, fmt.Errorf("its parts have %d blocks of %d", n, len(l.Blocks))
	}
	return l, nil
}

// read gives the parts of a plan in blocks to f.
func (l *planList) read(ctx context.Context, r Reader, f planParts) error {
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostUnpacked))
	if err != nil {
		return err
	}
	defer unpack.Close()
	left, give := l.Blocks, f.head
	for _, n := range l.Parts {
		part, err := joinBlocks(ctx, r, left[:n])
		if err == nil && l.Packed != "" {
			part, err = unpack.DecodeAll(part, nil)
		}
		if err != nil {
			return err
		}
		if err := give(part); err != nil {
			return err
		}
		left, give = left[n:], f.steps
	}
	return nil
}

func joinBlocks(ctx context.Context, r Reader, ds []Digest) ([]byte, error) {
	if len(ds) == 1 {
		return r.Block(ctx, ds[0])
	}
	var out []byte
	for _, d := range ds {
		b, err := r.Block(ctx, d)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// cutPlan gives the parts of a plan that is one value to f.
func cutPlan(value []byte, f planParts) error {
	from, to := stepsIn(value)
	if from < 0 {
		return f.head(value)
	}
	if err := f.head(slices.Concat(value[:from], []byte("null"), value[to:])); err != nil {
		return err
	}
	return f.steps(value[from:to])
}

// ReadPlan reads a stored plan; nil when there is none. Its steps share what is the same
// in them, and are not to be changed in place.
func ReadPlan(ctx context.Context, r Reader, planID string) (*plan.Plan, error) {
	p := &plan.Plan{}
	found, err := readPlanParts(ctx, r, planID, planParts{
		anew: func() { *p = plan.Plan{} },
		head: func(raw []byte) error { return json.Unmarshal(raw, p) },
		steps: func(list []byte) error {
			steps, err := decodeStepList(list)
			p.Steps = append(p.Steps, steps...)
			return err
		},
	})
	if err != nil || !found {
		return nil, err
	}
	return p, nil
}

// decodeStepList decodes a list of steps.
func decodeStepList(list []byte) (steps []plan.Step, err error) {
	if cuts := cutList(list); len(cuts) > 1 {
		return decodeSteps(list, cuts)
	}
	err = json.Unmarshal(list, &steps)
	return steps, err
}

// WholeValue is the value of an object with what lies in its blocks: that of a plan is the
// plan as JSON. Of one that is replaced meanwhile it is the new one.
func WholeValue(ctx context.Context, r Reader, o Object) (json.RawMessage, error) {
	for {
		value, err := wholeValue(ctx, r, o)
		next, moved := replaced(ctx, r, o, err)
		if !moved {
			return value, err
		}
		o = next
	}
}

func wholeValue(ctx context.Context, r Reader, o Object) (json.RawMessage, error) {
	if o.Key.Kind != planKind {
		return joinValue(ctx, r, o)
	}
	l, err := listOfPlan(o.Key, o.Value)
	if err != nil || l == nil {
		return o.Value, err
	}
	var head, steps []byte
	err = l.read(ctx, r, planParts{
		head: func(raw []byte) error { head = bytes.Clone(raw); return nil },
		steps: func(list []byte) error {
			if steps == nil {
				steps = make([]byte, 0, l.Bytes)
			} else {
				steps[len(steps)-1] = ','
				list = list[1:]
			}
			steps = append(steps, list...)
			return nil
		},
	})
	if err != nil || steps == nil {
		return head, err
	}
	mark := []byte(`"steps":null`)
	at := bytes.Index(head, mark) // the lists before it are of numbers and names that the program gives
	if at < 0 {
		return nil, fmt.Errorf("state: object %s: its first part is no plan without steps", o.Key)
	}
	return slices.Concat(head[:at], mark[:len(mark)-4], steps, head[at+len(mark):]), nil
}
