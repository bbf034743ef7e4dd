// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
)

// TestPoolOn: a pool reaches nodes on its network, from its address.
func TestPoolOn(t *testing.T) {
	t.Parallel()
	m := network.NewMemory()
	n := &node{t: t, host: newSigner(t), client: newSigner(t), conns: map[net.Conn]bool{}, addr: netip.MustParseAddrPort("10.77.1.11:22")}
	l, err := m.At(n.addr.Addr()).Listen(t.Context(), "tcp", ":22")
	if err != nil {
		t.Fatal(err)
	}
	n.l = l
	from := make(chan string, 1)
	n.wg.Go(func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		from <- c.RemoteAddr().(*net.TCPAddr).IP.String()
		n.serve(c)
	})
	p := NewPoolOn(1, m.At(netip.MustParseAddr("10.77.0.2")))
	r, err := p.Run(t.Context(), n.config(), sh("echo here"))
	if err != nil || string(r.Stdout) != "here\n" {
		t.Errorf("%+v %v", r, err)
	}
	if got := <-from; got != "10.77.0.2" {
		t.Errorf("the node sees %s", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	n.down()
}

// TestDialOnNetwork: who is not there is unreachable, in virtual time.
func TestDialOnNetwork(t *testing.T) {
	host, client := newSigner(t), newSigner(t)
	for _, tt := range []struct {
		name string
		set  func(*testing.T, *network.Memory, netip.Addr)
		want time.Duration
	}{
		{"nobody there", func(*testing.T, *network.Memory, netip.Addr) {}, 3 * time.Second},
		{"no sshd", func(_ *testing.T, m *network.Memory, a netip.Addr) { m.At(a) }, 0},
		{"a silent sshd", func(t *testing.T, m *network.Memory, a netip.Addr) {
			l, err := m.At(a).Listen(t.Context(), "tcp", ":22")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
		}, defaultTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, at := network.NewMemory(), netip.MustParseAddrPort("10.77.1.11:22")
				tt.set(t, m, at.Addr())
				began := time.Now()
				_, err := Dial(t.Context(), Config{Node: "n1", Addr: at, User: "root", HostKey: host.PublicKey(), Signer: client,
					Network: m.At(netip.MustParseAddr("10.77.0.2"))})
				if d := time.Since(began); errkind.Of(err) != errkind.Unreachable || d != tt.want {
					t.Errorf("after %v: %v (%v), want %v", d, err, errkind.Of(err), tt.want)
				}
			})
		})
	}
}
