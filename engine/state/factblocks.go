// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/ironrail/ironrail/internal/fact"
)

// inlineFact is how many bytes of a fact its object holds. What a test of many nodes
// measured is larger: 1.3 MB for the pairs of 128 nodes with eight rails.
const inlineFact = 128 << 10

// PutFact makes the Put that stores a fact at its key, and the data of the record that says
// that it was learned. A fact that is larger than an object takes is written to blocks
// first; its record has no value.
func PutFact(ctx context.Context, s Store, f Fence, x fact.Fact) (Put, json.RawMessage, error) {
	k := FactKey(x.Key)
	without := x
	without.Value = nil
	return putLarge(ctx, s, f, k, x, without, inlineFact)
}

// inlineFrozen is how many bytes of a frozen group its object holds, and the record beside
// it once more: those of some 9,000 nodes. A prediction reads the record.
const inlineFrozen = MaxBatch * 3 / 8

// PutFrozen makes the Put that stores the membership of a group at its key, and the data of the
// record that says so, as PutFact does: that of a larger one has no members.
func PutFrozen(ctx context.Context, s Store, f Fence, x Frozen) (Put, json.RawMessage, error) {
	return putLarge(ctx, s, f, FrozenKey(x.Plan, x.Step), x, Frozen{Plan: x.Plan, Step: x.Step}, inlineFrozen)
}

// putLarge stores a value at its key, in blocks where it has more bytes than most. The data of
// the record is the value, or without, which is what is left of it then.
func putLarge(ctx context.Context, s Store, f Fence, k Key, v, without any, most int) (Put, json.RawMessage, error) {
	whole, err := PutOf(k, v)
	if err != nil || len(whole.Value) <= most {
		return whole, whole.Value, err
	}
	blocks := slices.Collect(slices.Chunk([]byte(whole.Value), MaxValue))
	digests, err := s.PutBlocks(ctx, f, blocks...)
	if err != nil {
		return Put{}, nil, err
	}
	record, err := encodeValue(k, without)
	if err != nil {
		return Put{}, nil, err
	}
	named, err := PutOf(k, blockList{Blocks: digests, Bytes: len(whole.Value)})
	return named, record, err
}

// joinValue is the value of an object with what lies in its blocks, where these are its bytes.
func joinValue(ctx context.Context, r Reader, o Object) (json.RawMessage, error) {
	named, err := NamedBlocks(o.Key, o.Value)
	if err != nil || named == nil {
		return o.Value, err
	}
	return joinBlocks(ctx, r, named)
}
