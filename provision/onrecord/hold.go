// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
)

// Marker puts nodes of a site on hold and releases them: through the owner of the state, or
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
	write func(context.Context, state.Store, state.Fence, string, state.Hold) error) (err error) {
	owned, err := AskOwner(m.Place.Folder, func(c *control.Client) error {
		return ask(c, ctx, node, control.HoldRequest{By: h.By, Reason: h.Reason})
	})
	if owned || err != nil {
		return err
	}
	o, err := m.Place.Own(ctx, m.Command, false, m.Now())
	if err != nil {
		return err // such as a run that began just now
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	if m.Claimed != nil {
		if err := m.Claimed(ctx, o.Store, o.Fence); err != nil {
			return err
		}
	}
	return write(ctx, o.Store, o.Fence, node, h)
}
