// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
)

// StillUnmanaged is what is left of the nodes that a plan left unmanaged: the plan of a
// run that was stopped may be older than the adoption of a node.
func StillUnmanaged(ctx context.Context, r state.Reader, list []plan.Unmanaged) (left []plan.Unmanaged, err error) {
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, u := range list {
		u.Nodes = slices.DeleteFunc(slices.Clone(u.Nodes), func(n string) bool { return known[n].Accepted || known[n].Adopted })
		if len(u.Nodes) > 0 {
			left = append(left, u)
		}
	}
	return left, nil
}
