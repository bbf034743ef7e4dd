// SPDX-License-Identifier: Apache-2.0

package provision

import "runtime/debug"

// What a plan of many nodes may take before the garbage collector has to work
// harder: 12,500 nodes plan within it, loaded site included, without a collection or
// with one. It grows with the site, since what is in use then would leave no room.
const (
	planMemory        = 640 << 20 // bytes, of any site
	planMemoryPerNode = 48 << 10
)

// LimitMemory makes the garbage collector wait for as long as the program stays
// within what a plan of so many nodes takes, and no longer: nearly all that planning
// allocates lives to its end. A lower limit that the environment sets (GOMEMLIMIT)
// stays. The function that it returns puts back what was before.
func LimitMemory(nodes int) (restore func()) {
	percent := debug.SetGCPercent(400)
	limit := debug.SetMemoryLimit(-1) // only asks
	debug.SetMemoryLimit(min(limit, max(planMemory, int64(nodes)*planMemoryPerNode)))
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
