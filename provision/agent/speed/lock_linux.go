// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"context"
	"net"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/burn"
)

const (
	// lockName is a socket in the abstract namespace (unix(7)): it is gone with its process, and
	// there is no file that could stay on a node of others.
	lockName = "@ironrail-speed"
	// lockWait is how long measurements and a burn-in that nobody waits for any more may take to end.
	lockWait = 3 * time.Minute
)

// Lock waits until nothing of ours loads this node.
func (Host) Lock(ctx context.Context) (func(), error) {
	for began := wall.Now(); ; {
		if !burn.IsRunning() {
			if l, err := new(net.ListenConfig).Listen(ctx, "unix", lockName); err == nil {
				return func() { _ = l.Close() }, nil
			}
		}
		if err := wall.Sleep(ctx, time.Second/2); err != nil || wall.Now().Sub(began) > lockWait {
			return nil, errkind.New(errkind.Refused, "other measurements, or a burn-in, run on this node, and did not end in %s", lockWait).
				Do("Look for ironrail-agent, dcgmi or rvs on the node, end it, and apply again.")
		}
	}
}
