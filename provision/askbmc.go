// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/reach"
)

// Look implements control.Backend.
func (b *Backend) Look(ctx context.Context, node string) (control.Look, error) {
	n, ok := b.run.site.Inv.Node(node)
	if !ok {
		return control.Look{}, unknownNode(b.run.site, node)
	}
	return reach.AskBMC(ctx, n, b.run.bmcs, b.run.site.access().Feeds(nil)), nil
}

// AskBMC asks a node's BMC, and its PDUs where they may tell more, while no run is
// active: it opens one session and closes it. It resolves the secrets of both.
func (s *Site) AskBMC(ctx context.Context, node string, r state.Reader) (control.Look, error) {
	s, err := s.Desired(ctx, r, nil)
	if err != nil {
		return control.Look{}, err
	}
	n, ok := s.Inv.Node(node)
	if !ok {
		return control.Look{}, unknownNode(s, node)
	}
	b := s.access().BMCs(reach.Facts(r))
	l := reach.AskBMC(ctx, n, b, s.access().Feeds(nil))
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return l, b.Pool.Close(end)
}
