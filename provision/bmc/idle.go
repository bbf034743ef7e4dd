// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"time"
)

// KeepAlive keeps idle sessions from expiring, and gives back those that nobody
// used for five minutes, or for half a minute where there are more than 64: BMCs
// have few sessions, and thousands of keep-alives cost more than a new log-in for
// each of the few requests of a node. It runs until ctx is done and then returns
// nil.
func (p *Pool) KeepAlive(ctx context.Context) error {
	for p.opts.Clock.Sleep(ctx, keepAliveEvery) == nil {
		limit := idleLimit
		if p.sessions() > crowd {
			limit = crowdedLimit
		}
		p.each(func(e *entry) {
			select {
			case <-e.turn:
			default:
				return // in use: that keeps it alive
			}
			defer func() { e.turn <- struct{}{} }()
			p.refresh(ctx, e, limit)
		})
	}
	return nil
}

// sessions counts the sessions that are kept.
func (p *Pool) sessions() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		if e.open.Load() {
			n++
		}
	}
	return n
}

// refresh asks an idle session something, or gives it back after limit.
func (p *Pool) refresh(ctx context.Context, e *entry, limit time.Duration) {
	if e.session == nil {
		return
	}
	now := p.opts.Clock.Now()
	switch {
	case now.Sub(e.used) >= limit:
		_ = e.session.Close(ctx)
		e.keep(nil)
	case e.session.drv.pinged(now):
		if e.session.drv.ping(ctx) != nil {
			e.session.drv.drop()
			e.keep(nil)
		}
	}
}
