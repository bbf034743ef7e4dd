package rehearsal

import (
	"context"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/drift"
)

// Drift looks what is not as it was accepted.
func (l *Later) Drift(ctx context.Context, o provision.DriftOptions) (provision.Drift, error) {
	o.Now = l.t.clk.Now()
	fence, err := l.claim(ctx)
	if err != nil {
		return provision.Drift{}, err
	}
	return l.t.site.Drift(ctx, l.t.store, fence, o)
}

// DriftAccept takes nodes as they are now for how they are meant to be.
func (l *Later) DriftAccept(ctx context.Context, o provision.DriftOptions, reason string) ([]string, []drift.Unknown, error) {
	o.Now = l.t.clk.Now()
	fence, err := l.claim(ctx)
	if err != nil {
		return nil, nil, err
	}
	return l.t.site.DriftAccept(ctx, l.t.store, fence, o, "rehearsal", reason)
}

// claim makes this the owner of the state.
func (l *Later) claim(ctx context.Context) (state.Fence, error) {
	l.t.store.reopen(func(error) {})
	return l.t.store.Claim(ctx, "rehearsal")
}

// Adopt records running nodes as they are.
func (l *Later) Adopt(ctx context.Context, o provision.AdoptOptions) ([]provision.AdoptedNode, error) {
	o.Now = l.t.clk.Now()
	fence, err := l.claim(ctx)
	if err != nil {
		return nil, err
	}
	return l.t.site.Adopt(ctx, l.t.store, fence, o)
}

// LoseState throws the state away; the keys of the controller are left.
func (l *Later) LoseState() {
	l.t.store = &killer{Store: state.NewMemory(), next: 1}
}
