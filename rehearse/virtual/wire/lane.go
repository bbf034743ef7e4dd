// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"sync"
	"time"
)

// chunk is how many bytes are sent in one go on a lane with a rate, after
// scaling. Several that share an uplink take turns by chunks, so that 1,024 nodes
// on 25 Gbps each see something every 5.5 s, for 300 timers per node and image of
// 5 GB.
const chunk = 16 << 20

// small is what does not wait for its turn behind the chunks of others, in bytes
// after scaling: on a real wire a packet waits for packets only. It is counted all
// the same.
const small = 4 << 10

// lane is a transmitter that sends one chunk after the other.
type lane struct {
	rate float64   // bits a second; not above zero: no limit
	free time.Time // when the last chunk has passed
}

// reserve takes the lane for so many bytes and returns when they have passed.
// What is small passes at once.
func (l *lane) reserve(now time.Time, bytes float64) time.Time {
	if l.rate <= 0 {
		return now
	}
	if l.free.Before(now) {
		l.free = now
	}
	takes := time.Duration(bytes * 8 / l.rate * float64(time.Second))
	l.free = l.free.Add(takes)
	if bytes <= small {
		return now.Add(takes)
	}
	return l.free
}

// Uplink is what several cables feed through: first come, first served, in
// chunks. It is safe for concurrent use.
type Uplink struct {
	mu    sync.Mutex // guards what follows
	lane  lane
	bytes float64
}

// NewUplink returns an uplink of so many bits a second.
func NewUplink(bitsPerSecond float64) *Uplink { return &Uplink{lane: lane{rate: bitsPerSecond}} }

// Rate changes the rate, in bits a second; what is under way is not changed.
func (u *Uplink) Rate(bitsPerSecond float64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lane.rate = bitsPerSecond
}

// Bytes is how many bytes, scaled, were sent through it so far.
func (u *Uplink) Bytes() float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.bytes
}

func (u *Uplink) reserve(now time.Time, bytes float64) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.bytes += bytes
	return u.lane.reserve(now, bytes)
}
