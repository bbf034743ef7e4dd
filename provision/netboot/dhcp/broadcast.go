// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"net"
	"net/netip"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// datagrams is a Watch's segment on a network that is not the operating system's and
// carries broadcasts: the port of clients on the controller's address. Such a
// network has no MACs.
type datagrams struct {
	conn net.PacketConn
	buf  []byte // of receive
}

func openBroadcast(ctx context.Context, n network.Network, self netip.Addr) (*datagrams, error) {
	if !network.Broadcasts(n) {
		return nil, errkind.New(errkind.Unsupported, "this network carries no broadcasts")
	}
	at := netip.AddrPortFrom(self, clientPort)
	conn, err := n.ListenPacket(ctx, "udp4", at.String())
	if err != nil {
		return nil, errkind.New(errkind.Refused, "listen on %s: %w", at, err).Do("Check that nothing else listens there.")
	}
	return &datagrams{conn: conn, buf: make([]byte, packetSize)}, nil
}

func (d *datagrams) broadcast(discover []byte) error {
	_, err := d.conn.WriteTo(discover, net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), serverPort)))
	return err
}

func (d *datagrams) receive() ([]byte, netip.Addr, addr.MAC, error) {
	n, from, err := d.conn.ReadFrom(d.buf)
	if err != nil {
		return nil, netip.Addr{}, addr.MAC{}, err
	}
	var src netip.Addr
	if u, ok := from.(*net.UDPAddr); ok {
		src = u.AddrPort().Addr().Unmap()
	}
	return d.buf[:n], src, addr.MAC{}, nil
}

// resolve finds nothing: there is no ARP.
func (d *datagrams) resolve(context.Context, netip.Addr) (mac addr.MAC) { return mac }

// Close ends a waiting receive.
func (d *datagrams) Close() error { return d.conn.Close() }
