// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"io"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/selection"
)

// Console copies what a node prints on its serial console to w until ctx ends; up
// is called each time that the console is open. It opens a session of its own at
// the node's BMC, besides that of a run. See bmc.Console.
func (s *Site) Console(ctx context.Context, r state.Reader, node string, w io.Writer, up func()) error {
	if _, err := selection.CheckNames(s.Inv, []string{node}); err != nil {
		return err
	}
	n, _ := s.Inv.Node(node)
	t, err := s.access().BMCs(reach.Facts(r)).Target(n, n.Serial)
	if err != nil {
		return err
	}
	return bmc.Console(ctx, t, bmc.Options{Network: s.network}, w, up)
}
