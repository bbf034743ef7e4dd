// SPDX-License-Identifier: Apache-2.0

package networktest

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/network"
)

// Addresses of the devices in the tests of a board.
var (
	nodeAt = netip.MustParseAddr("10.77.1.11")
	bmcAt  = netip.MustParseAddr("10.78.1.11")
	ctlAt  = netip.MustParseAddr("10.77.0.2")
	goneAt = netip.MustParseAddr("10.77.1.99") // nobody
)

// RunBoard checks a board: Run on one of its devices, and what is between
// devices. open is called for every test.
func RunBoard(t *testing.T, open func() network.Board) {
	t.Helper()
	Run(t, nodeAt.String(), func() network.Network { return open().At(nodeAt) })
	for _, c := range []struct {
		name string
		run  func(*testing.T, network.Board)
	}{
		{"streams show site addresses", streamAddresses},
		{"datagrams show site addresses", datagramAddresses},
		{"every device has its own ports", ownPorts},
		{"an address of nobody", testNobody},
		{"datagrams to and from a device that is away", lostDatagrams},
		{"a dial waits for a device that comes back", waitFor},
		{"a cable and power are two things", cableAndPower},
		{"a device that lost power knows no old connection", testReset},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open())
		})
	}
}

func listenTCP(t *testing.T, n network.Network, addr string) net.Listener {
	t.Helper()
	l, err := n.Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func listenPackets(t *testing.T, n network.Network, addr string) net.PacketConn {
	t.Helper()
	p, err := n.ListenPacket(t.Context(), "udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// joinPair connects two devices.
func joinPair(t *testing.T, from network.Network, l net.Listener) (client, server net.Conn) {
	t.Helper()
	c, err := from.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), s.Close() })
	return c, s
}

func streamAddresses(t *testing.T, b network.Board) {
	l := listenTCP(t, b.At(bmcAt), ":443")
	if got := l.Addr().String(); got != "10.78.1.11:443" {
		t.Errorf("listens on %s", got)
	}
	c, s := joinPair(t, b.At(ctlAt), l)
	if c.RemoteAddr().String() != "10.78.1.11:443" || s.LocalAddr().String() != "10.78.1.11:443" ||
		!strings.HasPrefix(c.LocalAddr().String(), "10.77.0.2:") || c.LocalAddr().String() != s.RemoteAddr().String() {
		t.Errorf("%v -> %v is seen as %v -> %v", c.LocalAddr(), c.RemoteAddr(), s.RemoteAddr(), s.LocalAddr())
	}
}

func datagramAddresses(t *testing.T, b network.Board) {
	server, relay := listenPackets(t, b.At(ctlAt), "10.77.0.2:67"), listenPackets(t, b.At(bmcAt), "0.0.0.0:67")
	_, _ = relay.WriteTo([]byte("ask"), server.LocalAddr())
	buf := make([]byte, 16)
	n, from, err := server.ReadFrom(buf)
	if err != nil || string(buf[:n]) != "ask" || from.String() != "10.78.1.11:67" {
		t.Fatalf("%q from %v: %v", buf[:n], from, err)
	}
	_, _ = server.WriteTo([]byte("told"), from)
	if n, from, err = relay.ReadFrom(buf); err != nil || string(buf[:n]) != "told" || from.String() != "10.77.0.2:67" {
		t.Errorf("%q from %v: %v", buf[:n], from, err)
	}
	c, err := b.At(nodeAt).Dial(t.Context(), "udp", "10.77.0.2:67")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = c.Write([]byte("ping"))
	if _, from, err = server.ReadFrom(buf); err != nil || from.String() != c.LocalAddr().String() || !strings.HasPrefix(from.String(), "10.77.1.11:") {
		t.Errorf("from %v, sent from %v: %v", from, c.LocalAddr(), err)
	}
}

func ownPorts(t *testing.T, b network.Board) {
	for _, a := range []netip.Addr{nodeAt, bmcAt, ctlAt} {
		for _, port := range []string{"22", "8443"} {
			if got := listenTCP(t, b.At(a), "0.0.0.0:"+port).Addr().String(); got != a.String()+":"+port {
				t.Errorf("%v listens on %s", a, got)
			}
		}
	}
	if _, err := b.At(nodeAt).Listen(t.Context(), "tcp", goneAt.String()+":22"); !errors.Is(err, syscall.EADDRNOTAVAIL) {
		t.Errorf("listen on an address of nobody: %v", err)
	}
}

func testNobody(t *testing.T, b network.Board) {
	began := time.Now()
	_, err := b.At(ctlAt).Dial(t.Context(), "tcp", goneAt.String()+":443")
	if took := time.Since(began); !errors.Is(err, syscall.EHOSTUNREACH) || took < 3*time.Second || took > 10*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err = b.At(ctlAt).Dial(ctx, "tcp", goneAt.String()+":443"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a dial within 20 ms: %v", err)
	}
	b.At(goneAt)
	if _, err = b.At(ctlAt).Dial(t.Context(), "tcp", goneAt.String()+":443"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
}

func lostDatagrams(t *testing.T, b network.Board) {
	server, client := listenPackets(t, b.At(bmcAt), ":623"), listenPackets(t, b.At(ctlAt), ":0")
	for i, away := range []bool{true, false} {
		if b.Attach(bmcAt); away {
			b.Detach(bmcAt)
		}
		if _, err := client.WriteTo([]byte{byte(i)}, server.LocalAddr()); err != nil {
			t.Errorf("sending to a device that is away: %v", err)
		}
		if away {
			_, _ = server.WriteTo([]byte{9}, client.LocalAddr())
		}
	}
	_, _ = client.WriteTo([]byte{7}, net.UDPAddrFromAddrPort(netip.AddrPortFrom(goneAt, 623)))
	buf := make([]byte, 1)
	if _, _, err := server.ReadFrom(buf); err != nil || buf[0] != 1 {
		t.Errorf("got datagram %d: %v", buf[0], err)
	}
	_ = client.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, from, err := client.ReadFrom(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got a datagram of %v: %v", from, err)
	}
}

func waitFor(t *testing.T, b network.Board) {
	l := listenTCP(t, b.At(bmcAt), ":443")
	b.Detach(bmcAt)
	time.AfterFunc(1500*time.Millisecond, func() { b.Attach(bmcAt) })
	c, s := joinPair(t, b.At(ctlAt), l)
	if _, err := c.Write([]byte("x")); err != nil {
		t.Error(err)
	}
	if n, err := s.Read(make([]byte, 1)); n != 1 {
		t.Error(err)
	}
}

func cableAndPower(t *testing.T, b network.Board) {
	n := b.At(bmcAt)
	l := listenTCP(t, n, ":443")
	dial := func(up bool) error {
		patience := 100 * time.Millisecond // nothing comes
		if up {
			patience = 20 * time.Second
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c, err := b.At(ctlAt).Dial(ctx, "tcp", l.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	cable := n.(network.Pluggable)
	for _, step := range []struct {
		name string
		do   func()
		up   bool
	}{
		{"at first", func() {}, true},
		{"unplugged", func() { cable.Plug(false) }, false},
		{"without power too", func() { b.Detach(bmcAt) }, false},
		{"plugged in without power", func() { cable.Plug(true) }, false},
		{"looked at without power", func() { b.At(bmcAt) }, false},
		{"with power", func() { b.Attach(bmcAt) }, true},
	} {
		step.do()
		if err := dial(step.up); (err == nil) != step.up {
			t.Errorf("%s: %v", step.name, err)
		}
	}
}

func testReset(t *testing.T, b network.Board) {
	c, s := joinPair(t, b.At(ctlAt), listenTCP(t, b.At(bmcAt), ":443"))
	b.Detach(bmcAt)
	_, _ = s.Write([]byte("lost"))
	_ = s.Close()
	b.Attach(bmcAt)
	if n, err := c.Read(make([]byte, 10)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read %d bytes: %v", n, err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
		t.Errorf("write: %v", err)
	}
}
