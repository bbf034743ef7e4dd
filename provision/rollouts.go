// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"math"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
)

// rollouts are how changes reach nodes in service, by role, and the role of each
// node. A role without a rollout block has the language's defaults.
func (s *Site) rollouts() (map[string]plan.Rollout, map[string]string) {
	nodes, roleOf := map[*inventory.Role]int{}, make(map[string]string, len(s.Inv.Nodes))
	for _, n := range s.Inv.Nodes {
		if n.Role != nil {
			nodes[n.Role]++
			roleOf[n.Name] = n.Role.Name
		}
	}
	all := map[string]plan.Rollout{}
	for r, n := range nodes {
		o := r.Rollout
		// A little less than the exact share: 10% of 30 is 3 and not 3.0000000000000004.
		batch := int(math.Ceil(float64(o.Batch)*float64(n)/100 - 1e-9))
		all[r.Name] = plan.Rollout{Given: o.Decl != hcl.Range{}, Canary: o.Canary, Batch: max(batch, 1), StopAfter: o.StopAfter, Decl: stage.Source(o.Decl)}
	}
	return all, roleOf
}
