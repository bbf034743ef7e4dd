// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"slices"

	"github.com/ironrail/ironrail/engine/plan"
)

// batches puts steps that switch nodes on into batches, each of which fits the limits as a whole.
type batches struct {
	limit func(resource string) int
	used  []map[string]int // by batch
}

// place puts a step into the first batch that has room for it, and returns its number, from 1.
func (b *batches) place(uses []plan.Use) int {
	i := slices.IndexFunc(b.used, func(used map[string]int) bool {
		return !slices.ContainsFunc(uses, func(u plan.Use) bool { return used[u.Resource]+u.Units > b.limit(u.Resource) })
	})
	if i < 0 {
		i, b.used = len(b.used), append(b.used, map[string]int{})
	}
	for _, u := range uses {
		b.used[i][u.Resource] += u.Units
	}
	return i + 1
}
