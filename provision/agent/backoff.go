// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"math/rand/v2"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Bounds of the back-off. A rack that lost its controller must not greet it with
// a storm, and a node must be back soon after the controller is.
const (
	firstWait   = 500 * time.Millisecond
	longestWait = 20 * time.Second
	refusedWait = 2 * time.Minute // our token or version is not accepted: only a person changes that
)

// backoff doubles the wait with every failure in a row. The zero value is ready.
type backoff struct{ failures int }

// next returns how long to wait before the next try: between half and the whole
// of the doubled wait, so that nodes do not march in step.
func (b *backoff) next(kind errkind.Kind) time.Duration {
	longest := longestWait
	if kind == errkind.Auth || kind == errkind.Unsupported {
		longest = refusedWait
	}
	d := longest
	if b.failures < 10 {
		d = min(longest, firstWait<<b.failures)
	}
	b.failures++
	return d/2 + rand.N(d/2+1)
}
