// SPDX-License-Identifier: Apache-2.0

package network_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"syscall"
	"testing"

	"github.com/ironrail/ironrail/internal/network"
)

// TestLoopbackFromOutside: an outside tool reaches devices at their real
// addresses, which tell people who they are.
func TestLoopbackFromOutside(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	t.Parallel()
	b := network.NewLoopback()
	bmc := netip.MustParseAddr("10.201.3.7")
	l, err := b.At(bmc).Listen(t.Context(), "tcp", ":443")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	real := b.Real(netip.MustParseAddrPort("10.201.3.7:443"))
	if real.Addr().String() != "127.201.3.7" || real.Port() < 1024 {
		t.Errorf("the outside sees %v", real)
	}
	c, err := net.Dial("tcp", real.String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.LocalAddr().String() != "10.201.3.7:443" || s.RemoteAddr().String() != c.LocalAddr().String() {
		t.Errorf("%v sees %v", s.LocalAddr(), s.RemoteAddr())
	}
	_, _ = s.Write([]byte("hello"))
	_ = s.(interface{ CloseWrite() error }).CloseWrite()
	if got, err := io.ReadAll(c); string(got) != "hello" {
		t.Errorf("%q %v", got, err)
	}

	p, err := b.At(bmc).ListenPacket(t.Context(), "udp", ":623")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	u, err := net.Dial("udp", b.Real(netip.MustParseAddrPort("10.201.3.7:623")).String())
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	_, _ = u.Write([]byte("ping"))
	buf := make([]byte, 9)
	n, from, err := p.ReadFrom(buf)
	if err != nil || string(buf[:n]) != "ping" || from.String() != u.LocalAddr().String() {
		t.Errorf("%q from %v: %v", buf[:n], from, err)
	}
	_, _ = p.WriteTo([]byte("pong"), from)
	if n, err = u.Read(buf); string(buf[:n]) != "pong" {
		t.Errorf("%q %v", buf[:n], err)
	}
}

func TestLoopbackAddresses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	t.Parallel()
	b := network.NewLoopback()
	for _, tt := range []struct{ site, want string }{
		{"10.202.0.9:443", "127.202.0.9:10443"},
		{"10.202.0.9:8080", "127.202.0.9:8080"},
		{"172.202.0.9:22", "127.240.0.1:10022"}, // the other has taken it
		{"10.0.0.2:80", "127.200.0.2:10080"},    // 127.0.0.0/16 is not ours
		{"[fd00::1]:443", "127.240.0.2:10443"},
	} {
		a := netip.MustParseAddrPort(tt.site)
		if got := b.Real(a); tt.want[:9] == "127.240.0" && got.IsValid() {
			t.Errorf("%s has %v before it is there", tt.site, got)
		}
		b.At(a.Addr())
		if got := b.Real(a).String(); got != tt.want {
			t.Errorf("%s is %s, want %s", tt.site, got, tt.want)
		}
	}
	// A port that another process has is replaced, and nobody in the site sees it.
	other, err := net.Listen("tcp", "127.202.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	at := netip.AddrPortFrom(netip.MustParseAddr("10.202.0.9"), other.Addr().(*net.TCPAddr).AddrPort().Port())
	c, s := connect(t, b.At(netip.MustParseAddr("10.202.0.8")), b.At(at.Addr()), at.String())
	if c.RemoteAddr().String() != at.String() || s.LocalAddr().String() != at.String() {
		t.Errorf("%v and %v, want %v", c.RemoteAddr(), s.LocalAddr(), at)
	}
}

// TestLoopbackKeepsBoardsApart: of two boards with the same site, as two
// rehearsals have it, none reaches a device of the other, even while its own
// device does not listen.
func TestLoopbackKeepsBoardsApart(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has all of 127.0.0.0/8")
	}
	t.Parallel()
	const at = "10.203.0.9:22"
	first, second := network.NewLoopback(), network.NewLoopback()
	node, other := netip.MustParseAddr("10.203.0.9"), netip.MustParseAddr("10.203.0.8")
	l, err := first.At(node).Listen(t.Context(), "tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	booting := second.At(node)
	if c, err := second.At(other).Dial(t.Context(), "tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v %v", c, err)
	}
	c, s := connect(t, second.At(other), booting, at)
	if c.RemoteAddr().String() != at || s.LocalAddr().String() != at {
		t.Errorf("%v and %v", c.RemoteAddr(), s.LocalAddr())
	}
}
