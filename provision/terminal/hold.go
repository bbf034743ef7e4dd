// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"context"
	"os"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/direct"
	"github.com/ironrail/ironrail/provision/onrecord"
)

// holdFresh is how long what was read of a hold is taken to be so.
const holdFresh = time.Second

// holdReader reads who has a node on hold while this process does not own the state: from its file where that
// has changed, or from a process that owns it for a while. It is used by one goroutine.
type holdReader struct {
	site onrecord.Site
	last *state.Hold // as it was read last
	at   time.Time   // when
	file time.Time   // when the state's file had been changed by then
}

// read returns the hold of a node; nil where there is none. While nobody can say, such as when another process
// works on the state for a moment, it is as it was read last.
func (h *holdReader) read(ctx context.Context, node string) (*state.Hold, error) {
	if time.Since(h.at) < holdFresh {
		return h.last, nil
	}
	h.at = time.Now()
	owned, err := onrecord.AskOwner(h.site.State, func(c *control.Client) error {
		y, err := c.Why(ctx, node)
		if err == nil {
			h.last = y.Node.Hold
		}
		return err
	})
	if owned || err != nil {
		return h.last, nil //nolint:nilerr // as the last one
	}
	var changed time.Time // zero: it is read each time, as where the file is a copy, which may be old
	if info, err := os.Stat(onrecord.Place{Folder: h.site.State}.File()); err == nil && onrecord.EtcdOf(h.site.Inv) == nil {
		changed = info.ModTime()
		if changed.Equal(h.file) {
			return h.last, nil
		}
	}
	_ = h.site.WithState(ctx, func(r state.Reader) error {
		now, err := direct.HoldOf(ctx, r, node)
		if err == nil {
			h.last, h.file = now, changed
		}
		return err
	})
	return h.last, nil
}
