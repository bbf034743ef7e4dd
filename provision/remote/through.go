// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"context"
	"net"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// Through is the network of a host that is logged in to: connections go through its sshd
// (RFC 4254, 7.2). Nothing listens there.
type Through struct{ Client *Client }

var _ network.Network = Through{}

// Dial implements network.Network.
func (t Through) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	on, err := t.Client.connected(ctx)
	if err != nil {
		return nil, t.Client.cfg.wrap("connect", err)
	}
	c, err := on.client.DialContext(ctx, network, addr)
	if err != nil && ctx.Err() == nil {
		err = t.Client.cfg.wrap("reach "+addr, errkind.New(errkind.Unreachable, "%w", err).Do("Check that the host there is up, and that this sshd forwards connections (AllowTcpForwarding)."))
	}
	return c, err
}

// Listen implements network.Network: it is not supported.
func (t Through) Listen(context.Context, string, string) (net.Listener, error) {
	return nil, t.unsupported()
}

// ListenPacket implements network.Network: it is not supported.
func (t Through) ListenPacket(context.Context, string, string) (net.PacketConn, error) {
	return nil, t.unsupported()
}

func (t Through) unsupported() error {
	return t.Client.cfg.wrap("listen", errkind.New(errkind.Unsupported, "nothing listens through a jump host"))
}
