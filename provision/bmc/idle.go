// SPDX-License-Identifier: Apache-2.0

package bmc

import "context"

// KeepAlive keeps idle sessions from expiring, and gives back those that nobody
// used for five minutes, or for half a minute where there are more than 64 and they
// have to be asked to last: BMCs have few sessions, and thousands of keep-alives cost
// more than a new log-in for each of the few requests of a node. Those of Redfish last
// by themselves, and a new one costs six requests and a TLS handshake. It runs until
// ctx is done and then returns nil.
func (p *Pool) KeepAlive(ctx context.Context) error {
	for p.opts.Clock.Sleep(ctx, keepAliveEvery) == nil {
		crowded := p.sessions() > crowd
		p.each(func(e *entry) {
			select {
			case <-e.turn:
			default:
				return // in use: that keeps it alive
			}
			defer func() { e.turn <- struct{}{} }()
			p.refresh(ctx, e, crowded)
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

// refresh asks an idle session something, or gives it back.
func (p *Pool) refresh(ctx context.Context, e *entry, crowded bool) {
	if e.session == nil {
		return
	}
	now := p.opts.Clock.Now()
	idle, expiring := now.Sub(e.used), e.session.drv.pinged(now)
	switch {
	case idle >= idleLimit, crowded && expiring && idle >= crowdedLimit:
		_ = e.session.Close(ctx)
		e.keep(nil)
	case expiring:
		if e.session.drv.ping(ctx) != nil {
			e.session.drv.drop()
			e.keep(nil)
		}
	}
}
