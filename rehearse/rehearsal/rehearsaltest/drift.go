// SPDX-License-Identifier: Apache-2.0

package rehearsaltest

import (
	"context"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/adopt"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// Drift looks what is not as it was accepted.
func (l *Later) Drift(ctx context.Context, o observe.DriftOptions) (observe.Drift, error) {
	o.Now = l.Clock.Now()
	fence, err := l.Claim(ctx)
	if err != nil {
		return observe.Drift{}, err
	}
	ob, err := l.Site.Observer(ctx, l.Store)
	if err != nil {
		return observe.Drift{}, err
	}
	return ob.Drift(ctx, l.Store, fence, o)
}

// DriftAccept takes nodes as they are now for how they are meant to be.
func (l *Later) DriftAccept(ctx context.Context, o observe.DriftOptions, reason string) ([]string, []drift.Unknown, error) {
	o.Now = l.Clock.Now()
	fence, err := l.Claim(ctx)
	if err != nil {
		return nil, nil, err
	}
	ob, err := l.Site.Observer(ctx, l.Store)
	if err != nil {
		return nil, nil, err
	}
	return ob.AcceptDrift(ctx, l.Store, fence, o, "rehearsal", reason)
}

// Claim makes this the owner of the state.
func (l *Later) Claim(ctx context.Context) (state.Fence, error) {
	l.Store.Reopen(func(error) {})
	return l.Store.Claim(ctx, "rehearsal")
}

// Adopt records running nodes as they are.
func (l *Later) Adopt(ctx context.Context, o adopt.Options) ([]adopt.Node, error) {
	o.Now = l.Clock.Now()
	fence, err := l.Claim(ctx)
	if err != nil {
		return nil, err
	}
	ad, err := l.Site.Adopter(ctx, l.Store)
	if err != nil {
		return nil, err
	}
	return ad.Adopt(ctx, l.Store, fence, o)
}

// LoseState throws the state away; the keys of the controller are left.
func (l *Later) LoseState() {
	l.Store = rehearsal.NewStore(state.NewMemory())
}
