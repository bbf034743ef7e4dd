// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// runChronyc is `chronyc -c tracking` of a node whose clock follows a time server
// (chrony 4.3, client.c); the clock of a virtual node is the rack's.
func runChronyc(_ context.Context, c call) int {
	if !slices.Contains(c.Argv, "-c") || !slices.Contains(c.Argv, "tracking") {
		return c.fail("this chronyc knows -c tracking alone")
	}
	now := c.n.cfg.Clock.Now()
	server := strings.ToUpper(fmt.Sprintf("%x", c.n.cfg.Address.AsSlice()))
	c.print(fmt.Sprintf("%s,%s,3,%d.000000000,0.000000021,-0.000000103,0.000002119,-7.313,0.000,0.012,0.000219,0.000101,64.3,Normal\n", server, c.n.cfg.Address, now.Unix()-31))
	return 0
}
