// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"

	"go.etcd.io/bbolt"
)

// raw is one object as it lies in the store. Its bytes are good until the look at
// the store ends.
type raw struct {
	name    string
	version uint64
	value   []byte
}

// stored is one object of a file before its checksum was compared.
type stored struct{ key, raw []byte }

// inBlock is how many objects are seen at a time: enough for all cores, and few
// enough that neither they nor the pages that they lie on take much memory.
const inBlock = 1 << 13

// scanKind shows all objects of a kind to f, by name, a block of them at a time and
// without copying those of a file: at opens one, and may be called by several
// goroutines until f returns.
func scanKind(ctx context.Context, r Reader, kind string, f func(n int, at func(int) (raw, error)) error) error {
	if b, ok := r.(*Bolt); ok {
		return b.scan(ctx, kind, f)
	}
	os, err := r.Objects(ctx, kind)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(os, inBlock) {
		err := f(len(part), func(i int) (raw, error) { return raw{part[i].Key.Name, part[i].Version, part[i].Value}, nil })
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Bolt) scan(ctx context.Context, kind string, f func(n int, at func(int) (raw, error)) error) error {
	prefix := []byte(kind + "/")
	return b.view(ctx, func(tx *bbolt.Tx) error {
		block := make([]stored, 0, inBlock)
		at := func(i int) (raw, error) {
			o := block[i]
			version, value, err := b.object(o.key, o.raw)
			return raw{string(o.key[len(prefix):]), version, value}, err
		}
		c := tx.Bucket(objectBucket).Cursor()
		k, v := c.Seek(prefix)
		for more := true; more; {
			for block = block[:0]; len(block) < inBlock; k, v = c.Next() {
				if more = bytes.HasPrefix(k, prefix); !more {
					break
				}
				block = append(block, stored{k, v})
			}
			if err := f(len(block), at); err != nil {
				return damagedError(b.path, err)
			}
			b.letGo(tx)
		}
		return nil
	})
}

// decodeAll decodes every object of a kind, on all cores, and gives each to f, one
// after another, by name. What f is given is used again when it returns. decoder
// makes what one goroutine decodes with.
func decodeAll[T any](ctx context.Context, r Reader, kind string, decoder func() func(raw, *T) error, f func(*T, uint64)) error {
	out, versions := make([]T, inBlock), make([]uint64, inBlock)
	decoders := make([]func(raw, *T) error, runtime.GOMAXPROCS(0))
	return scanKind(ctx, r, kind, func(n int, at func(int) (raw, error)) error {
		err := runInParts(n, func(part, from, to int) error {
			return guardFaults(kind, func() error {
				if decoders[part] == nil {
					decoders[part] = decoder()
				}
				return decodePart(out, versions, from, to, at, decoders[part])
			})
		})
		if err != nil {
			return err
		}
		for i := range n {
			f(&out[i], versions[i])
		}
		return nil
	})
}

// decodePart decodes the objects of one goroutine.
func decodePart[T any](out []T, versions []uint64, from, to int, at func(int) (raw, error), decode func(raw, *T) error) error {
	var none T
	for i := from; i < to; i++ {
		o, err := at(i)
		if err != nil {
			return err
		}
		out[i] = none
		if err := decode(o, &out[i]); err != nil {
			return fmt.Errorf("object %s is not readable: %w", o.name, err)
		}
		versions[i] = o.version
	}
	return nil
}

// newJSONDecoder decodes as encoding/json does.
func newJSONDecoder[T any]() func(raw, *T) error {
	return func(o raw, v *T) error { return json.Unmarshal(o.value, v) }
}
