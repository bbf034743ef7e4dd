// SPDX-License-Identifier: Apache-2.0

// Package meter says how far a transfer is, and watches and ends its reads.
package meter

import (
	"fmt"
	"time"
)

// every is how often a meter says how far it is.
const every = 5 * time.Second

// Meter says how much came, how fast, and how long the rest takes. It implements
// io.Writer; one goroutine uses it.
type Meter struct {
	Say   func(string)
	What  string // begins a line, such as "fetched"
	Total int64  // bytes; 0: not known
	Done  int64  // bytes; what was there before the first Add costs no time

	had         int64
	began, last time.Time
}

// Write counts what is written, and keeps nothing of it.
func (m *Meter) Write(p []byte) (int, error) {
	m.Add(int64(len(p)))
	return len(p), nil
}

// Add counts n bytes.
func (m *Meter) Add(n int64) {
	now := time.Now()
	if m.began.IsZero() {
		m.began, m.last, m.had = now, now, m.Done
	}
	m.Done += n
	if now.Sub(m.last) >= every {
		m.last = now
		m.Say(m.line(now))
	}
}

// line is such as "fetched 120 of 600 MiB, 24 MiB/s, 20s left".
func (m *Meter) line(now time.Time) string {
	rate := float64(m.Done-m.had) / now.Sub(m.began).Seconds()
	if m.Total <= 0 {
		return fmt.Sprintf("%s %d MiB, %.0f MiB/s", m.What, m.Done>>20, rate/(1<<20))
	}
	left := time.Duration(float64(m.Total-m.Done) / max(rate, 1) * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s %d of %d MiB, %.0f MiB/s, %s left", m.What, m.Done>>20, m.Total>>20, rate/(1<<20), max(left, 0))
}
