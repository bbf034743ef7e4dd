// SPDX-License-Identifier: Apache-2.0

package oob_test

import (
	"context"
	"net/netip"
	"strings"
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
	"github.com/ironrail/ironrail/rehearse/virtual/ipmi"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// TestVLANOfBMC: a BMC on another VLAN than the files say takes its node out, by IPMI and by Redfish of each
// maker; where the files name none, nothing is asked.
func TestVLANOfBMC(t *testing.T) {
	t.Parallel()
	protocols := []bmc.Protocol{bmc.IPMI}
	makers := redfish.Personalities()
	for range makers {
		protocols = append(protocols, bmc.Redfish)
	}
	for i, protocol := range protocols {
		p := makers[max(i-1, 0)]
		for _, c := range []struct {
			profile, network, shown int
			want                    string // cause; "": none
		}{
			{30, 0, 30, ""}, {30, 30, 30, ""}, {0, 0, 31, ""}, {0, 30, 0, ""}, {0, 30, 30, ""}, {4094, 0, 4094, ""},
			{30, 0, 0, "its BMC sends untagged frames, and bmc.b has vlan = 30"},
			{30, 0, 31, "its BMC tags frames with VLAN 31, and bmc.b has vlan = 30"},
			{0, 30, 31, "its BMC tags frames with VLAN 31, and its network oob has vlan = 30"},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				chassisOf := chassis.New(p.Fit(chassis.Config{Node: "n1", Serial: "SN1", Seed: 1,
					Accounts: []chassis.Account{{ID: p.AdminID, Username: "admin", Password: "a-long-password-1", Role: "Administrator", Enabled: true}}}))
				wg.Go(func() { _ = chassisOf.Run(ctx) })
				m, at := network.NewMemory(), netip.MustParseAddr("10.77.1.1")
				target := bmc.Target{Node: "n1", Protocol: protocol, Addr: netip.AddrPortFrom(at, 443), Username: "admin", Password: secret.NewValue("a-long-password-1"), Serial: "SN1", CipherSuite: 17}
				if protocol == bmc.IPMI {
					conn, err := m.At(at).ListenPacket(ctx, "udp", target.Addr.String())
					if err != nil {
						t.Fatal(err)
					}
					wg.Go(func() { _ = ipmi.Serve(ctx, conn, chassisOf, ipmi.Options{VLAN: func() int { return c.shown }}) })
				} else {
					ln, err := m.At(at).Listen(ctx, "tcp", target.Addr.String())
					if err != nil {
						t.Fatal(err)
					}
					wg.Go(func() {
						_ = redfish.Serve(ctx, ln, chassisOf, p, redfish.Options{Address: at, VLAN: func() int { return c.shown }})
					})
				}
				pool := bmc.NewPool(bmc.Options{Network: m.At(netip.MustParseAddr("10.77.0.1"))})
				defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }()
				inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Serial: "SN1", Rack: &inventory.Rack{Name: "r1"}, Unit: 4, Image: &inventory.Image{}, Hardware: &inventory.Hardware{Name: "h"},
					BMC: inventory.BMCTarget{Protocol: string(protocol), Address: at, Profile: &inventory.BMCProfile{Name: "b", VLAN: c.profile}, Network: &inventory.Network{Name: "oob", VLAN: c.network}}}}}
				stage := oob.New(inv, func(context.Context, string) (oob.BMC, error) { return pool.Handle(target), nil })
				steps, diags := stage.Plan(nil)
				if diags.HasErrors() || len(steps) != 1 {
					t.Fatal(diags, steps)
				}
				run := wallRun{onnodetest.NewRun(subject.OfNode("n1"))}
				err := stage.Apply(ctx, run, steps[0])
				if c.want == "" {
					if err != nil || len(run.Findings) > 0 {
						t.Errorf("%s %s, %+v: %v, %+v", protocol, p.Name, c, err, run.Findings)
					}
					return
				}
				if err == nil || len(run.Findings) != 1 || run.Findings[0].Cause != c.want || !strings.Contains(run.Findings[0].Action, "ipmitool lan set 1 vlan id 30") {
					t.Errorf("%s %s, %+v: %v, %+v", protocol, p.Name, c, err, run.Findings)
				}
			})
		}
	}
}
