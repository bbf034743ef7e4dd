// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Digest names an immutable block by its content: "sha256:" and 64 hexadecimal digits.
type Digest string

const digestPrefix = "sha256:"

// DigestOf is the digest of a block.
func DigestOf(block []byte) Digest {
	sum := sha256.Sum256(block)
	return Digest(digestPrefix + hex.EncodeToString(sum[:]))
}

// check refuses what is no digest.
func (d Digest) check() error {
	text, ok := strings.CutPrefix(string(d), digestPrefix)
	raw, err := hex.DecodeString(text)
	if !ok || err != nil || len(raw) != sha256.Size {
		return fmt.Errorf("state: %q is no digest of a block", string(d))
	}
	return nil
}

// checkBlocks refuses blocks that no store takes.
func checkBlocks(blocks [][]byte) error {
	for _, b := range blocks {
		if len(b) > MaxValue {
			return limitError("a block", len(b), MaxValue, "bytes")
		}
	}
	return nil
}

// blockList is the value of an object whose content lies in blocks. Blocks is written
// first: see NamedBlocks.
type blockList struct {
	Blocks []Digest `json:"blocks"`
	Bytes  int      `json:"bytes"` // of all blocks
}

// listStart begins the value of an object that is a blockList.
var listStart = []byte(`{"blocks":["` + digestPrefix)

// BlockKinds are the kinds of object whose values may name blocks.
var BlockKinds = []string{planKind, factKind, frozenKind}

// NamedBlocks returns the blocks that the value of an object names; none for most.
func NamedBlocks(k Key, value []byte) ([]Digest, error) {
	if !slices.Contains(BlockKinds, k.Kind) || !bytes.HasPrefix(value, listStart) {
		return nil, nil
	}
	var l blockList
	if err := json.Unmarshal(value, &l); err != nil {
		return nil, fmt.Errorf("state: object %s: %w", k, err)
	}
	for _, d := range l.Blocks {
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("object %s: %w", k, err)
		}
	}
	return l.Blocks, nil
}

// namedBlocks returns the blocks that the puts of a batch name.
func (b *Batch) namedBlocks() (all []Digest, err error) {
	for i := range b.Puts {
		ds, err := NamedBlocks(b.Puts[i].Key, b.Puts[i].Value)
		if err != nil {
			return nil, err
		}
		all = append(all, ds...)
	}
	return all, nil
}

// unnamed counts, for each block that was put, the appends that are to name it and have
// not. An append that was refused is counted until the next claim.
type unnamed map[Digest]int

// add counts blocks that were put: once for each append, however often they are in it.
func (u unnamed) add(put []Digest) {
	for _, d := range distinct(put) {
		u[d]++
	}
}

// drop is what an append that was written names.
func (u unnamed) drop(named []Digest) {
	for _, d := range distinct(named) {
		if u[d]--; u[d] <= 0 {
			delete(u, d)
		}
	}
}

func distinct(ds []Digest) []Digest { return slices.Compact(slices.Sorted(slices.Values(ds))) }

// MissingBlockError says that an object names a block that is not there.
type MissingBlockError struct{ Digest Digest }

// Error names the block.
func (e *MissingBlockError) Error() string {
	return fmt.Sprintf("state: block %s is not there", e.Digest)
}

func missingBlock(d Digest) error {
	return &errkind.Error{Kind: errkind.NotFound, Err: &MissingBlockError{d}}
}

// replaced returns an object as it is now whose blocks were not there when it was read: it was
// replaced meanwhile, and they were swept. False: it was not, and err is what is wrong with it.
func replaced(ctx context.Context, r Reader, o Object, err error) (Object, bool) {
	if _, missing := errors.AsType[*MissingBlockError](err); !missing {
		return o, false
	}
	now, ok, err := r.Object(ctx, o.Key)
	return now, err == nil && ok && now.Version != o.Version
}
