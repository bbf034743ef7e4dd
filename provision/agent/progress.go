// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
)

// Progress goes to the controller at most once a second, to the console every ten.
const (
	reportEvery  = time.Second
	consoleEvery = 10 * time.Second
)

// reporter sends the latest progress of one task. Progress that cannot be sent is
// dropped, except its notes, which go with the next one.
type reporter struct {
	call caller
	key  string
	log  *slog.Logger
	stop chan struct{}
	wg   sync.WaitGroup

	mu     sync.Mutex
	latest wire.Progress // guarded by mu
	dirty  bool          // guarded by mu: latest was not sent
	note   string        // guarded by mu: notes that were not sent
}

// newReporter starts to report; close ends it.
func newReporter(ctx context.Context, call caller, key string, log *slog.Logger) *reporter {
	r := &reporter{call: call, key: key, log: log, stop: make(chan struct{})}
	r.wg.Go(func() { r.loop(ctx) })
	return r
}

// set takes the newest progress. It never blocks on the network.
func (r *reporter) set(p wire.Progress) {
	if p.Note != "" {
		r.log.Warn(p.Note) // before the lock: a serial console is slow
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Note != "" {
		if r.note != "" {
			r.note += "; "
		}
		r.note += p.Note
	}
	p.Key, p.Note = r.key, ""
	r.latest, r.dirty = p, true
}

// close sends what is left, once, and waits for it.
func (r *reporter) close() {
	close(r.stop)
	r.wg.Wait()
}

func (r *reporter) loop(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.stop:
			r.send(ctx)
			return
		case <-tick.C:
			p := r.send(ctx)
			if p.Total > 0 && time.Since(last) >= consoleEvery {
				last = time.Now()
				r.log.Info("progress", "phase", p.Phase, "percent", p.Done*100/p.Total)
			}
		}
	}
}

// send posts the latest progress when it is news, and returns it.
func (r *reporter) send(ctx context.Context) wire.Progress {
	r.mu.Lock()
	p, note, dirty := r.latest, r.note, r.dirty
	r.dirty, r.note = false, ""
	r.mu.Unlock()
	if !dirty {
		return p
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	p.Note = note
	if err := r.call.post(ctx, wire.PathProgress, p, nil); err != nil && note != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.dirty = true
		if r.note != "" {
			note += "; " + r.note
		}
		r.note = note
	}
	return p
}
