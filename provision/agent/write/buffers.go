// SPDX-License-Identifier: Apache-2.0

package write

import (
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/provision/agent/disk"
)

// Buffers keeps what unpacking a chunk needs, a few MiB, from one chunk to the
// next. Writers may share one: thousands of virtual nodes then need as many as
// unpack at the same moment. The zero value is ready. It is safe for concurrent
// use, but under testing/synctest only within one bubble.
type Buffers struct{ pool sync.Pool }

// unpackSlack is what the decoder wants to have behind the bytes that it unpacks, so
// that it does not take a buffer of its own.
const unpackSlack = 64

// buffer unpacks one chunk at a time.
type buffer struct {
	decoder *zstd.Decoder
	plain   []byte
}

func (b *Buffers) take() (*buffer, error) {
	if old, ok := b.pool.Get().(*buffer); ok {
		return old, nil
	}
	// With a concurrency of 1 it starts no goroutine, so it needs no Close.
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*manifest.ChunkSize))
	return &buffer{decoder: decoder, plain: disk.Aligned(manifest.ChunkSize + unpackSlack)}, err
}

func (b *Buffers) give(old *buffer) { b.pool.Put(old) }
