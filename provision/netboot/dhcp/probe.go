package dhcp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/mdlayher/packet"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/provision/addr"
	"github.com/ironrail/ironrail/provision/errkind"
)

// Times of a probe. Servers with a ping check or a back-off of their own answer
// the second or third DISCOVER.
const (
	probeTime  = 3 * time.Second
	probeAgain = time.Second
)

// Probe looks for another DHCP server on the interface before ours answers
// anything: on this controller by binding its port, and on the wire with a
// DISCOVER from a random, locally administered MAC. Any server that answers is
// an error of kind Refused that names it. A server that answers only clients it
// knows cannot be found this way. It takes three seconds and is to be called
// before Open.
func Probe(ctx context.Context, ifname string) error {
	c, err := listen(ctx, ifname, serverPort)
	if err != nil {
		return err
	}
	c.Close()
	found, err := discover(ctx, ifname)
	if err != nil {
		return fmt.Errorf("dhcp: look for other servers on %s: %w", ifname, err)
	}
	if len(found) == 0 {
		return nil
	}
	return errkind.New(errkind.Refused, "dhcp: another server answers on %s: %s", ifname, strings.Join(found, ", ")).
		Do("Stop that DHCP server or take it off this network; two servers would give nodes different answers at random.")
}

// discover sends DISCOVERs and returns a line for each server that answered.
func discover(ctx context.Context, ifname string) ([]string, error) {
	ifi, err := net.InterfaceByName(ifname)
	if err != nil {
		return nil, errkind.New(errkind.Unsupported, "interface %s: %w", ifname, err)
	}
	conn, err := packet.Listen(ifi, packet.Datagram, unix.ETH_P_IP, nil)
	if err != nil {
		return nil, errkind.New(errkind.Auth, "packet socket on %s: %w", ifname, err).Do("Run as root, or give the program CAP_NET_RAW.")
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	defer stop()

	mac, xid := probeIdentity()
	q := probePacket(mac, xid)
	end := time.Now().Add(probeTime)
	var found []string
	for again := time.Now(); time.Now().Before(end); again = again.Add(probeAgain) {
		if _, err := conn.WriteTo(q, &packet.Addr{HardwareAddr: net.HardwareAddr{255, 255, 255, 255, 255, 255}}); err != nil {
			return nil, errkind.New(errkind.Unreachable, "send DISCOVER: %w", err).Do("Check that the interface is up.")
		}
		until := again.Add(probeAgain)
		if until.After(end) {
			until = end
		}
		found, err = offers(conn, xid, until, found)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// offers reads until the deadline and adds the servers that answered xid.
func offers(conn *packet.Conn, xid dhcpv4.TransactionID, until time.Time, found []string) ([]string, error) {
	if err := conn.SetReadDeadline(until); err != nil {
		return found, err
	}
	b := make([]byte, packetSize)
	for {
		n, from, err := conn.ReadFrom(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return found, nil
		}
		if err != nil {
			return found, errkind.New(errkind.Unreachable, "read: %w", err)
		}
		msg, src := unframe(b[:n], clientPort)
		p, err := dhcpv4.FromBytes(msg)
		if err != nil || p.OpCode != dhcpv4.OpcodeBootReply || p.TransactionID != xid {
			continue
		}
		if line := serverLine(p, src, from); !slices.Contains(found, line) {
			found = append(found, line)
		}
	}
}

func serverLine(p *dhcpv4.DHCPv4, src netip.Addr, from net.Addr) string {
	id := toAddr(p.ServerIdentifier())
	if id.IsUnspecified() {
		id = src
	}
	line := id.String()
	if a, ok := from.(*packet.Addr); ok && len(a.HardwareAddr) == 6 {
		line += " at MAC " + a.HardwareAddr.String()
	}
	if set(p.YourIPAddr) {
		line += " (it offered " + toAddr(p.YourIPAddr).String() + ")"
	}
	return line
}

// probeIdentity draws a locally administered unicast MAC and a transaction.
func probeIdentity() (mac addr.MAC, xid dhcpv4.TransactionID) {
	rand.Read(mac[:])
	mac[0] = mac[0]&0xfc | 2
	rand.Read(xid[:])
	return mac, xid
}

// probePacket is a DISCOVER in its IPv4 frame, with the broadcast flag so that
// the answer reaches us whatever MAC it is for.
func probePacket(mac addr.MAC, xid dhcpv4.TransactionID) []byte {
	p := &dhcpv4.DHCPv4{OpCode: dhcpv4.OpcodeBootRequest, HWType: 1, TransactionID: xid, ClientHWAddr: mac.HardwareAddr(),
		Options: dhcpv4.Options{uint8(dhcpv4.OptionDHCPMessageType): {byte(dhcpv4.MessageTypeDiscover)}}}
	p.SetBroadcast()
	src := netip.AddrPortFrom(netip.IPv4Unspecified(), clientPort)
	dst := netip.AddrPortFrom(netip.AddrFrom4([4]byte{255, 255, 255, 255}), serverPort)
	return frame(src, dst, p.ToBytes())
}
