// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/network"
)

// TestMemoryHoldsStreams: what is sent while a cable is out arrives when it is
// back, and nothing before; what had arrived can still be read.
func TestMemoryHoldsStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		node := m.At(nodeAddr)
		c, s := connect(t, m.At(ctlAddr), node, ":80")
		_, _ = s.Write([]byte("before"))
		cable := node.(network.Pluggable)
		cable.Plug(false)
		_, _ = s.Write([]byte("after"))
		buf := make([]byte, 20)
		if n, err := c.Read(buf); string(buf[:n]) != "before" {
			t.Errorf("%q %v", buf[:n], err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("through an open cable: %q %v", buf[:n], err)
		}
		_ = c.SetReadDeadline(time.Time{})
		began := time.Now()
		time.AfterFunc(time.Hour, func() { cable.Plug(true) })
		if n, err := c.Read(buf); string(buf[:n]) != "after" || time.Since(began) != time.Hour {
			t.Errorf("%q after %v: %v", buf[:n], time.Since(began), err)
		}
		_ = s.(interface{ CloseWrite() error }).CloseWrite()
		if _, err := c.Read(buf); err != io.EOF {
			t.Errorf("end: %v", err)
		}
	})
}

// TestMemoryPowerLoss: nobody hears of it, neither of the end of the programs
// afterwards, and a writer waits until its own deadline.
func TestMemoryPowerLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		c, s := connect(t, m.At(ctlAddr), m.At(nodeAddr), ":80")
		m.Detach(nodeAddr)
		_ = s.Close()
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if n, err := c.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 {
			t.Errorf("wrote %d bytes: %v", n, err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: %v", err)
		}
		_ = c.SetDeadline(time.Time{})
		time.AfterFunc(time.Hour, func() { m.Attach(nodeAddr) })
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("when it is back: %v", err)
		}
	})
}

// TestMemoryNoSuchSocket: a dialled datagram socket hears that nobody listens,
// and nothing of a device that is away.
func TestMemoryNoSuchSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		m.At(nodeAddr)
		c, err := m.At(ctlAddr).Dial(t.Context(), "udp", nodeAddr.String()+":623")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, tt := range []struct {
			away bool
			want error
		}{{false, syscall.ECONNREFUSED}, {true, os.ErrDeadlineExceeded}} {
			if tt.away {
				m.Detach(nodeAddr)
			}
			_, _ = c.Write([]byte("x"))
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, tt.want) {
				t.Errorf("away %v: %v, want %v", tt.away, err, tt.want)
			}
		}
	})
}

// TestMemoryStorm: 4,096 devices dial one listener in the same moment, all get
// through, and no time passes.
func TestMemoryStorm(t *testing.T) {
	const nodes = 4096
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		l, err := m.At(ctlAddr).Listen(t.Context(), "tcp", ":8443")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for range nodes {
				c, err := l.Accept()
				if err != nil {
					t.Error(err)
					return
				}
				wg.Go(func() {
					defer c.Close()
					_, _ = io.Copy(c, c)
				})
			}
		})
		began := time.Now()
		for i := range nodes {
			wg.Go(func() {
				from := netip.AddrFrom4([4]byte{10, 80, byte(i >> 8), byte(i)})
				c, err := m.At(from).Dial(t.Context(), "tcp", l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				defer c.Close()
				msg := fmt.Appendf(nil, "node %d", i)
				_, _ = c.Write(msg)
				got := make([]byte, len(msg))
				if _, err := io.ReadFull(c, got); err != nil || string(got) != string(msg) {
					t.Errorf("%q %v", got, err)
				}
			})
		}
		wg.Wait()
		_ = l.Close()
		if d := time.Since(began); d != 0 {
			t.Errorf("it took %v of virtual time", d)
		}
	})
}

// TestMemoryIdleSize: what an idle connection holds, after much has gone through
// it.
func TestMemoryIdleSize(t *testing.T) {
	const conns, most = 1000, 2048
	m := network.NewMemory()
	var held []net.Conn
	buf := make([]byte, 32<<10)
	before := heap()
	for i := range conns {
		from := netip.AddrFrom4([4]byte{10, 80, byte(i >> 8), byte(i)})
		c, s := connect(t, m.At(ctlAddr), m.At(from), ":80")
		_, _ = s.Write(buf)
		_, _ = io.ReadFull(c, buf)
		held = append(held, c, s)
	}
	got := (heap() - before) / conns
	t.Logf("%d bytes a connection", got)
	if got > most {
		t.Errorf("an idle connection holds %d bytes, at most %d wanted", got, most)
	}
	runtime.KeepAlive(held)
	runtime.KeepAlive(m)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc)
}

var ctlAddr = netip.MustParseAddr("10.77.0.2")

// connect opens a stream from one device to another.
func connect(t testing.TB, from, to network.Network, at string) (client, server net.Conn) {
	t.Helper()
	l, err := to.Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = from.Dial(context.Background(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

func BenchmarkMemoryStream(b *testing.B) {
	m := network.NewMemory()
	c, s := connect(b, m.At(ctlAddr), m.At(nodeAddr), ":80")
	buf := make([]byte, 32<<10)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	go func() { _, _ = io.Copy(io.Discard, struct{ io.Reader }{c}) }()
	for b.Loop() {
		if _, err := s.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
}
