// SPDX-License-Identifier: Apache-2.0

package rehearsaltest

import (
	"context"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// Drift looks what is not as it was accepted.
func (l *Later) Drift(ctx context.Context, o provision.DriftOptions) (provision.Drift, error) {
	o.Now = l.Clock.Now()
	fence, err := l.Claim(ctx)
	if err != nil {
		return provision.Drift{}, err
	}
	return l.Site.Drift(ctx, l.Store, fence, o)
}

// DriftAccept takes nodes as they are now for how they are meant to be.
func (l *Later) DriftAccept(ctx context.Context, o provision.DriftOptions, reason string) ([]string, []drift.Unknown, error) {
	o.Now = l.Clock.Now()
	fence, err := l.Claim(ctx)
	if err != nil {
		return nil, nil, err
	}
	return l.Site.DriftAccept(ctx, l.Store, fence, o, "rehearsal", reason)
}

// Claim makes this the owner of the state.
func (l *Later) Claim(ctx context.Context) (state.Fence, error) {
	l.Store.Reopen(func(error) {})
	return l.Store.Claim(ctx, "rehearsal")
}

// Adopt records running nodes as they are.
func (l *Later) Adopt(ctx context.Context, o provision.AdoptOptions) ([]provision.AdoptedNode, error) {
	o.Now = l.Clock.Now()
	fence, err := l.Claim(ctx)
	if err != nil {
		return nil, err
	}
	return l.Site.Adopt(ctx, l.Store, fence, o)
}

// LoseState throws the state away; the keys of the controller are left.
func (l *Later) LoseState() {
	l.Store = rehearsal.NewStore(state.NewMemory())
}
