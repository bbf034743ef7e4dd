// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
)

// TestOpenOnNetwork: a BMC is looked for on the network that is given, and a
// silent one is unreachable after about one time-out of virtual time.
func TestOpenOnNetwork(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*testing.T, *network.Memory, netip.AddrPort)
		most time.Duration
	}{
		{"nobody there", func(*testing.T, *network.Memory, netip.AddrPort) {}, DefaultTimeout},
		{"no such port", func(_ *testing.T, m *network.Memory, a netip.AddrPort) { m.At(a.Addr()) }, DefaultTimeout},
		{"without power", func(_ *testing.T, m *network.Memory, a netip.AddrPort) { m.At(a.Addr()); m.Detach(a.Addr()) }, DefaultTimeout},
		{"silent", func(t *testing.T, m *network.Memory, a netip.AddrPort) {
			p, err := m.At(a.Addr()).ListenPacket(t.Context(), "udp", a.String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = p.Close() })
		}, DefaultTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, at := network.NewMemory(), netip.MustParseAddrPort("10.78.1.11:623")
				tt.set(t, m, at)
				began := time.Now()
				_, err := Open(t.Context(), Target{Node: "n1", Addr: at, Username: "u", Password: secret.NewValue("p")},
					Options{Network: m.At(netip.MustParseAddr("10.78.0.2"))})
				if d := time.Since(began); errkind.Of(err) != errkind.Unreachable || d > tt.most {
					t.Errorf("after %v: %v (%v)", d, err, errkind.Of(err))
				}
			})
		})
	}
}
