// SPDX-License-Identifier: Apache-2.0

// Package networktest is the conformance suite of network.Network.
package networktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/network"
)

// Run checks a network whose local address is addr, such as 127.0.0.1. open is
// called for every test.
func Run(t *testing.T, addr string, open func() network.Network) {
	t.Helper()
	s := suite{addr: net.JoinHostPort(addr, "0"), open: open}
	for _, c := range []struct {
		name string
		run  func(*testing.T, network.Network)
	}{
		{"a stream carries more than its buffer, both ways", s.both},
		{"nobody there: refused", s.refused},
		{"a taken address", s.taken},
		{"deadlines end waiting and can be lifted", s.deadlines},
		{"closing ends reads and accepts", s.closing},
		{"half a close", s.halfClose},
		{"http runs on it", s.http},
		{"datagrams keep their bounds and senders", s.datagrams},
		{"a dialled udp socket", s.dialledDatagrams},
		{"a cancelled dial", s.cancelled},
		{"an unknown network", s.unknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, open())
		})
	}
}

type suite struct {
	addr string
	open func() network.Network
}

func (s suite) listen(t *testing.T, n network.Network) net.Listener {
	t.Helper()
	l, err := n.Listen(t.Context(), "tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// pair returns the ends of one connection.
func (s suite) pair(t *testing.T, n network.Network) (client, server net.Conn) {
	t.Helper()
	l := s.listen(t, n)
	c, err := n.Dial(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), a.Close() })
	if c.RemoteAddr().String() != l.Addr().String() || a.RemoteAddr().String() != c.LocalAddr().String() {
		t.Errorf("addresses: %v -> %v, seen as %v", c.LocalAddr(), c.RemoteAddr(), a.RemoteAddr())
	}
	return c, a
}

func (s suite) both(t *testing.T, n network.Network) {
	c, a := s.pair(t, n)
	want := bytes.Repeat([]byte("ironrail"), 100_000)
	var wg sync.WaitGroup
	for _, e := range []net.Conn{c, a} {
		wg.Go(func() {
			if _, err := e.Write(want); err != nil {
				t.Errorf("write: %v", err)
			}
		})
		wg.Go(func() {
			got := make([]byte, len(want))
			if _, err := io.ReadFull(e, got); err != nil || !bytes.Equal(got, want) {
				t.Errorf("read: %v, equal %v", err, bytes.Equal(got, want))
			}
		})
	}
	wg.Wait()
}

func (s suite) refused(t *testing.T, n network.Network) {
	l := s.listen(t, n)
	addr := l.Addr().String()
	_ = l.Close()
	if _, err := n.Dial(t.Context(), "tcp", addr); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
}

func (s suite) taken(t *testing.T, n network.Network) {
	l := s.listen(t, n)
	if _, err := n.Listen(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen: %v", err)
	}
}

func (s suite) deadlines(t *testing.T, n network.Network) {
	c, a := s.pair(t, n)
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	_, err := c.Read(make([]byte, 1))
	ne, ok := errors.AsType[net.Error](err)
	if !errors.Is(err, os.ErrDeadlineExceeded) || !ok || !ne.Timeout() {
		t.Errorf("read past its deadline: %v", err)
	}
	_ = c.SetReadDeadline(time.Time{})
	if _, err := a.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("read after the deadline was lifted: %d %v", n, err)
	}
	_ = c.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := c.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("write that nobody reads: %v", err)
	}
}

func (s suite) closing(t *testing.T, n network.Network) {
	c, a := s.pair(t, n)
	if _, err := a.Write([]byte("bye")); err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	if got, err := io.ReadAll(c); string(got) != "bye" || err != nil {
		t.Errorf("after close: %q %v", got, err)
	}
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read of a closed end: %v", err)
	}
	l := s.listen(t, n)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	_ = l.Close()
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept on a closed listener: %v", err)
	}
}

func (s suite) halfClose(t *testing.T, n network.Network) {
	c, a := s.pair(t, n)
	h, ok := c.(interface{ CloseWrite() error })
	if !ok {
		t.Fatalf("%T cannot close one direction", c)
	}
	if err := h.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(a); len(got) != 0 || err != nil {
		t.Errorf("read: %q %v", got, err)
	}
	if _, err := a.Write([]byte("still")); err != nil {
		t.Errorf("other direction: %v", err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(c, got); err != nil || string(got) != "still" {
		t.Errorf("other direction: %q %v", got, err)
	}
}

func (s suite) http(t *testing.T, n network.Network) {
	l := s.listen(t, n)
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	c := http.Client{Transport: &http.Transport{DialContext: n.Dial, DisableKeepAlives: true}}
	body := bytes.Repeat([]byte("z"), 300_000)
	resp, err := c.Post("http://"+l.Addr().String()+"/", "text/plain", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes came back: %v", len(got), err)
	}
}

func (s suite) packet(t *testing.T, n network.Network) net.PacketConn {
	t.Helper()
	p, err := n.ListenPacket(t.Context(), "udp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func (s suite) datagrams(t *testing.T, n network.Network) {
	a, b := s.packet(t, n), s.packet(t, n)
	for i := range 3 {
		if _, err := a.WriteTo(fmt.Appendf(nil, "datagram %d", i), b.LocalAddr()); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		buf := make([]byte, 100)
		_ = b.SetReadDeadline(time.Now().Add(5 * time.Second))
		k, from, err := b.ReadFrom(buf)
		if want := fmt.Sprintf("datagram %d", i); err != nil || string(buf[:k]) != want || from.String() != a.LocalAddr().String() {
			t.Errorf("got %q from %v: %v, want %q", buf[:k], from, err, want)
		}
	}
	_ = b.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if _, _, err := b.ReadFrom(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("no datagram: %v", err)
	}
}

func (s suite) dialledDatagrams(t *testing.T, n network.Network) {
	p := s.packet(t, n)
	c, err := n.Dial(t.Context(), "udp", p.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 16)
	k, from, err := p.ReadFrom(buf)
	if err != nil || string(buf[:k]) != "ping" {
		t.Fatalf("%q %v", buf[:k], err)
	}
	if _, err := p.WriteTo([]byte("pong"), from); err != nil {
		t.Fatal(err)
	}
	if k, err = c.Read(buf); err != nil || string(buf[:k]) != "pong" {
		t.Errorf("%q %v", buf[:k], err)
	}
}

func (s suite) cancelled(t *testing.T, n network.Network) {
	l := s.listen(t, n)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Dial(ctx, "tcp", l.Addr().String()); err == nil {
		t.Error("a cancelled dial connected")
	}
}

func (s suite) unknown(t *testing.T, n network.Network) {
	if _, err := n.Dial(t.Context(), "carrier-pigeon", s.addr); err == nil {
		t.Error("dialled by pigeon")
	}
}
