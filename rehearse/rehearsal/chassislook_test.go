// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/rehearse/rehearsal/rehearsaltest"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
)

// TestLookAtChassis: what a BMC says of a part is found while it is so, and what its event log has
// of it since acceptance stays found; a node that is on hold is left alone.
func TestLookAtChassis(t *testing.T) {
	t.Parallel()
	const node = "r02-u01"
	after(t, func(ctx context.Context, l *rehearsaltest.Later) error {
		v, _ := l.World.Node(node)
		var memory observe.ChassisMemory
		for _, x := range []struct {
			name  string
			do    func()
			want  string
			asked int
		}{
			{"as accepted", func() {}, "", 8},
			{"hot", func() { v.Chassis().WarmAir(47) }, "inlet air, event log: Temperature", 8},
			{"cool again", func() { v.Chassis().WarmAir(chassis.CoolAir) }, "event log: Temperature", 8},
			{"once more", func() {}, "event log: Temperature", 8},
			{"on hold", func() {
				fence, err := l.Claim(ctx)
				if err == nil {
					err = state.HoldNode(ctx, l.Store, fence, node, state.Hold{By: "ann"})
				}
				if err != nil {
					t.Error(err)
				}
			}, "", 7},
		} {
			x.do()
			time.Sleep(time.Minute)
			ob, err := l.Site.Observer(ctx, l.Store)
			if err != nil {
				return err
			}
			c, err := ob.LookAtChassis(ctx, l.Store, &memory)
			if err != nil {
				return err
			}
			var parts []string
			for _, f := range c.Faults[node] {
				parts = append(parts, f.Part)
			}
			if got := strings.Join(parts, ", "); got != x.want || c.Asked != x.asked || len(c.Silent) > 0 || len(c.Faults) > 1 {
				t.Errorf("%s: found %q, want %q; %+v", x.name, got, x.want, c)
			}
		}
		return nil
	})
}
