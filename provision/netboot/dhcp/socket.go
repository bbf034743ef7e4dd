// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/sockets"
)

// receiveBuffer is asked of the kernel, so that no packet of a power-on storm is lost: about 20,000
// of 576 bytes with their overhead. It is memory for as long as packets wait only.
const receiveBuffer = 16 << 20

// listenUDP opens the UDP socket of the server on one interface. It sets neither
// SO_REUSEADDR nor SO_REUSEPORT: with them a second server on this controller
// would go unnoticed and take half of the packets. An empty interface listens on
// all, for tests and rehearsals on loopback.
func listenUDP(ctx context.Context, kept *sockets.Kept, ifname string, port uint16) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) { err = prepareSocket(int(fd), ifname) })
		return errors.Join(cerr, err)
	}}
	at := netip.AddrPortFrom(netip.IPv4Unspecified(), port)
	pc, err := kept.PacketConn(sockets.Where{Network: "udp", Address: at, Interface: ifname}, func() (net.PacketConn, error) { return lc.ListenPacket(ctx, "udp4", at.String()) })
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, errkind.New(errkind.Refused, "dhcp: UDP port %d on this controller is held by %s: %w", port, portHolder(port), err).
			Do("Stop the other DHCP server of this controller, or set the network's dhcp mode so that ironrail does not serve it.")
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return nil, errkind.New(errkind.Auth, "dhcp: open UDP port %d on %q: %w", port, ifname, err).
			Do("Run as root, or give the program CAP_NET_BIND_SERVICE and CAP_NET_RAW.")
	case err != nil:
		return nil, errkind.New(errkind.Unsupported, "dhcp: open UDP port %d on %q: %w", port, ifname, err).
			Do("Check that the controller's interface is named as in the inventory and is up.")
	}
	return pc.(*net.UDPConn), nil
}

func prepareSocket(fd int, ifname string) error {
	if ifname != "" {
		if err := unix.SetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, ifname); err != nil {
			return fmt.Errorf("bind to interface %s: %w", ifname, err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BROADCAST, 1); err != nil {
		return fmt.Errorf("allow broadcast: %w", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1); err != nil {
		return fmt.Errorf("count what the buffer does not hold: %w", err)
	}
	// The forced form passes rmem_max and needs CAP_NET_ADMIN; else what is allowed.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return fmt.Errorf("receive buffer of %d bytes: %w", receiveBuffer, err)
		}
	}
	return nil
}

// wire sends replies on the path that each needs. Several goroutines call send.
type wire struct {
	udp     *ipv4.PacketConn
	source  netip.AddrPort
	client  uint16 // port of clients
	control []byte // of every datagram: its source

	mu     sync.Mutex // guards frames, also while they are sent
	frames *frames    // nil: no packet socket, un-numbered clients get broadcasts
}

// newWire returns a wire without frames.
func newWire(udp *ipv4.PacketConn, source netip.AddrPort) *wire {
	return &wire{udp: udp, source: source, client: source.Port() + 1, control: (&ipv4.ControlMessage{Src: source.Addr().AsSlice()}).Marshal()}
}

// send sends replies. A client without an address is sent a frame, since it answers no ARP; where
// that is not possible the reply is broadcast, which every client must take (RFC 2131 section 4.1).
func (w *wire) send(replies []*outgoing) {
	framed := make([]*outgoing, 0, batch)
	datagrams := make([]*outgoing, 0, batch)
	for _, out := range replies {
		if out.path == ToHardware {
			framed = append(framed, out)
		} else {
			datagrams = append(datagrams, out)
		}
	}
	for _, out := range w.sendFrames(framed) {
		out.path, out.dst = ToBroadcast, netip.AddrFrom4([4]byte{255, 255, 255, 255})
		datagrams = append(datagrams, out)
	}
	w.sendDatagrams(datagrams)
}

// sendFrames returns the replies that could not be sent as frames.
func (w *wire) sendFrames(replies []*outgoing) (unsent []*outgoing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.frames == nil {
		return replies
	}
	for len(replies) > 0 {
		n, err := w.frames.send(replies[:min(batch, len(replies))], w.source, w.client)
		if err != nil {
			unsent = append(unsent, replies[0])
			n = 1
		}
		replies = replies[n:]
	}
	return unsent
}

func (w *wire) sendDatagrams(replies []*outgoing) {
	ms := make([]ipv4.Message, len(replies))
	for i, out := range replies {
		port := w.client
		if out.path == ToRelay {
			port = w.source.Port()
		}
		ms[i] = ipv4.Message{Buffers: [][]byte{out.message()}, OOB: w.control, Addr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(out.dst, port))}
	}
	for len(ms) > 0 {
		n, err := w.udp.WriteBatch(ms, 0)
		if err != nil { // of the first; the others are tried
			n, replies[0].err = 1, fmt.Errorf("send to %s: %w", ms[0].Addr, err)
		}
		ms, replies = ms[n:], replies[n:]
	}
}

// openFrames opens the packet socket for frames to un-numbered clients. Its filter
// drops all that it could receive: nobody reads it. (Protocol 0 would receive
// nothing too, and would send frames of EtherType 0.)
func openFrames(ifname string) (*packet.Conn, *frames, error) {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil, nil, fmt.Errorf("interface %s: %w", ifname, err)
	}
	drop, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
	if err != nil {
		return nil, nil, fmt.Errorf("packet filter: %w", err)
	}
	c, err := packet.Listen(ifi, packet.Datagram, unix.ETH_P_IP, &packet.Config{Filter: drop})
	if err != nil {
		return nil, nil, fmt.Errorf("packet socket on %s: %w", ifname, err)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("packet socket on %s: %w", ifname, err), c.Close())
	}
	return c, &frames{conn: raw, ifindex: int32(ifi.Index)}, nil
}

// dropsSize holds what the kernel says of dropped packets beside a packet (SO_RXQ_OVFL of
// socket(7)): one control message with 32 bits.
var dropsSize = unix.CmsgSpace(4)

// dropsOf returns how many packets the kernel has dropped since the last call, since the socket's
// buffer was full. It says so with each packet behind them.
func (a *answers) dropsOf(ms []ipv4.Message) uint64 {
	before := a.drops
	for _, m := range ms {
		b := m.OOB[:m.NN]
		if len(b) < dropsSize {
			continue
		}
		h, data, _, err := unix.ParseOneSocketControlMessage(b)
		if err == nil && h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL && len(data) >= 4 {
			a.drops = binary.NativeEndian.Uint32(data)
		}
	}
	return uint64(a.drops - before)
}
