// SPDX-License-Identifier: Apache-2.0

package rack

import (
	"context"
	"net/netip"

	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/inventory"
)

// OpenIn opens the sockets of a rack in a block of addresses, and returns what closes them again
// and where the devices of the site are.
func OpenIn(ctx context.Context, inv *inventory.Inventory, block byte) (end func() error, places map[netip.Addr]netip.Addr, err error) {
	l, err := openIn(ctx, inv, Options{Seed: 3, Speed: 600}, block)
	if err != nil {
		return nil, nil, err
	}
	return func() error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return l.world.Run(ctx)
	}, l.board.Places(), nil
}

// SubnetHost is where the subnet manager of a fabric runs on the rack.
func SubnetHost(c *Client, fabric string) infiniband.Host { return subnetHost{c, fabric} }
