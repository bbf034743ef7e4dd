// SPDX-License-Identifier: Apache-2.0

package firmware

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
)

// bootServerPort is the port of boot servers (PXE 2.1, section 2.2.2).
const bootServerPort = 4011

// AddressServer is the DHCP server of a site that runs one of its own, beside which
// ironrail gives boot files only: in the broadcast domain of a relay, with an address for
// each MAC that it knows and no boot file.
type AddressServer struct {
	Address netip.Addr
	Of      func(addr.MAC) (netip.Prefix, bool)
}

// answer answers DISCOVER and REQUEST; nil for everything else.
func (s *AddressServer) answer(packet []byte) []byte {
	q, err := dhcpv4.FromBytes(packet)
	if err != nil || q.OpCode != dhcpv4.OpcodeBootRequest || len(q.ClientHWAddr) != 6 {
		return nil
	}
	a, ok := s.Of(addr.MAC(q.ClientHWAddr))
	kind, known := leasing(q, s.Address)
	if !ok || !known {
		return nil
	}
	r := leaseReply(q, kind, s.Address, a.Addr())
	r.Options[uint8(dhcpv4.OptionSubnetMask)] = net.CIDRMask(a.Bits(), 32)
	return r.ToBytes()
}

// leasing is the kind of a server's answer; false: there is none.
func leasing(q *dhcpv4.DHCPv4, server netip.Addr) (kind dhcpv4.MessageType, yes bool) {
	switch q.MessageType() {
	case dhcpv4.MessageTypeDiscover:
		return dhcpv4.MessageTypeOffer, true
	case dhcpv4.MessageTypeRequest:
		return dhcpv4.MessageTypeAck, q.ServerIdentifier().Equal(server.AsSlice())
	}
	return kind, false
}

// leaseReply is what a server answers that leases an address.
func leaseReply(q *dhcpv4.DHCPv4, kind dhcpv4.MessageType, server, lease netip.Addr) *dhcpv4.DHCPv4 {
	return &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootReply, HWType: q.HWType, TransactionID: q.TransactionID, Flags: q.Flags, ClientHWAddr: q.ClientHWAddr,
		YourIPAddr: lease.AsSlice(), Options: dhcpv4.Options{
			uint8(dhcpv4.OptionDHCPMessageType):    {byte(kind)},
			uint8(dhcpv4.OptionServerIdentifier):   server.AsSlice(),
			uint8(dhcpv4.OptionIPAddressLeaseTime): binary.BigEndian.AppendUint32(nil, 3600),
		}}
}

// proxied keeps an offer without an address, of a ProxyDHCP server (PXE 2.1, section 2.2).
func (x *exchange) proxied(a *dhcpv4.DHCPv4) bool {
	class := "PXEClient"
	if x.http {
		class = "HTTPClient"
	}
	if toAddr(a.YourIPAddr).IsValid() || !strings.HasPrefix(a.ClassIdentifier(), class) || fileOf(a) == "" || x.http && !strings.HasPrefix(fileOf(a), "http://") {
		return false
	}
	x.proxy = a
	return true
}

// withProxy takes the boot file from the ProxyDHCP server. As EDK2 does, UEFI asks it once
// more at the boot server's port when it has its address, PXE as iPXE and BIOS ROMs take
// what the offer says.
func (x *exchange) withProxy(ctx context.Context, l lease) (lease, error) {
	a := x.proxy
	if x.arch != 0 && !x.ipxe && !x.http {
		var err error
		if a, err = x.askBootServer(ctx, l.address.Addr(), toAddr(a.ServerIdentifier())); err != nil {
			return l, err
		}
	}
	from := leaseOf(a)
	l.server, l.file = from.server, from.file
	return l, nil
}

var errNoBootServer = errors.New("the boot server of the ProxyDHCP offer did not answer")

// askBootServer asks a boot server for the boot file.
func (x *exchange) askBootServer(ctx context.Context, self, server netip.Addr) (*dhcpv4.DHCPv4, error) {
	conn, err := network.Or(x.b.cfg.Net(self)).ListenPacket(ctx, "udp4", netip.AddrPortFrom(self, serverPort+1).String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	q := x.discover()
	q.Options[uint8(dhcpv4.OptionDHCPMessageType)] = []byte{byte(dhcpv4.MessageTypeRequest)}
	q.ClientIPAddr = self.AsSlice()
	b := make([]byte, maxPacket)
	for _, wait := range x.waits[:2] {
		_, _ = conn.WriteTo(q.ToBytes(), net.UDPAddrFromAddrPort(netip.AddrPortFrom(server, bootServerPort)))
		_ = conn.SetReadDeadline(time.Now().Add(wait))
		n, _, err := conn.ReadFrom(b)
		if err != nil {
			continue
		}
		if a, err := dhcpv4.FromBytes(b[:n]); err == nil && a.TransactionID == x.xid && a.MessageType() == dhcpv4.MessageTypeAck && fileOf(a) != "" {
			return a, nil
		}
	}
	return nil, errNoBootServer
}
