// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/secret"
)

// Times of kept sessions. A BMC ends a session after 60 s without a request
// (IPMI 2.0, 6.12.15) and has as few as four of them.
const (
	keepAliveEvery = 20 * time.Second // how often idle sessions are looked at, and asked something
	staleAfter     = 45 * time.Second // an older one of IPMI is not used any more
	idleLimit      = 5 * time.Minute  // one that nobody used is given back
	crowd          = 64               // with more sessions than this,
	crowdedLimit   = 30 * time.Second // one that would have to be asked is given back as early as this
	closeParallel  = 32               // sessions closed or pinged at a time
)

// Pool keeps one session for each BMC address and lets one request at a time
// through to it; others wait in line, within their contexts. It is safe for
// concurrent use. Different BMCs are served at the same time, as many as there
// are callers.
//
// A credential that a BMC refused is not tried there again until Forget, so that
// no repetition locks the account; nor is a locked account. The certificate that a
// BMC showed first is the only one it may show later.
type Pool struct {
	opts Options

	mu      sync.Mutex // guards the fields below; never held while waiting
	entries map[netip.AddrPort]*entry
	refused map[netip.AddrPort]refusal
	pins    map[netip.AddrPort]string // certificates that were trusted, SHA-256 in hex
	closed  bool
	counts  Counts
}

// entry is the place of one BMC. Whoever has taken turn owns the other fields.
type entry struct {
	turn    chan struct{} // holds one token while the entry is free
	session *Session
	used    time.Time   // end of the last request that a caller made
	open    atomic.Bool // session is not nil; may be read by everybody
}

// keep makes s the entry's session; nil: none.
func (e *entry) keep(s *Session) {
	e.session = s
	e.open.Store(s != nil)
}

// refusal is a credential that a BMC did not take.
type refusal struct {
	username string
	password secret.Value
	cause    error // errCredential or ErrLocked
}

// NewPool returns an empty pool. The caller closes it and, where sessions shall
// outlive a minute without requests, runs KeepAlive.
func NewPool(o Options) *Pool {
	if o.Clock == nil {
		o.Clock = clock.Wall{}
	}
	return &Pool{opts: o, entries: map[netip.AddrPort]*entry{}, refused: map[netip.AddrPort]refusal{}, pins: map[netip.AddrPort]string{}, counts: Counts{Errors: map[errkind.Kind]uint64{}}}
}

// Handle is one BMC seen through a pool. It connects when something is asked. It
// is safe for concurrent use.
type Handle struct {
	pool   *Pool
	target Target
}

// Handle returns the BMC of t. Nothing is sent.
func (p *Pool) Handle(t Target) *Handle {
	return &Handle{pool: p, target: t.withDefaults()}
}

// PowerState asks for the power state.
func (h *Handle) PowerState(ctx context.Context) (state PowerState, err error) {
	err = h.Do(ctx, func(s *Session) error { state, err = s.PowerState(ctx); return err })
	return state, err
}

// SetPower changes the power; see Session.SetPower. Nobody else reaches the BMC
// until the change has settled.
func (h *Handle) SetPower(ctx context.Context, a PowerAction) (out Outcome, err error) {
	err = h.Do(ctx, func(s *Session) error { out, err = s.SetPower(ctx, a); return err })
	return out, err
}

// ShutDown asks the operating system to shut down; see Session.ShutDown. Others reach the BMC
// while it does.
func (h *Handle) ShutDown(ctx context.Context) (out Outcome, err error) {
	err = h.Do(ctx, func(s *Session) error { out, err = s.ShutDown(ctx); return err })
	return out, err
}

// Locate switches the light that locates the chassis; see Locator.
func (h *Handle) Locate(ctx context.Context, want Light) (out Outcome, err error) {
	err = Use(ctx, h, "locate", func(l Locator) error { out, err = l.Locate(ctx, want); return err })
	return out, err
}

// SetBoot sets the boot device; see Session.SetBoot.
func (h *Handle) SetBoot(ctx context.Context, b Boot) (out Outcome, err error) {
	err = h.Do(ctx, func(s *Session) error { out, err = s.SetBoot(ctx, b); return err })
	return out, err
}

// Identity asks who BMC and node are; see Session.Identity.
func (h *Handle) Identity(ctx context.Context) (id Identity, err error) {
	err = h.Do(ctx, func(s *Session) error { id, err = s.Identity(ctx); return err })
	return id, err
}

// Certificate returns the SHA-256, in lower-case hex, of the certificate that the
// BMC has shown in this pool's life and that was trusted; "" before the first
// contact and for IPMI. It asks nothing.
func (h *Handle) Certificate() string {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	return h.pool.pins[h.target.Addr]
}

// Do runs f with the BMC's session, and nobody else reaches the BMC until f
// returns: several requests become one unit. f must not keep the session. f is
// run once, whatever it returns.
func (h *Handle) Do(ctx context.Context, f func(*Session) error) error {
	err := h.do(ctx, f)
	h.pool.count(err)
	return err
}

// Counts are what a pool was asked since it was made.
type Counts struct {
	Requests uint64                  // calls of Handle.Do, and of what is made of it
	Errors   map[errkind.Kind]uint64 // those that failed
}

// Plus adds the counts of two pools.
func (c Counts) Plus(o Counts) Counts {
	out := Counts{Requests: c.Requests + o.Requests, Errors: maps.Clone(c.Errors)}
	for kind, n := range o.Errors {
		if out.Errors == nil {
			out.Errors = map[errkind.Kind]uint64{}
		}
		out.Errors[kind] += n
	}
	return out
}

// Counts returns what the pool was asked until now.
func (p *Pool) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Counts{p.counts.Requests, maps.Clone(p.counts.Errors)}
}

// count counts the end of a request.
func (p *Pool) count(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Requests++
	if err != nil {
		p.counts.Errors[errkind.Of(err)]++
	}
}

func (h *Handle) do(ctx context.Context, f func(*Session) error) error {
	e, err := h.pool.take(ctx, h.target)
	if err != nil {
		return h.target.wrap("wait for the bmc", err)
	}
	defer func() { e.turn <- struct{}{} }()
	if err := h.pool.connect(ctx, e, h.target); err != nil {
		return err
	}
	err = f(e.session)
	e.used = h.pool.opts.Clock.Now()
	if err != nil {
		h.pool.afterError(e, h.target, err)
	}
	return err
}

// take waits for the BMC's turn.
func (p *Pool) take(ctx context.Context, t Target) (*entry, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errkind.New(errkind.Interrupted, "the pool is closed")
	}
	e := p.entries[t.Addr]
	if e == nil {
		e = &entry{turn: make(chan struct{}, 1)}
		e.turn <- struct{}{}
		p.entries[t.Addr] = e
	}
	p.mu.Unlock()
	select {
	case <-e.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p.isClosed() {
		e.turn <- struct{}{}
		return nil, errkind.New(errkind.Interrupted, "the pool is closed")
	}
	return e, nil
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// connect makes sure that e has a session that fits t and has not expired.
func (p *Pool) connect(ctx context.Context, e *entry, t Target) error {
	if err := p.refusedBefore(t); err != nil {
		return t.wrap("open session", err)
	}
	if s := e.session; s != nil {
		if t.equal(s.target, s.Certificate()) && s.drv.usable(p.opts.Clock.Now()) {
			return nil
		}
		_ = s.Close(ctx)
		e.keep(nil)
	}
	s, err := Open(ctx, p.pinned(t), p.opts)
	if err != nil {
		p.afterError(e, t, err)
		return err
	}
	s.target = t
	e.keep(s)
	if c := s.Certificate(); c != "" {
		p.mu.Lock()
		p.pins[t.Addr] = c
		p.mu.Unlock()
	}
	return nil
}

// pinned returns t with the certificate that this pool has seen, where the caller
// knows none.
func (p *Pool) pinned(t Target) Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Pinned == "" {
		t.Pinned = p.pins[t.Addr]
	}
	return t
}

// afterError drops a session that may be gone and remembers a refusal.
func (p *Pool) afterError(e *entry, t Target, err error) {
	for _, cause := range []error{errCredential, ErrLocked} {
		if errors.Is(err, cause) {
			p.mu.Lock()
			p.refused[t.Addr] = refusal{username: t.Username, password: t.Password, cause: cause}
			p.mu.Unlock()
		}
	}
	if e.session != nil && !e.session.drv.survives(err) {
		e.session.drv.drop()
		e.keep(nil)
	}
}

// refusedBefore returns the error about a credential that the BMC did not take in
// this pool's life, or nil.
func (p *Pool) refusedBefore(t Target) error {
	p.mu.Lock()
	r, ok := p.refused[t.Addr]
	p.mu.Unlock()
	switch {
	case !ok || r.username != t.Username || r.password != t.Password:
		return nil
	case errors.Is(r.cause, ErrLocked):
		return errkind.New(errkind.Auth, "%w, as the bmc has said before; it is not asked again", ErrLocked).Do(actionLocked)
	}
	return errkind.New(errkind.Auth, "the bmc has refused this user name and password before; it is not asked again").Do(actionCredential)
}

// Forget lets a refused credential be tried again at addr, once.
func (p *Pool) Forget(addr netip.AddrPort) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, addr)
}

// each runs f for every entry with a session, some at a time; on a closed pool for
// every entry, since one may be about to have one.
func (p *Pool) each(f func(*entry)) {
	p.mu.Lock()
	entries := make([]*entry, 0, len(p.entries))
	for _, e := range p.entries {
		if e.open.Load() || p.closed {
			entries = append(entries, e)
		}
	}
	p.mu.Unlock()
	var wg sync.WaitGroup
	room := make(chan struct{}, closeParallel)
	for _, e := range entries {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			f(e)
		})
	}
	wg.Wait()
}

// Close logs out of every BMC and refuses further requests. It waits for
// requests that are under way, within ctx; a session that it could not wait for
// expires on the BMC by itself.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	var mu sync.Mutex
	var errs []error
	p.each(func(e *entry) {
		select {
		case <-e.turn:
		case <-ctx.Done():
			mu.Lock()
			errs = append(errs, context.Cause(ctx))
			mu.Unlock()
			return
		}
		defer func() { e.turn <- struct{}{} }()
		if e.session != nil {
			_ = e.session.Close(ctx)
			e.keep(nil)
		}
	})
	return errors.Join(errs...)
}
