// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/ironrail/ironrail/internal/errkind"
)

// tagged is how a ramdisk sends frames to the boot network, whose switch port passes those with a tag or
// those without.
type tagged struct {
	vlan int // of the boot network; 0: nothing is tagged, and the port is right
	node *Node
	off  atomic.Bool // the address is on the NIC itself
}

// set moves the address of the ramdisk.
func (t *tagged) set(tagged bool) error {
	t.off.Store(!tagged)
	return nil
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// through is dial by frames that the port may drop: nothing answers them.
func (t *tagged) through(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if t.vlan != 0 && t.off.Load() != t.node.portUntagged() {
			<-ctx.Done()
			return nil, errkind.New(errkind.Timeout, "dial %s: %w", address, context.Cause(ctx))
		}
		return dial(ctx, network, address)
	}
}
