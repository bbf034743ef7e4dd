// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
)

// Marker changes what is known of nodes in passing, such as their holds: through the owner of the state, or
// in the state, which it owns for that moment.
type Marker struct {
	Place   Place
	Command string // as the owner is called: serve
	Now     func() time.Time
	// Claimed is called with a state that this process owns for the moment, before it is
	// changed; nil: nothing is.
	Claimed func(context.Context, state.Store, state.Fence) error
}

// Hold stops all automation on a node, now and in later runs.
func (m Marker) Hold(ctx context.Context, node, by, reason string) error {
	return m.mark(ctx, node, state.Hold{By: by, Reason: reason, At: m.Now().UTC()}, (*control.Client).Hold, state.HoldNode)
}

// Release lets a held node go again; without a run one that is quarantined as well.
func (m Marker) Release(ctx context.Context, node, by string) error {
	return m.mark(ctx, node, state.Hold{By: by, At: m.Now().UTC()}, (*control.Client).Release, state.ReleaseNode)
}

func (m Marker) mark(ctx context.Context, node string, h state.Hold, ask func(*control.Client, context.Context, string, control.HoldRequest) error,
	write func(context.Context, state.Store, state.Fence, string, state.Hold) error) error {
	owned, err := AskOwner(m.Place.Folder, func(c *control.Client) error {
		return ask(c, ctx, node, control.HoldRequest{By: h.By, Reason: h.Reason})
	})
	if owned || err != nil {
		return err
	}
	return m.Own(ctx, func(s state.Store, f state.Fence) error { return write(ctx, s, f, node, h) })
}

// Own owns the state for the time of f, without a control socket. It is an OwnedError while another process
// owns it, such as a run that began just now.
func (m Marker) Own(ctx context.Context, f func(state.Store, state.Fence) error) error {
	o, err := m.Place.Own(ctx, m.Command, false, m.Now())
	if err != nil {
		return err
	}
	if m.Claimed != nil {
		err = m.Claimed(ctx, o.Store, o.Fence)
	}
	if err == nil {
		err = f(o.Store, o.Fence)
	}
	return errors.Join(err, o.Close())
}
