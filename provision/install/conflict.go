// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/hub"
)

// partAddress is what of a node is blamed when another machine speaks for it.
const partAddress = "boot network address"

// blameConflict ends the attempt of a node that another machine speaks for too, and
// says which; other errors pass as they are. It records under a context of its own:
// that of the step may be over.
func (s *Stage) blameConflict(ctx context.Context, run stage.Run, n *inventory.Node, err error) error {
	conflict, ok := errors.AsType[*hub.ConflictError](err)
	if !ok {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: partAddress}}, Cause: conflict.Cause,
		Evidence: conflict.Evidence, Action: conflict.Action()}
	return errors.Join(run.Blame(ctx, f), s.phase(ctx, run, n, Ended, conflict.Cause), err)
}

// takenAddress is the conflict of a node that was seen to boot and whose address
// another machine answers for, so that its agent cannot call.
func (s *Stage) takenAddress(n *inventory.Node, at Attempt) (hub.ConflictError, bool) {
	c, ok := s.w.Boots.ByAddress(n.Address)
	if s.w.OtherOwner == nil || !ok || len(s.w.Evidence(n.Name, at.Opened)) == 0 {
		return hub.ConflictError{}, false
	}
	mac, other := s.w.OtherOwner(c)
	return hub.OtherMAC(c, mac), other
}
