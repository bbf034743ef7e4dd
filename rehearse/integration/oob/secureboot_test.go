// SPDX-License-Identifier: Apache-2.0

package oob_test

import (
	"context"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// TestSecureBootOfBMC: a BMC that shows Secure Boot switched off takes the node out before it is
// booted where its hardware block asks for it, and nowhere else.
func TestSecureBootOfBMC(t *testing.T) {
	t.Parallel()
	for _, p := range redfish.Personalities() {
		for _, c := range []struct{ declared, on bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				chassisOf := chassis.New(p.Fit(chassis.Config{Node: "n1", Serial: "SN1", Seed: 1,
					Accounts: []chassis.Account{{ID: p.AdminID, Username: "admin", Password: "a-long-password-1", Role: "Administrator", Enabled: true}}}))
				wg.Go(func() { _ = chassisOf.Run(ctx) })
				m, at := network.NewMemory(), netip.MustParseAddr("10.77.1.1")
				target := bmc.Target{Node: "n1", Protocol: bmc.Redfish, Addr: netip.AddrPortFrom(at, 443), Username: "admin", Password: secret.NewValue("a-long-password-1"), Serial: "SN1"}
				ln, err := m.At(at).Listen(ctx, "tcp", target.Addr.String())
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					_ = redfish.Serve(ctx, ln, chassisOf, p, redfish.Options{Address: at, SecureBoot: func() bool { return c.on }})
				})
				pool := bmc.NewPool(bmc.Options{Network: m.At(netip.MustParseAddr("10.77.0.1"))})
				defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }()
				inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Serial: "SN1", Rack: &inventory.Rack{Name: "r1"}, Unit: 4, Image: &inventory.Image{},
					BMC: inventory.BMCTarget{Protocol: string(bmc.Redfish)}, Hardware: &inventory.Hardware{Name: "h", SecureBoot: c.declared}}}}
				stage := oob.New(inv, func(context.Context, string) (oob.BMC, error) { return pool.Handle(target), nil })
				steps, diags := stage.Plan(nil)
				if diags.HasErrors() || len(steps) != 1 {
					t.Fatal(diags, steps)
				}
				run := wallRun{onnodetest.NewRun(subject.OfNode("n1"))}
				err = stage.Apply(ctx, run, steps[0])
				want := c.declared && !c.on
				if (err != nil) != want || want != (len(run.Findings) == 1) || want && (run.Findings[0].Suspects[0].Part != "Secure Boot" || run.Findings[0].Cause != "Secure Boot is switched off in the firmware") {
					t.Errorf("%s, declared %v, on %v: %v, %+v", p.Name, c.declared, c.on, err, run.Findings)
				}
			})
		}
	}
}
