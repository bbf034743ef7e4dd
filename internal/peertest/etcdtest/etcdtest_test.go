// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"strings"
	"testing"
	"time"
)

// awaitSick waits until a member no longer answers that it is healthy.
func awaitSick(t *testing.T, c *Cluster, i int) {
	t.Helper()
	for end := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		if health, err := c.health(i); err != nil || !strings.Contains(health, `"true"`) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("member %s is still healthy", name(i))
		}
	}
}

// TestPeerCluster: what the fixture does to a member is seen at that member, and at no
// other while two are left.
func TestPeerCluster(t *testing.T) {
	t.Parallel()
	c := Start(t)
	c.Isolate(0)
	awaitSick(t, c, 0)
	c.Await(1)
	c.Rejoin(0)
	c.Await(0)
	c.Kill(1)
	awaitSick(t, c, 1)
	c.Stop(2)
	awaitSick(t, c, 2)
	awaitSick(t, c, 0) // one of three is no quorum
	c.Continue(2)
	c.Await(0)
	c.Restart(1)
	c.CutClients(2, true)
	c.Await(2) // for the other members it is there
}
