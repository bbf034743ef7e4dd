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
	whole, err := PutOf(k, x)
	if err != nil || len(whole.Value) <= inlineFact {
		return whole, whole.Value, err
	}
	blocks := slices.Collect(slices.Chunk([]byte(whole.Value), MaxValue))
	digests, err := s.PutBlocks(ctx, f, blocks...)
	if err != nil {
		return Put{}, nil, err
	}
	x.Value = nil
	record, err := encodeValue(k, x)
	if err != nil {
		return Put{}, nil, err
	}
	named, err := PutOf(k, blockList{Blocks: digests, Bytes: len(whole.Value)})
	return named, record, err
}

// wholeFact is the value of a fact's object with what lies in its blocks.
func wholeFact(ctx context.Context, r Reader, o Object) (json.RawMessage, error) {
	named, err := NamedBlocks(o.Key, o.Value)
	if err != nil || named == nil {
		return o.Value, err
	}
	return joinBlocks(ctx, r, named)
}
