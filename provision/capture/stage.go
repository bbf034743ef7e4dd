// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"context"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/validate/accept"
)

// captured is a stage whose nodes' consoles are read.
type captured struct {
	stage.Stage
	inv *inventory.Inventory
	r   *Recorder
}

// Around is the stage with the consoles of its nodes read: from the first step that may switch a node until
// the node is accepted. When a step of a node fails, the end of what the console printed meanwhile is kept.
func (r *Recorder) Around(inv *inventory.Inventory, st stage.Stage) stage.Stage {
	return captured{st, inv, r}
}

// Apply implements stage.Stage.
func (c captured) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	var seen []*recording
	for _, m := range run.Members() {
		if m.Kind != subject.Node {
			continue
		}
		if st.May.Has(plan.Power) || c.r.cfg.Begun[m.Name] {
			c.r.Begin(m.Name)
		}
		if x := c.r.of(m.Name); x != nil {
			x.watch(st.ID)
			seen = append(seen, x)
		}
	}
	err := c.Stage.Apply(ctx, run, st)
	var lines []string
	for _, x := range seen {
		lines = x.unwatch(st.ID)
	}
	if st.Subject.Kind != subject.Node {
		return err
	}
	if n, ok := c.inv.Node(st.Subject.Name); ok && err != nil && len(seen) == 1 {
		install.KeepTail(ctx, run, n, st, lines)
	}
	if err == nil && st.ID.Base() == accept.ID(st.Subject.Name) {
		c.r.End(st.Subject.Name)
	}
	return err
}
