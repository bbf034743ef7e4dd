// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
)

// ether is a Watch's segment on an interface of this controller: frames, since the
// port of clients may be in use here and answers to others are to be heard too.
type ether struct {
	ifi  *net.Interface
	self netip.Addr
	conn *packet.Conn
	buf  []byte // of hear
}

func openEther(ifname string, self netip.Addr) (*ether, error) {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil, errkind.New(errkind.Unsupported, "interface %s: %w", ifname, err).
			Do("Check that the controller's interface is named as in the inventory and is up.")
	}
	filter, err := bpf.Assemble(repliesOnly())
	if err != nil {
		return nil, errkind.New(errkind.Internal, "packet filter: %w", err)
	}
	conn, err := packet.Listen(ifi, packet.Datagram, unix.ETH_P_IP, &packet.Config{Filter: filter})
	if err != nil {
		return nil, errkind.New(errkind.Auth, "packet socket on %s: %w", ifname, err).Do("Run as root, or give the program CAP_NET_RAW.")
	}
	return &ether{ifi: ifi, self: self, conn: conn, buf: make([]byte, packetSize)}, nil
}

// repliesOnly lets answers of DHCP servers through that come from outside: unfragmented
// IPv4, UDP, from port 67, with op BOOTREPLY. Images leave by the same interface at its
// full rate; none of that reaches us.
func repliesOnly() []bpf.Instruction {
	const drop = 255 // set below: the last instruction
	in := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.PACKET_OUTGOING, SkipTrue: drop},
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: drop},
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: drop},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: 0, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: serverPort, SkipTrue: drop},
		bpf.LoadIndirect{Off: 8, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 2, SkipTrue: drop},
		bpf.RetConstant{Val: packetSize},
		bpf.RetConstant{Val: 0},
	}
	for i, x := range in {
		if j, ok := x.(bpf.JumpIf); ok {
			j.SkipTrue = uint8(len(in) - 2 - i)
			in[i] = j
		}
	}
	return in
}

// broadcast sends a message from no address to all.
func (e *ether) broadcast(discover []byte) error {
	src := netip.AddrPortFrom(netip.IPv4Unspecified(), clientPort)
	dst := netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), serverPort)
	_, err := e.conn.WriteTo(buildFrame(src, dst, discover), &packet.Addr{HardwareAddr: broadcastMAC()})
	return err
}

func broadcastMAC() net.HardwareAddr { return net.HardwareAddr{255, 255, 255, 255, 255, 255} }

// receive waits for an answer to a client or to a relay.
func (e *ether) receive() ([]byte, netip.Addr, addr.MAC, error) {
	for {
		n, from, err := e.conn.ReadFrom(e.buf)
		if err != nil {
			return nil, netip.Addr{}, addr.MAC{}, err
		}
		msg, src := parseFrame(e.buf[:n], clientPort)
		if msg == nil {
			msg, src = parseFrame(e.buf[:n], serverPort)
		}
		var mac addr.MAC
		if a, ok := from.(*packet.Addr); ok && len(a.HardwareAddr) == len(mac) {
			mac = addr.MAC(a.HardwareAddr)
		}
		if msg != nil {
			return msg, src, mac, nil
		}
	}
}

// resolve asks by ARP (RFC 826), every half second until ctx ends. What cannot be
// asked has no answer.
func (e *ether) resolve(ctx context.Context, a netip.Addr) addr.MAC {
	return resolve(ctx, e.ifi, e.self, a)
}

func resolve(ctx context.Context, ifi *net.Interface, self, a netip.Addr) (mac addr.MAC) {
	conn, err := packet.Listen(ifi, packet.Datagram, unix.ETH_P_ARP, nil)
	if err != nil || len(ifi.HardwareAddr) != len(mac) {
		return mac
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	b := make([]byte, 64)
	for ctx.Err() == nil {
		if _, err := conn.WriteTo(arpRequest(addr.MAC(ifi.HardwareAddr), self, a), &packet.Addr{HardwareAddr: broadcastMAC()}); err != nil {
			return mac
		}
		_ = conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		for {
			n, _, err := conn.ReadFrom(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if err != nil {
				return mac
			}
			if who, ok := arpAnswer(b[:n], a); ok {
				return who
			}
		}
	}
	return mac
}

// arpRequest asks who has an address.
func arpRequest(mac addr.MAC, self, who netip.Addr) []byte {
	b := []byte{0, 1, 8, 0, 6, 4, 0, 1} // Ethernet, IPv4, request
	b = append(b, mac[:]...)
	b = append(b, self.AsSlice()...)
	b = append(b, 0, 0, 0, 0, 0, 0)
	return append(b, who.AsSlice()...)
}

// arpAnswer reads who has an address from an ARP reply.
func arpAnswer(b []byte, who netip.Addr) (mac addr.MAC, ok bool) {
	if len(b) < 28 || binary.BigEndian.Uint16(b[6:]) != 2 || netip.AddrFrom4([4]byte(b[14:18])) != who {
		return mac, false
	}
	return addr.MAC(b[8:14]), true
}

// Close ends a waiting hear.
func (e *ether) Close() error { return e.conn.Close() }
