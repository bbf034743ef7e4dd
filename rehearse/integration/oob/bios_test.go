// SPDX-License-Identifier: Apache-2.0

// Package oob_test tries the stage of BMCs on the simulated BMCs of the virtual rack:
// settings of firmware, on nodes that take them up in a self-test.
package oob_test

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// post is a mainboard that does nothing but its self-test.
type post struct {
	c     *chassis.Chassis
	stuck map[string]string // settings that each self-test puts back
}

// Run implements chassis.Board.
func (p post) Run(ctx context.Context, _ bool) chassis.Exit {
	p.c.SetPhase("POST")
	if (clock.Wall{}).Sleep(ctx, 3*time.Minute) != nil {
		return chassis.Halt
	}
	p.c.ApplyBIOS()
	if p.stuck != nil {
		_ = p.c.SetBIOS(p.stuck) // settings that are there
		p.c.ApplyBIOS()
	}
	p.c.SetPhase("OS")
	<-ctx.Done()
	return chassis.Halt
}

// wallRun is a run on the clock of its bubble.
type wallRun struct{ *onnodetest.Run }

func (wallRun) Clock() clock.Clock { return clock.Wall{} }

// biosRig is a node with a BMC of one maker.
type biosRig struct {
	c     *chassis.Chassis
	stage *oob.Stage
	run   wallRun
	ask   plan.Step
	check plan.Step
}

// onEach runs body on a BMC of every maker, on virtual time. want is made from the
// settings as delivered.
func onEach(t *testing.T, want func(delivered map[string]string) map[string]string, body func(*testing.T, *biosRig)) {
	t.Parallel()
	for _, p := range redfish.Personalities() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				c := chassis.New(p.Fit(chassis.Config{Node: "n1", Serial: "SN1", Seed: 1,
					Accounts: []chassis.Account{{ID: p.AdminID, Username: "admin", Password: "a-long-password-1", Role: "Administrator", Enabled: true}}}))
				c.SetBoard(post{c: c})
				wg.Go(func() { _ = c.Run(ctx) })
				m, at := network.NewMemory(), netip.MustParseAddr("10.77.1.1")
				target := bmc.Target{Node: "n1", Protocol: bmc.Redfish, Addr: netip.AddrPortFrom(at, 443), Username: "admin", Password: secret.NewValue("a-long-password-1"), Serial: "SN1"}
				ln, err := m.At(at).Listen(ctx, "tcp", target.Addr.String())
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() { _ = redfish.Serve(ctx, ln, c, p, redfish.Options{Address: at}) })
				pool := bmc.NewPool(bmc.Options{Network: m.At(netip.MustParseAddr("10.77.0.1"))})
				defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }()
				inv := &inventory.Inventory{Nodes: []*inventory.Node{{Name: "n1", Serial: "SN1", Rack: &inventory.Rack{Name: "r1"}, Unit: 4, Image: &inventory.Image{},
					BMC: inventory.BMCTarget{Protocol: string(bmc.Redfish)}, Hardware: &inventory.Hardware{Name: "h", BIOS: want(p.Attributes)}}}}
				r := &biosRig{c: c, run: wallRun{onnodetest.NewRun(subject.OfNode("n1"))}, stage: oob.New(inv, func(context.Context, string) (oob.BMC, error) { return pool.Handle(target), nil })}
				steps, diags := r.stage.Plan(nil)
				if diags.HasErrors() || len(steps) != 3 {
					t.Fatal(diags, steps)
				}
				r.ask, r.check = steps[1], steps[2]
				if err := c.Press(chassis.PressOn); err != nil {
					t.Fatal(err)
				}
				time.Sleep(10 * time.Minute)
				body(t, r)
			})
		})
	}
}

// flipped asks for another value of every other setting.
func flipped(delivered map[string]string) map[string]string {
	want := map[string]string{}
	for i, k := range slices.Sorted(maps.Keys(delivered)) {
		if i%2 == 0 {
			want[k] = delivered[k] + "2"
		}
	}
	return want
}

func (r *biosRig) observe(t *testing.T, want string) {
	t.Helper()
	if o, err := r.stage.Observe(t.Context(), r.run, r.check); err != nil || string(o.State) != want {
		t.Errorf("observed %+v, %v; want %s", o, err, want)
	}
}

// A node in service is rebooted once, and only once, for its settings.
func TestBIOSOfNodeInService(t *testing.T) {
	onEach(t, flipped, func(t *testing.T, r *biosRig) {
		r.observe(t, "differs")
		if err := r.stage.Apply(t.Context(), r.run, r.ask); err != nil {
			t.Fatal(err)
		}
		r.observe(t, "differs") // it waits for a self-test
		before := r.c.Counters()
		for range 2 {
			if err := r.stage.Apply(t.Context(), r.run, r.check); err != nil {
				t.Fatal(err)
			}
		}
		r.observe(t, "conforms")
		if now := r.c.Counters(); now.PowerOns+now.Resets != before.PowerOns+before.Resets+1 || len(r.run.Findings) > 0 {
			t.Errorf("%+v before, %+v after; %+v", before, now, r.run.Findings)
		}
	})
}

// In a bring-up the power-on is the self-test that takes the settings up.
func TestBIOSOfBringUp(t *testing.T) {
	onEach(t, flipped, func(t *testing.T, r *biosRig) {
		if err := r.stage.Apply(t.Context(), r.run, r.ask); err != nil {
			t.Fatal(err)
		}
		if err := r.c.Press(chassis.ForceRestart); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		before := r.c.Counters()
		if err := r.stage.Apply(t.Context(), r.run, r.check); err != nil {
			t.Fatal(err)
		}
		if now := r.c.Counters(); now != before {
			t.Errorf("%+v before, %+v after", before, now)
		}
		r.observe(t, "conforms")
	})
}

// Settings that do not come into force are a finding about the BIOS of that node,
// with what the BMC says.
func TestBIOSNotTaken(t *testing.T) {
	unknown := func(map[string]string) map[string]string { return map[string]string{"NoSuchSetting": "On"} }
	for _, c := range []struct {
		name     string
		want     func(map[string]string) map[string]string
		spoil    func(*biosRig)
		cause    string
		evidence string
	}{
		{"no such setting", unknown, func(*biosRig) {}, "refuses a BIOS setting", `no setting "NoSuchSetting"`},
		{"a BMC that does not keep it", flipped, func(r *biosRig) { r.c.LoseWrites("bios") }, "refuses a BIOS setting", "does not keep it"},
		{"a firmware that puts it back", flipped, func(r *biosRig) {
			now, _ := r.c.BIOS()
			r.c.SetBoard(post{r.c, maps.Clone(now)})
		}, "not in force after a self-test", "asked for is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			onEach(t, c.want, func(t *testing.T, r *biosRig) {
				c.spoil(r)
				err := r.stage.Apply(t.Context(), r.run, r.ask)
				if err == nil {
					err = r.stage.Apply(t.Context(), r.run, r.check)
				}
				if err == nil || len(r.run.Findings) != 1 {
					t.Fatalf("%v, %+v", err, r.run.Findings)
				}
				f := r.run.Findings[0]
				if !strings.Contains(f.Cause, c.cause) || !strings.Contains(strings.Join(f.Evidence, " "), c.evidence) || f.Suspects[0].Part != "BIOS" || f.Action == "" {
					t.Errorf("%+v", f)
				}
			})
		})
	}
}
