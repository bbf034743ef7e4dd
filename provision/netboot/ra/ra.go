// SPDX-License-Identifier: Apache-2.0

// Package ra answers IPv6 router solicitations with an empty advertisement:
// router lifetime 0, no prefix, no options. It offers no router and no address,
// and is sent for one reason: iPXE waits 13 seconds for any advertisement before
// it continues with its IPv4 boot. It is sent on request only, on one interface.
package ra

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// EventAnswer is the word of the evidence: a known node was answered.
const EventAnswer = "empty-advertisement"

// minInterval is the least time between two advertisements. All nodes hear each of
// them, and iPXE asks again after 250 ms: a storm of solicitations costs no more
// than twenty small multicasts a second.
const minInterval = 50 * time.Millisecond

// reportEvery is the least time between two pieces of evidence for one node.
const reportEvery = 10 * time.Second

// maxHops is what a neighbour's packet must have: RFC 4861 section 6.1.1.
const maxHops = 255

// Server answers on one interface. Open, then Serve once.
type Server struct {
	conn     *ipv6.PacketConn
	ifi      *net.Interface
	source   boot.Source
	recorder boot.Recorder

	sent         time.Time              // last advertisement; owned by Serve
	lastRecorded map[addr.MAC]time.Time // owned by Serve
}

// Open opens the raw socket on the interface. It needs CAP_NET_RAW and IPv6.
func Open(ctx context.Context, ifname string, src boot.Source, w boot.Recorder) (*Server, error) {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil, errkind.New(errkind.Unsupported, "router advertisement: interface %s: %w", ifname, err)
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) {
			err = unix.SetsockoptString(int(fd), unix.SOL_SOCKET, unix.SO_BINDTODEVICE, ifname)
		})
		return errors.Join(cerr, err)
	}}
	pc, err := lc.ListenPacket(ctx, "ip6:ipv6-icmp", "::")
	if err != nil {
		return nil, errkind.New(errkind.Unsupported, "router advertisement: raw ICMPv6 socket on %s: %w", ifname, err).
			Do("Run as root with IPv6 on the boot interface, or leave router_advertisement out of the network's dhcp block.")
	}
	s := &Server{conn: ipv6.NewPacketConn(pc), ifi: ifi, source: src, recorder: w, lastRecorded: map[addr.MAC]time.Time{}}
	if err := s.prepare(); err != nil {
		pc.Close()
		return nil, errkind.New(errkind.Unsupported, "router advertisement on %s: %w", ifname, err)
	}
	return s, nil
}

func (s *Server) prepare() error {
	var f ipv6.ICMPFilter
	f.SetAll(true)
	f.Accept(ipv6.ICMPTypeRouterSolicitation)
	return errors.Join(
		s.conn.SetICMPFilter(&f),
		s.conn.SetControlMessage(ipv6.FlagHopLimit, true),
		s.conn.JoinGroup(s.ifi, &net.UDPAddr{IP: net.IPv6linklocalallrouters}),
		s.conn.SetMulticastInterface(s.ifi),
		s.conn.SetMulticastHopLimit(maxHops),
		s.conn.SetMulticastLoopback(false))
}

// Close closes the socket of a server that is not served.
func (s *Server) Close() error { return s.conn.Close() }

// Serve answers until ctx is done and then returns nil.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	defer s.conn.Close()
	b := make([]byte, 1500)
	for {
		n, cm, from, err := s.conn.ReadFrom(b)
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return errkind.New(errkind.Internal, "router advertisement: socket closed: %w", err)
		}
		if err != nil || cm == nil || cm.HopLimit != maxHops {
			continue
		}
		if mac, ok := parseSolicitation(b[:n], from); ok {
			s.answer(mac, time.Now())
		}
	}
}

func (s *Server) answer(mac addr.MAC, now time.Time) {
	var err error
	if now.Sub(s.sent) >= minInterval {
		dst := &net.IPAddr{IP: net.IPv6linklocalallnodes, Zone: s.ifi.Name}
		_, err = s.conn.WriteTo(packAdvertisement(), nil, dst)
		s.sent = now
	}
	c, known := s.source.ByMAC(mac)
	if !known || now.Sub(s.lastRecorded[mac]) < reportEvery {
		return
	}
	s.lastRecorded[mac] = now
	e := boot.Evidence{Time: now, Node: c.Node, MAC: mac, Proto: boot.RA, What: EventAnswer, Detail: "router lifetime 0, no prefix"}
	if err != nil {
		e.Detail, e.Refused = fmt.Sprintf("not sent: %v", err), true
	}
	s.recorder.Record(e)
}

// packAdvertisement is RFC 4861 section 4.2 with hop limit 64 and all else zero. The
// kernel fills in the checksum.
func packAdvertisement() []byte {
	b := make([]byte, 16)
	b[0] = byte(ipv6.ICMPTypeRouterAdvertisement)
	b[4] = 64
	return b
}

// parseSolicitation checks a router solicitation (RFC 4861 section 6.1.1) and finds
// the MAC of its sender: in the source link-layer option, or in the link-local
// address; zero when neither says it.
func parseSolicitation(b []byte, from net.Addr) (mac addr.MAC, ok bool) {
	if len(b) < 8 || b[0] != byte(ipv6.ICMPTypeRouterSolicitation) || b[1] != 0 {
		return mac, false
	}
	for o := b[8:]; len(o) >= 2; {
		n := int(o[1]) * 8
		if n == 0 || n > len(o) {
			return mac, false
		}
		if o[0] == 1 && n == 8 {
			copy(mac[:], o[2:8])
		}
		o = o[n:]
	}
	if mac.IsZero() {
		mac = fromEUI64(from)
	}
	return mac, true
}

// fromEUI64 undoes RFC 4291 appendix A.
func fromEUI64(from net.Addr) (mac addr.MAC) {
	a, ok := from.(*net.IPAddr)
	if !ok {
		return mac
	}
	ip, _ := netip.AddrFromSlice(a.IP)
	b := ip.As16()
	if !ip.IsLinkLocalUnicast() || binary.BigEndian.Uint16(b[11:]) != 0xfffe {
		return mac
	}
	return addr.MAC{b[8] ^ 2, b[9], b[10], b[13], b[14], b[15]}
}
