// SPDX-License-Identifier: Apache-2.0

package wire_test

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

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/network/networktest"
	"github.com/ironrail/ironrail/rehearse/virtual/wire"
)

var (
	nodeAt = netip.MustParseAddr("10.77.1.11")
	ctlAt  = netip.MustParseAddr("10.77.0.2")
)

func TestWire(t *testing.T) {
	t.Parallel()
	networktest.Run(t, nodeAt.String(), func() network.Network {
		return wire.New(network.NewMemory().At(nodeAt), clock.Wall{})
	})
}

func TestWireOnLoopback(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	t.Parallel()
	networktest.Run(t, nodeAt.String(), func() network.Network {
		return wire.New(network.NewLoopback().At(nodeAt), clock.NewFast(20))
	})
}

// TestWireWithRate: the suite passes with a rate, an uplink and a scale too.
func TestWireWithRate(t *testing.T) {
	t.Parallel()
	networktest.Run(t, nodeAt.String(), func() network.Network {
		w := wire.New(network.NewMemory().At(nodeAt), clock.NewFast(100))
		w.Rate(10e9, wire.NewUplink(20e9))
		return w.Scaled(2)
	})
}

// rig is a node behind a wire and a controller that sends what it is told.
type rig struct {
	t   *testing.T
	net *network.Memory
	l   net.Listener
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, f func(*testing.T, *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := network.NewMemory()
		l, err := m.At(ctlAt).Listen(t.Context(), "tcp", ":80")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f(t, &rig{t, m, l})
	})
}

func (r *rig) wire(i byte) *wire.Wire {
	return wire.New(r.net.At(netip.AddrFrom4([4]byte{10, 77, 1, i})), clock.Wall{})
}

// download opens a connection on which size bytes come, and then the end.
func (r *rig) download(n network.Network, size int) net.Conn {
	r.t.Helper()
	c, err := n.Dial(r.t.Context(), "tcp", r.l.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := r.l.Accept()
	if err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer s.Close()
		_, _ = s.Write(make([]byte, size))
		_ = s.(interface{ CloseWrite() error }).CloseWrite()
		_, _ = io.Copy(io.Discard, s)
	}()
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func about(got, want time.Duration) bool {
	return got >= want-5*time.Millisecond && got <= want+5*time.Millisecond
}

func TestRate(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name  string
		set   func(*wire.Wire) network.Network
		bytes int
		want  time.Duration
	}{
		{"no limit", func(w *wire.Wire) network.Network { return w }, mib, 0},
		{"8 Mbit/s", func(w *wire.Wire) network.Network { w.Rate(8*mib, nil); return w }, mib, time.Second},
		{"the uplink is slower", func(w *wire.Wire) network.Network { w.Rate(8*mib, wire.NewUplink(4*mib)); return w }, mib, 2 * time.Second},
		{"the uplink is faster", func(w *wire.Wire) network.Network { w.Rate(8*mib, wire.NewUplink(80*mib)); return w }, mib, time.Second},
		{"5 GiB in 1 MiB at 25 Gbit/s", func(w *wire.Wire) network.Network {
			w.Rate(25e9, nil)
			return w.Scaled(5120)
		}, mib, 1717986918},
		{"by port", func(w *wire.Wire) network.Network { w.Rate(25e9, nil); w.Scale(80, 5120); return w }, mib, 1717986918},
		{"another port", func(w *wire.Wire) network.Network { w.Rate(25e9, nil); w.Scale(443, 5120); return w }, mib, 0},
		{"a byte is more than a chunk", func(w *wire.Wire) network.Network { w.Rate(8*mib, nil); return w.Scaled(32 * mib) }, 2, 64 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				began := time.Now()
				n, err := io.Copy(io.Discard, r.download(tt.set(r.wire(11)), tt.bytes))
				if got := time.Since(began); n != int64(tt.bytes) || err != nil || !about(got, tt.want) {
					t.Errorf("%d bytes in %v, want %v: %v", n, got, tt.want, err)
				}
			})
		})
	}
}

// TestUplinkIsFair: those that begin together end together, and the sum of all is
// the uplink's rate.
func TestUplinkIsFair(t *testing.T) {
	const nodes, size, factor = 20, 1 << 20, 1000
	inBubble(t, func(t *testing.T, r *rig) {
		up := wire.NewUplink(25e9)
		began := time.Now()
		took := make([]time.Duration, nodes)
		var wg sync.WaitGroup
		for i := range nodes {
			w := r.wire(byte(i + 1))
			w.Rate(10e9, up)
			c := r.download(w.Scaled(factor), size)
			wg.Go(func() {
				_, _ = io.Copy(io.Discard, c)
				took[i] = time.Since(began)
			})
		}
		wg.Wait()
		all := time.Duration(nodes * size * factor * 8 / 25e9 * float64(time.Second))
		last := time.Duration(0)
		for i, d := range took {
			last = max(last, d)
			if d < all*9/10 {
				t.Errorf("node %d took %v of %v", i, d, all)
			}
		}
		if !about(last, all) || up.Bytes() != nodes*size*factor {
			t.Errorf("all took %v, want %v; %v bytes", last, all, up.Bytes())
		}
	})
}

// TestSmallGoesFirst: a question and its answer do not wait behind downloads.
func TestSmallGoesFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		up := wire.NewUplink(1e9)
		var wg sync.WaitGroup
		for i := range 100 {
			w := r.wire(byte(i + 1))
			w.Rate(0, up)
			c := r.download(w.Scaled(1000), 1<<20)
			wg.Go(func() { _, _ = io.Copy(io.Discard, c) })
		}
		time.Sleep(time.Minute)
		w := r.wire(200)
		w.Rate(0, up)
		began := time.Now()
		if n, err := io.Copy(io.Discard, r.download(w, 2000)); n != 2000 || err != nil || time.Since(began) > time.Millisecond {
			t.Errorf("%d bytes after %v: %v", n, time.Since(began), err)
		}
		wg.Wait()
	})
}

// TestReadEndsWhileItWaits: deadlines and Close end a read that waits for the
// rate, and no byte is lost by it.
func TestReadEndsWhileItWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w := r.wire(11)
		w.Rate(8, nil) // one byte a second
		c := r.download(w, 10)
		buf := make([]byte, 10)
		_ = c.SetReadDeadline(time.Now().Add(4 * time.Second))
		if n, err := c.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d %v", n, err)
		}
		began := time.Now()
		_ = c.SetReadDeadline(time.Time{})
		if n, err := io.ReadFull(c, buf); n != 10 || !about(time.Since(began), 6*time.Second) {
			t.Errorf("%d bytes after %v: %v", n, time.Since(began), err)
		}
		c = r.download(w, 10)
		began = time.Now()
		time.AfterFunc(time.Second, func() { _ = c.SetReadDeadline(time.Now().Add(time.Second)) })
		if _, err := c.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) || !about(time.Since(began), 2*time.Second) {
			t.Errorf("a deadline set meanwhile: after %v: %v", time.Since(began), err)
		}
		_ = c.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { _ = c.Close() })
		if _, err := c.Read(buf); !errors.Is(err, net.ErrClosed) || !about(time.Since(began), 3*time.Second) {
			t.Errorf("closed meanwhile: after %v: %v", time.Since(began), err)
		}
	})
}

func TestStall(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w := r.wire(11)
		c := r.download(w, 1000)
		w.StallAfter(300, 80)
		w.StallAfter(0, 443) // not ours
		got := make([]byte, 1000)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := io.ReadFull(c, got); n != 300 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes: %v", n, err)
		}
		again := r.download(w, 10)
		_ = again.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := again.Read(got); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a new connection: %d bytes: %v", n, err)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			t.Errorf("write: %v", err)
		}
		_ = c.SetReadDeadline(time.Time{})
		began := time.Now()
		time.AfterFunc(time.Hour, w.Heal)
		if n, err := io.Copy(io.Discard, c); n != 700 || err != nil || time.Since(began) != time.Hour {
			t.Errorf("healed: %d bytes after %v: %v", n, time.Since(began), err)
		}
	})
}

// TestStallHidesTheEnd: also when all bytes have come before.
func TestStallHidesTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w := r.wire(11)
		w.StallAfter(5, 80)
		c := r.download(w, 5)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if got, err := io.ReadAll(c); len(got) != 5 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%d bytes, then %v", len(got), err)
		}
		_ = c.SetReadDeadline(time.Time{})
		w.Heal()
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("healed: %v", err)
		}
	})
}

// TestStallBeginsInARead: a read that waits already gets no more than is left.
func TestStallBeginsInARead(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w := r.wire(11)
		c, err := w.Dial(t.Context(), "tcp", r.l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, _ := r.l.Accept()
		time.AfterFunc(time.Second, func() {
			w.StallAfter(3, 80)
			_, _ = s.Write([]byte("abcdef"))
		})
		buf := make([]byte, 10)
		if n, err := c.Read(buf); string(buf[:n]) != "abc" {
			t.Errorf("%q %v", buf[:n], err)
		}
		time.AfterFunc(time.Second, w.Heal)
		if n, err := c.Read(buf); string(buf[:n]) != "def" {
			t.Errorf("%q %v", buf[:n], err)
		}
		_, _ = c.Close(), s.Close()
	})
}

func TestCut(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		w := r.wire(11)
		c, err := w.Dial(t.Context(), "tcp", r.l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		s, _ := r.l.Accept()
		w.Cut(true)
		if w.Live() {
			t.Error("a cut cable is live")
		}
		_, _ = c.Write([]byte("up"))
		_, _ = s.Write([]byte("down"))
		for _, e := range []net.Conn{c, s} {
			_ = e.SetReadDeadline(time.Now().Add(time.Second))
			if n, err := e.Read(make([]byte, 9)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%d bytes through a cut cable: %v", n, err)
			}
			_ = e.SetReadDeadline(time.Time{})
		}
		for _, d := range []func() (net.Conn, error){
			func() (net.Conn, error) { return w.Dial(t.Context(), "tcp", r.l.Addr().String()) },
			func() (net.Conn, error) {
				l, _ := w.Listen(t.Context(), "tcp", ":22")
				defer l.Close()
				return r.net.At(ctlAt).Dial(t.Context(), "tcp", l.Addr().String())
			},
		} {
			began := time.Now()
			if _, err := d(); !errors.Is(err, syscall.EHOSTUNREACH) || time.Since(began) != 3*time.Second {
				t.Errorf("a dial: after %v: %v", time.Since(began), err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Dial(ctx, "tcp", r.l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a dial of a second: %v", err)
		}
		began := time.Now()
		u, err := w.Dial(t.Context(), "udp", "10.77.0.2:69")
		if err != nil || time.Since(began) != 0 {
			t.Fatalf("a datagram socket after %v: %v", time.Since(began), err)
		}
		if _, err := u.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		_ = u.Close()
		w.Cut(false)
		for e, want := range map[net.Conn]string{c: "down", s: "up"} {
			buf := make([]byte, 9)
			if n, err := e.Read(buf); string(buf[:n]) != want {
				t.Errorf("%q %v, want %q", buf[:n], err, want)
			}
		}
		_, _ = c.Close(), s.Close()
	})
}

// TestLoss: about p of the datagrams of each kind of socket are lost, the same
// ones for the same seed.
func TestLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		p, err := r.net.At(ctlAt).ListenPacket(t.Context(), "udp", ":69")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		var first string
		for try := range 2 {
			w := r.wire(byte(20 + try))
			w.Loss(0.3, 7)
			c, _ := w.Dial(t.Context(), "udp", "10.77.0.2:69")
			var got string
			for i := range 200 {
				_, _ = fmt.Fprintf(c, "%d,", i)
			}
			buf := make([]byte, 9)
			for {
				_ = p.SetReadDeadline(time.Now().Add(time.Second))
				n, _, err := p.ReadFrom(buf)
				if err != nil {
					break
				}
				got += string(buf[:n])
			}
			if first == "" {
				first = got
			}
			if got != first || len(got) < 350 || len(got) > 650 {
				t.Errorf("try %d: %s", try, got)
			}
			_ = c.Close()
		}
	})
}
