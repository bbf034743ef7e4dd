// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// defaultParallel is how many commands a Pool runs at a time when NewPool is
// given none.
const defaultParallel = 64

// Pool keeps one Client for each node and bounds the work over all of them. It
// is safe for concurrent use.
type Pool struct {
	slots chan struct{}   // one token for each Do that runs
	net   network.Network // for a Config that names none

	mu     sync.Mutex // guards the fields below; never held while waiting
	nodes  map[string]*place
	closed bool
}

// place is one node's client. Whoever has taken turn owns the client field.
type place struct {
	turn   chan struct{}
	client *Client
}

// NewPoolOn returns a pool that runs at most parallel pieces of work at a time, on a
// network where every Config leads that names none of its own; nil is the operating
// system's. The caller closes it.
func NewPoolOn(parallel int, n network.Network) *Pool {
	if parallel <= 0 {
		parallel = defaultParallel
	}
	return &Pool{slots: make(chan struct{}, parallel), net: n, nodes: map[string]*place{}}
}

// Do runs f with the node's client, connecting if needed, when there is room. f
// must not keep the client. A Config that leads elsewhere than the last one for
// this node replaces its client.
func (p *Pool) Do(ctx context.Context, cfg Config, f func(*Client) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return cfg.wrap("wait for room", fromContext(ctx))
	}
	defer func() { <-p.slots }()
	client, err := p.client(ctx, cfg)
	if err != nil {
		return err
	}
	return f(client)
}

// Run runs one command on a node; see Client.Run.
func (p *Pool) Run(ctx context.Context, cfg Config, cmd Command) (r Result, err error) {
	err = p.Do(ctx, cfg, func(c *Client) error { r, err = c.Run(ctx, cmd); return err })
	return r, err
}

// client returns the node's client, dialled by one caller only.
func (p *Pool) client(ctx context.Context, cfg Config) (*Client, error) {
	p.mu.Lock()
	at := p.nodes[cfg.Node]
	if at == nil {
		at = &place{turn: make(chan struct{}, 1)}
		at.turn <- struct{}{}
		p.nodes[cfg.Node] = at
	}
	p.mu.Unlock()
	select {
	case <-at.turn:
	case <-ctx.Done():
		return nil, cfg.wrap("wait for the connection", fromContext(ctx))
	}
	defer func() { at.turn <- struct{}{} }()
	if p.isClosed() {
		return nil, cfg.wrap("connect", errkind.New(errkind.Interrupted, "the pool is closed"))
	}
	if at.client != nil && at.client.cfg.same(cfg) {
		return at.client, nil
	}
	if at.client != nil {
		_ = at.client.Close()
		at.client = nil
	}
	if cfg.Network == nil {
		cfg.Network = p.net
	}
	client, err := Dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	at.client = client
	return client, nil
}

func (p *Pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Close ends every connection and refuses further work. Commands that run end
// with an error.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	places := make([]*place, 0, len(p.nodes))
	for _, at := range p.nodes {
		places = append(places, at)
	}
	p.mu.Unlock()
	var errs []error
	for _, at := range places {
		<-at.turn
		if at.client != nil {
			errs = append(errs, at.client.Close())
			at.client = nil
		}
		at.turn <- struct{}{}
	}
	return errors.Join(errs...)
}
