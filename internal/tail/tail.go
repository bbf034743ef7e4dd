// SPDX-License-Identifier: Apache-2.0

// Package tail keeps the end of what a program prints.
package tail

import (
	"bytes"
	"sync"
)

// Tail keeps the last Most bytes that are written to it. It is safe for concurrent use.
type Tail struct {
	Most int

	mu   sync.Mutex // guards what follows
	kept []byte
	lost bool
}

// Write keeps the end and takes the rest; it never fails.
func (t *Tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - t.Most; over > 0 {
		t.kept, t.lost = append(t.kept[:0], t.kept[over:]...), true
	}
	return len(b), nil
}

// Bytes returns what was kept, and whether something before it was left out.
func (t *Tail) Bytes() (kept []byte, lost bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.kept), t.lost
}
