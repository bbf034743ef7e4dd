// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"context"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

var loopback = netip.MustParseAddr("127.0.0.1")

func session(long time.Duration) Session {
	return Session{Local: loopback, Token: [tokenBytes]byte{1, 2, 3}, Streams: 3, Long: long, Wait: 10 * time.Second}
}

// both runs both ends of a measurement.
func both(ctx context.Context, server, client Session) (a, b Seen, err, other error) {
	ready := make(chan Session, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a, err = Host{}.Serve(ctx, server, func(tcp, udp uint16) error {
			client.Peer, client.Echo = netip.AddrPortFrom(server.Local, tcp), udp
			ready <- client
			return nil
		})
		close(ready)
	}()
	if c, ok := <-ready; ok {
		b, other = Host{}.Measure(ctx, c)
	}
	<-done
	return a, b, err, other
}

// TestBoth: on real sockets, both ways.
func TestBoth(t *testing.T) {
	t.Parallel()
	s := session(300 * time.Millisecond)
	s.MTU = 65536 // of lo
	a, b, err, other := both(t.Context(), session(300*time.Millisecond), s)
	if err != nil || other != nil {
		t.Fatal(err, other)
	}
	for _, x := range []Seen{a, b} {
		if x.Received.Rate() < 1e6 || x.Sent.Segments == 0 || x.Sent.Again > x.Sent.Segments {
			t.Errorf("%+v", x)
		}
	}
	if a.Path != nil || b.Path == nil || b.Path.Asked != mostPacket || b.Path.Sent != mostPacket || b.Path.Received != mostPacket {
		t.Errorf("path %+v, %+v", a.Path, b.Path)
	}
}

// TestUnknownClient: who does not know the token gets nothing, not even an answer, and does not end
// the measurement.
func TestUnknownClient(t *testing.T) {
	t.Parallel()
	server := session(200 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	at := make(chan Session, 1)
	go func() {
		_, err := Host{}.Serve(ctx, server, func(tcp, udp uint16) error {
			s := server
			s.Peer, s.Echo, s.MTU = netip.AddrPortFrom(loopback, tcp), udp, 1500
			at <- s
			return nil
		})
		ended <- err
	}()
	wrong := <-at
	right := wrong
	wrong.Token[15] ^= 1
	if _, err := (Host{}).Measure(t.Context(), wrong); err == nil {
		t.Error("an unknown client is let in")
	}
	if p := wrong.probe(t.Context()); p.Sent != 0 || p.Received != 0 {
		t.Errorf("packets of an unknown client are answered: %+v", p)
	}
	conn, err := net.Dial("tcp", wrong.Peer.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(append(wrong.Token[:], control)); err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(conn); len(all) > 0 {
		t.Errorf("an unknown client reads %q, %v", all, err)
	}
	if _, err := (Host{}).Measure(t.Context(), right); err != nil {
		t.Error("who knows the token is not let in after unknown clients: ", err)
	}
	cancel()
	<-ended
}

// TestNobody: who waits in vain, or looks for nobody, ends with an error.
func TestNobody(t *testing.T) {
	t.Parallel()
	s := session(time.Second)
	s.Wait = 50 * time.Millisecond
	if _, err := (Host{}).Serve(t.Context(), s, func(uint16, uint16) error { return nil }); err == nil {
		t.Error("nobody came, and all is well")
	}
	if _, err := (Host{}).Serve(t.Context(), s, func(uint16, uint16) error { return io.ErrClosedPipe }); err == nil {
		t.Error("nobody reads where it listens, and all is well")
	}
	s.Peer = netip.AddrPortFrom(loopback, 1)
	if _, err := (Host{}).Measure(t.Context(), s); err == nil {
		t.Error("nobody listens, and all is well")
	}
}

// TestFind: an address is of the network that is asked for.
func TestFind(t *testing.T) {
	t.Parallel()
	if a, dev, err := (Host{}).Find(netip.MustParsePrefix("127.0.0.0/8"), netip.Addr{}); a != loopback || dev != "lo" || err != nil {
		t.Skip("no loopback here: ", a, dev, err)
	}
	if a, _, err := (Host{}).Find(netip.MustParsePrefix("127.0.0.0/8"), loopback); a != loopback || err != nil {
		t.Error(a, err)
	}
	for _, want := range []netip.Addr{{}, netip.MustParseAddr("240.0.0.1")} {
		if a, _, err := (Host{}).Find(netip.MustParsePrefix("240.0.0.0/8"), want); err == nil {
			t.Error("an address that is not here: ", a)
		}
	}
}

// TestLargest finds the edge between what passes and what does not.
func TestLargest(t *testing.T) {
	t.Parallel()
	for _, edge := range []int{0, 576, 1399, 1500, 8999, 9000} {
		want := edge
		if got := largest(t.Context(), 576, 9000, func(n int) bool { return n <= edge }); got != want {
			t.Errorf("up to %d: %d", edge, got)
		}
	}
}
