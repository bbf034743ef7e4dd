// SPDX-License-Identifier: Apache-2.0

package oob_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/images/modsign"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

// siteKey is a key that signs modules.
func siteKey(t *testing.T, site string) *modsign.Key {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := modsign.Create(path, site, time.Now()); err != nil {
		t.Fatal(err)
	}
	key, err := modsign.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signedNode is a node whose modules are signed.
func signedNode() *inventory.Node {
	d := &inventory.Driver{Block: inventory.Block{Kind: "cuda", Name: "gpu", Value: cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("proprietary")})}, Version: "535.261.03"}
	return &inventory.Node{Name: "n1", Serial: "SN1", Rack: &inventory.Rack{Name: "r1"}, Unit: 4, Drivers: []*inventory.Driver{d},
		Image: &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Kernel: "linux-image-6.1.0-56-amd64"},
		BMC:   inventory.BMCTarget{Protocol: string(bmc.Redfish)}, Hardware: &inventory.Hardware{Name: "h", SecureBoot: true}}
}

// TestEnrol: the BMCs of each maker add the site's certificate to db, once; it is in force after
// a POST. One that shows no db stops nothing, nor one that keeps nothing: the ramdisk judges.
func TestEnrol(t *testing.T) {
	t.Parallel()
	key, other := siteKey(t, "s"), siteKey(t, "other")
	for _, p := range redfish.Personalities() {
		for _, c := range []struct {
			name  string
			db    []string
			loses bool
			says  string // of the first time
		}{
			{"new", []string{string(other.PEM())}, false, "it is to be in db after the next POST"},
			{"there", []string{string(other.PEM()), string(key.PEM())}, false, "db has it already"},
			{"lost", []string{string(other.PEM())}, true, "it is to be in db after the next POST"},
			{"no db", nil, false, "does not add certificates to db"},
		} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				chassisOf := chassis.New(p.Fit(chassis.Config{Node: "n1", Serial: "SN1", Seed: 1, Keys: c.db,
					Accounts: []chassis.Account{{ID: p.AdminID, Username: "admin", Password: "a-long-password-1", Role: "Administrator", Enabled: true}}}))
				if c.loses {
					chassisOf.LoseWrites("keys")
				}
				wg.Go(func() { _ = chassisOf.Run(ctx) })
				m, at := network.NewMemory(), netip.MustParseAddr("10.77.1.1")
				target := bmc.Target{Node: "n1", Protocol: bmc.Redfish, Addr: netip.AddrPortFrom(at, 443), Username: "admin", Password: secret.NewValue("a-long-password-1"), Serial: "SN1"}
				ln, err := m.At(at).Listen(ctx, "tcp", target.Addr.String())
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					_ = redfish.Serve(ctx, ln, chassisOf, p, redfish.Options{Address: at, SecureBoot: func() bool { return true }})
				})
				pool := bmc.NewPool(bmc.Options{Network: m.At(netip.MustParseAddr("10.77.0.1"))})
				defer func() { _ = pool.Close(context.WithoutCancel(ctx)) }()
				inv := &inventory.Inventory{Nodes: []*inventory.Node{signedNode()}}
				st := oob.New(inv, func(context.Context, string) (oob.BMC, error) { return pool.Handle(target), nil }).Enrolling(&key.Certificate)
				steps, diags := st.Plan(nil)
				if diags.HasErrors() || len(steps) != 2 || steps[1].ID != "n1/bmc.keys" || steps[1].Inputs[0].Value != key.Fingerprint() {
					t.Fatal(diags, steps)
				}
				run := wallRun{onnodetest.NewRun(subject.OfNode("n1"))}
				said := func() (text string) {
					for _, e := range run.Events {
						text += e.Text + "\n"
					}
					return text
				}
				if err := st.Apply(ctx, run, steps[1]); err != nil || !strings.Contains(said(), c.says) || len(run.Findings) > 0 {
					t.Errorf("%s, %s: %v; %s", p.Name, c.name, err, said())
				}
				chassisOf.ApplyBIOS()
				keys, _ := chassisOf.Keys()
				n := len(c.db)
				if c.name == "new" {
					n++
				}
				if len(keys) != n || c.name == "new" && keys[n-1] != string(key.PEM()) {
					t.Errorf("%s, %s: db has %d certificates", p.Name, c.name, len(keys))
				}
				want := map[string]string{"new": "conforms", "there": "conforms", "lost": "differs", "no db": "unknown"}[c.name]
				if o, err := st.Observe(ctx, run, steps[1]); err != nil || string(o.State) != want {
					t.Errorf("%s, %s: %s (%s): %v", p.Name, c.name, o.State, o.Evidence, err)
				}
				if c.name == "new" { // nothing is added twice
					time.Sleep(time.Second) // an effect of its own
					if err := st.Apply(ctx, run, steps[1]); err != nil || !strings.Contains(said(), "db has it already") {
						t.Errorf("%s again: %v", p.Name, err)
					}
					if _, pending := chassisOf.Keys(); len(pending) > 0 {
						t.Errorf("%s: it is added twice", p.Name)
					}
				}
			})
		}
	}
}

// TestEnrolOrder: the certificate is added before the power-on that takes it up, where a node
// needs it and its BMC speaks Redfish; of others without a console the plan says that it is for a
// person to do.
func TestEnrolOrder(t *testing.T) {
	t.Parallel()
	for protocol, want := range map[bmc.Protocol]bool{bmc.Redfish: true, bmc.IPMI: false} {
		n := signedNode()
		n.BMC.Protocol = string(protocol)
		inv := &inventory.Inventory{Nodes: []*inventory.Node{n}}
		steps := oob.Weave(inv, []plan.Step{{ID: "n1/install.netboot", Stage: "install", Subject: subject.OfNode("n1")}, {ID: "n1/install.write", Stage: "install", Subject: subject.OfNode("n1")}})
		has := func(s plan.Step) bool {
			return slices.ContainsFunc(s.Needs, func(x plan.Need) bool { return x.Step == "n1/bmc.keys" })
		}
		if has(steps[0]) != want || has(steps[1]) {
			t.Errorf("%s: %+v", protocol, steps)
		}
		n.Hardware.Console.Port = "ttyS1"
		if _, diags := oob.New(inv, nil).Plan(nil); len(diags) != 0 {
			t.Errorf("%s: with a console: %v", protocol, diags)
		}
		n.Hardware.Console.Port = ""
		_, diags := oob.New(inv, nil).Plan(nil)
		if diags.HasErrors() || (len(diags) == 0) != want || !want && !strings.Contains(diags[0].Detail, "drivers of nodes (1 of them) have kernel modules that are signed with the site's key, and BMCs that speak ipmi cannot") {
			t.Errorf("%s: %v", protocol, diags)
		}
	}
}
