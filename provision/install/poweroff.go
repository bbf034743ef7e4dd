// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
)

// errOff ends a wait for a node that was switched off meanwhile, by hand, by a
// breaker, by its own protection.
var errOff = errors.New("the node has no power")

// powerLook is how often the BMC of a node that is silent is asked for its power,
// and how long it has to answer. Power that is found off twice is off: once may be
// the middle of a power cycle.
const (
	powerLook     = time.Minute
	powerLookLast = 20 * time.Second
)

// isOff reports whether the BMC says that the node has no power. A BMC that does
// not answer says nothing.
func (s *Stage) isOff(ctx context.Context, n *inventory.Node) bool {
	ctx, cancel := context.WithTimeout(ctx, powerLookLast)
	defer cancel()
	control, err := s.control(ctx, n)
	if err != nil {
		return false
	}
	state, err := control.PowerState(ctx)
	return err == nil && state == bmc.PowerOff
}

// switchedOff reports whether a live attempt fails because the node was
// switched off since: then a new one has to switch it on, for what was done of the
// old one is not done again.
func (s *Stage) switchedOff(ctx context.Context, run stage.Run, n *inventory.Node) bool {
	off := s.isOff(ctx, n)
	if off {
		run.Emit(event.Event{Type: event.Note, Text: "the power of " + n.Name + " is off; a fresh boot attempt switches it on"})
	}
	return off
}

// powerWatch looks after the power of a node that is waited for.
type powerWatch struct {
	asked time.Time
	off   bool // when it was asked last
}

// isPowerOff reports whether the power of a node that is silent since some time is off
// for longer than a power cycle takes. It asks the BMC once a minute at most.
func (w *powerWatch) isPowerOff(ctx context.Context, s *Stage, n *inventory.Node, silent, now time.Time) bool {
	if now.Sub(silent) < powerLook || now.Sub(w.asked) < powerLook {
		return false
	}
	before := w.off
	w.asked, w.off = now, s.isOff(ctx, n)
	return before && w.off
}

// noPower is why a node that was switched off did not reach its agent.
func noPower(d Diagnosis) Diagnosis {
	d.Part, d.Cause = "power", "its power is off: it was switched on for this boot, and something switched it off again"
	d.Action = "Ask who works on it, and look for an open breaker and at the BMC's event log; `ironrail apply` switches it on again."
	return d
}
