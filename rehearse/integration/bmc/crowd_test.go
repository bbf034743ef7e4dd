// SPDX-License-Identifier: Apache-2.0

package bmc_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// counting is a network that counts what is dialled.
type counting struct {
	network.Network
	mu    sync.Mutex
	dials int
}

func (c *counting) Dial(ctx context.Context, kind, addr string) (net.Conn, error) {
	c.mu.Lock()
	c.dials++
	c.mu.Unlock()
	return c.Network.Dial(ctx, kind, addr)
}

// An idle session of Redfish lasts by itself and is given back after minutes, however many BMCs
// there are; then it costs nothing.
func TestPoolCrowd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		bmcs  int
		after time.Duration
		kept  bool // the session is still there after that time

	}{{"few", 4, 2 * time.Minute, true}, {"many", 100, 2 * time.Minute, true}, {"many, for long", 100, 10 * time.Minute, false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				m := network.NewMemory()
				p, _ := redfish.FindPersonality("openbmc")
				q := p.Quirks
				q.SessionLimit = 1 // a session that was not closed is found out by the next log-in
				var targets []bmc.Target
				for i := range tt.bmcs {
					at := netip.AddrFrom4([4]byte{10, 77, 2, byte(i)})
					c := chassis.New(chassis.Config{Node: "n", Serial: rigSerial, Accounts: []chassis.Account{{ID: 2, Username: rigUser, Password: rigPassword, Role: "Administrator", Enabled: true}}})
					to := netip.AddrPortFrom(at, 443)
					ln, err := m.At(at).Listen(ctx, "tcp", to.String())
					if err != nil {
						t.Fatal(err)
					}
					wg.Go(func() { _ = c.Run(ctx) })
					wg.Go(func() { _ = redfish.Serve(ctx, ln, c, p, redfish.Options{Address: at, Quirks: &q}) })
					targets = append(targets, bmc.Target{Node: "n", Protocol: bmc.Redfish, Addr: to, Username: rigUser, Password: secret.NewValue(rigPassword)})
				}
				dialled := &counting{Network: m.At(netip.MustParseAddr("10.77.0.1"))}
				pool := bmc.NewPool(bmc.Options{Network: dialled})
				wg.Go(func() { _ = pool.KeepAlive(ctx) })
				for _, to := range targets {
					if _, err := pool.Handle(to).PowerState(ctx); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(tt.after)
				s, err := bmc.Open(ctx, targets[0], bmc.Options{Network: m.At(netip.MustParseAddr("10.77.0.2"))})
				if (err == nil) == tt.kept {
					t.Errorf("a second session: %v, kept should be %t", err, tt.kept)
				}
				if err == nil {
					_ = s.Close(ctx)
				}
				if dialled.dials > 2*tt.bmcs { // one to work, one to log out after the connection was idle
					t.Errorf("%d connections to %d BMCs", dialled.dials, tt.bmcs)
				}
				if err := pool.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
