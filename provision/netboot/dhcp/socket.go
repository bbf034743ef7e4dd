// SPDX-License-Identifier: Apache-2.0

package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/internal/errkind"
)

// receiveBuffer is asked of the kernel, so that a stall does not lose the first
// packets of a power-on storm: about 5,000 of 576 bytes with their overhead.
const receiveBuffer = 4 << 20

// listenUDP opens the UDP socket of the server on one interface. It sets neither
// SO_REUSEADDR nor SO_REUSEPORT: with them a second server on this controller
// would go unnoticed and take half of the packets. An empty interface listens on
// all, for tests and rehearsals on loopback.
func listenUDP(ctx context.Context, ifname string, port uint16) (*net.UDPConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		cerr := c.Control(func(fd uintptr) { err = prepareSocket(int(fd), ifname) })
		return errors.Join(cerr, err)
	}}
	pc, err := lc.ListenPacket(ctx, "udp4", net.JoinHostPort("0.0.0.0", strconv.Itoa(int(port))))
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
	// The forced form passes rmem_max and needs CAP_NET_ADMIN; else what is allowed.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return fmt.Errorf("receive buffer of %d bytes: %w", receiveBuffer, err)
		}
	}
	return nil
}

// wire sends replies on the path that each needs. Its methods may be called
// from many goroutines.
type wire struct {
	udp    *ipv4.PacketConn
	raw    *packet.Conn // nil: no packet socket, un-numbered clients get broadcasts
	source netip.AddrPort
	client uint16 // port of clients
}

// send sends one reply. A client without an address is sent a frame, since it
// answers no ARP; where that is not possible the reply is broadcast, which
// every client must take (RFC 2131 section 4.1).
func (w *wire) send(p Path, dst netip.Addr, mac net.HardwareAddr, b []byte) error {
	port := w.client
	switch {
	case p == ToRelay:
		port = w.source.Port()
	case p == ToHardware && w.raw != nil:
		if _, err := w.raw.WriteTo(buildFrame(w.source, netip.AddrPortFrom(dst, port), b), &packet.Addr{HardwareAddr: mac}); err == nil {
			return nil
		}
		fallthrough
	case p == ToHardware:
		dst = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(dst, port))
	if _, err := w.udp.WriteTo(b, &ipv4.ControlMessage{Src: w.source.Addr().AsSlice()}, to); err != nil {
		return fmt.Errorf("send to %s: %w", to, err)
	}
	return nil
}

// openRaw opens the packet socket for frames to un-numbered clients. Its filter
// drops all that it could receive: nobody reads it. (Protocol 0 would receive
// nothing too, and would send frames of EtherType 0.)
func openRaw(ifname string) (*packet.Conn, error) {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil, fmt.Errorf("interface %s: %w", ifname, err)
	}
	drop, err := bpf.Assemble([]bpf.Instruction{bpf.RetConstant{Val: 0}})
	if err != nil {
		return nil, fmt.Errorf("packet filter: %w", err)
	}
	c, err := packet.Listen(ifi, packet.Datagram, unix.ETH_P_IP, &packet.Config{Filter: drop})
	if err != nil {
		return nil, fmt.Errorf("packet socket on %s: %w", ifname, err)
	}
	return c, nil
}
