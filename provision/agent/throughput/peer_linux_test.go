// SPDX-License-Identifier: Apache-2.0

package throughput

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/ironrail/ironrail/internal/peertest"
)

// world is two nodes and what is between them, each a network namespace of the test's own that
// is gone with its threads.
type world struct {
	t          *testing.T
	a, b, path netns.NsHandle
}

// newWorld joins two nodes by cables to a bridge: 10.9.0.1 on a0 and 10.9.0.2 on b0, at ports pa
// and pb.
func newWorld(t *testing.T) *world {
	t.Helper()
	peertest.Need(t, "ip", "tc")
	if os.Geteuid() != 0 {
		t.Skip("needs root for network namespaces")
	}
	w := &world{t: t}
	for _, h := range []*netns.NsHandle{&w.path, &w.a, &w.b} {
		*h = w.newNamespace()
		t.Cleanup(func() { _ = h.Close() })
	}
	w.run(w.path, "ip link add br0 type bridge", "ip link set br0 up")
	for name, h := range map[string]netns.NsHandle{"a": w.a, "b": w.b} {
		w.run(h, "ip link set lo up", "ip link add "+name+"0 type veth peer name p"+name)
		w.run(h, fmt.Sprintf("ip link set p%s netns /proc/%d/fd/%d", name, os.Getpid(), w.path))
		w.run(w.path, "ip link set p"+name+" master br0", "ip link set p"+name+" up")
		w.run(h, "ip link set "+name+"0 up", "ip address add 10.9.0."+map[string]string{"a": "1", "b": "2"}[name]+"/24 dev "+name+"0")
	}
	return w
}

func (w *world) newNamespace() (h netns.NsHandle) {
	w.t.Helper()
	w.in(-1, func() {
		var err error
		if h, err = netns.New(); err != nil {
			w.t.Skip("no network namespaces here: ", err)
		}
	})
	return h
}

// in does something on a thread of a namespace, which ends with it.
func (w *world) in(h netns.NsHandle, do func()) {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with its namespace
		if h >= 0 {
			if err := netns.Set(h); err != nil {
				w.t.Error(err)
				return
			}
		}
		do()
	}()
	<-done
}

// run runs programs in a namespace.
func (w *world) run(h netns.NsHandle, lines ...string) {
	w.t.Helper()
	for _, line := range lines {
		w.in(h, func() {
			argv := strings.Fields(line)
			if out, err := exec.CommandContext(w.t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
				w.t.Errorf("%s: %s", line, out)
			}
		})
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// measure lets a listen, and b connect to it.
func (w *world) measure() (a, b Seen) {
	w.t.Helper()
	at, ended := make(chan Session, 1), make(chan struct{})
	s := Session{Token: [tokenBytes]byte{7}, Streams: 4, Long: 1200 * time.Millisecond, Wait: 10 * time.Second, MTU: 1500}
	network := netip.MustParsePrefix("10.9.0.0/24")
	go w.in(w.a, func() {
		defer close(ended)
		var err error
		mine := s
		if mine.Local, _, err = (Host{}).Find(network, netip.Addr{}); err == nil {
			a, err = Host{}.Serve(w.t.Context(), mine, func(tcp, udp uint16) error {
				s.Peer, s.Echo = netip.AddrPortFrom(mine.Local, tcp), udp
				at <- s
				return nil
			})
		}
		if err != nil {
			w.t.Error("the end that listens: ", err)
		}
	})
	select {
	case s = <-at:
	case <-ended:
		w.t.FailNow()
	}
	w.in(w.b, func() {
		var err error
		if s.Local, _, err = (Host{}).Find(network, netip.Addr{}); err == nil {
			b, err = Host{}.Measure(w.t.Context(), s)
		}
		if err != nil {
			w.t.Error("the end that connects: ", err)
		}
	})
	<-ended
	w.t.Logf("a receives %.0f Mb/s, b %.0f Mb/s; a sent %+v, b sent %+v; path %+v", a.Received.Rate()*8e-6, b.Received.Rate()*8e-6, a.Sent, b.Sent, b.Path)
	return a, b
}

// TestPeerNetwork: between two nodes with a bridge between them, what the kernel's token bucket
// (tc-tbf(8)) holds back on one node is slow in that direction alone, and what a port of the
// bridge does not take in is no part of the path.
func TestPeerNetwork(t *testing.T) {
	w := newWorld(t)
	const slow = 50e6 / 8 // bytes a second of the token bucket
	a, b := w.measure()
	fast := min(a.Received.Rate(), b.Received.Rate())
	if fast < 10*slow || b.Path == nil || b.Path.Sent != 1500 || b.Path.Received != 1500 {
		t.Fatalf("nothing is wrong, and it carries %.0f bytes a second, path %+v", fast, b.Path)
	}

	for _, c := range []struct {
		name   string
		at     netns.NsHandle
		device string
		drops  bool
	}{{"b sends slowly", w.b, "b0", false}, {"a port in the middle sends slowly to a", w.path, "pa", true}} {
		w.run(c.at, "tc qdisc add dev "+c.device+" root tbf rate 50mbit burst 128kb latency 20ms")
		for range 5 { // a machine that is busy carries less at times, and never more
			a, b = w.measure()
			if a.Received.Rate() >= 0.6*slow && b.Received.Rate() >= 4*slow {
				break
			}
		}
		if got := a.Received.Rate(); got > 1.05*slow || got < 0.6*slow {
			t.Errorf("%s: held to %.0f bytes a second, and %.0f are measured", c.name, slow, got)
		}
		if got := b.Received.Rate(); got < 4*slow {
			t.Errorf("%s: the other direction is not held back, and %.0f bytes a second are measured", c.name, got)
		}
		if c.drops && b.Sent.Again == 0 {
			t.Errorf("%s: what is too much is dropped, and nothing was sent once more: %+v", c.name, b.Sent)
		}
		w.run(c.at, "tc qdisc del dev "+c.device+" root")
	}

	w.run(w.path, "ip link set pb mtu 1400")
	_, b = w.measure()
	// A veth(4) takes four bytes more than its MTU, for the tag of a VLAN.
	if p := b.Path; p.Sent < 1400 || p.Sent > 1404 || p.Received < 1400 || p.Received > 1404 {
		t.Errorf("a port in the middle takes 1400 bytes: %+v", p)
	}
}
