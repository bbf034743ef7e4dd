// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// demo is a site of two racks with four nodes each.
const demo = "../../examples/demo"

// today is the day of tests that load sites: what sites allow, and the support of
// drivers, ends some day.
var today = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

// load loads a site anew: a rehearsal uses its inventory up.
func load(t testing.TB, dir string, vars map[string]string) *inventory.Inventory {
	t.Helper()
	inv, diags, _ := provision.Load(dir, inventory.Options{Variables: vars, Now: today})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return inv
}

// rehearse runs a rehearsal of the demo site.
func rehearse(t testing.TB, o rehearsal.Options) rehearsal.Summary {
	t.Helper()
	sum, err := rehearsal.Run(context.Background(), load(t, demo, nil), o)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestFaults plants each kind alone. The suspects are exactly the planted part,
// cause and action are words, every node without a fault is accepted, and why says
// it as written in testdata/why.
func TestFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		fault string
		out   []string // nodes that must not be accepted
		part  string   // in the part of the finding
		cause string   // in its cause
	}{
		{"kind=bmc-dead,node=r01-u09", []string{"r01-u09"}, "BMC", "no device has the BMC's address"},
		{"kind=bmc-locked,node=r01-u09", []string{"r01-u09"}, "BMC", "locked"},
		{"kind=bmc-wrong-password,node=r01-u09", []string{"r01-u09"}, "BMC", "password"},
		{"kind=bmc-write-lost,node=r01-u09", []string{"r01-u09"}, "BMC", "boot device"},
		{"kind=bmc-swapped,node=r01-u09,with=r02-u01", []string{"r01-u09", "r02-u01"}, "BMC", "another node"},
		{"kind=dhcp-loss,node=r01-u09", []string{"r01-u09"}, "boot NIC", "no DHCP request"},
		{"kind=http-stall,node=r01-u09", []string{"r01-u09"}, "boot NIC", "stopped"},
		{"kind=wrong-serial,node=r01-u09", []string{"r01-u09"}, "identity", "not the one in the inventory"},
		{"kind=missing-dimm,node=r01-u09", []string{"r01-u09"}, "DIMM", "hardware"},
		{"kind=missing-nic,node=r01-u09,port=rail/3", []string{"r01-u09"}, "rail/3", "hardware"},
		{"kind=disk-write-error,node=r01-u09", []string{"r01-u09"}, "disk", "written"},
		{"kind=kernel-hang,node=r01-u09", []string{"r01-u09"}, "ramdisk", "agent never called"},
		{"kind=repo-gone", nil, "repository", "packages"},
		{"kind=cable-swap,node=r01-u09,with=r02-u01,port=rail/3", []string{"r01-u09", "r02-u01"}, "rail/3", "exchanged"},
		{"kind=degraded-link,node=r01-u09,port=rail/3", []string{"r01-u09"}, "rail 3", ""},
		{"kind=pdu-trip,pdu=r01/a", nil, "r01/a", "breaker"},
		{"kind=other-dhcp", nil, "DHCP server 10.", "another DHCP server answers on the boot network"},
		{"kind=controller-kill,at=install.write", nil, "", ""},
	}
	const elsewhere = 12 // TestUntaggedPort, TestSecureBootFaults, TestBadUplink, TestBadLeaf, TestTrunks, TestDeadTrunk, TestSubnetManagerLost, TestPowerShelves
	if n := len(tests) + len(ofExamples) + elsewhere; n != len(fault.Rows()) {
		t.Errorf("%d kinds are tested, there are %d", n, len(fault.Rows()))
	}
	for _, tt := range tests {
		f, err := fault.Parse(tt.fault)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(string(f.Kind), func(t *testing.T) {
			t.Parallel()
			w := &witnessed{t: t, nodes: concerned(f)}
			sum, err := rehearsal.Run(context.Background(), roomy(load(t, demo, nil)), w.asked(rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}}, whyTimes[f.Kind]))
			if err != nil {
				t.Fatal(err)
			}
			check(t, sum, f, tt.out, tt.part, tt.cause)
			w.golden(string(f.Kind))
		})
	}
}

// check compares a summary with what one fault must lead to.
func check(t *testing.T, sum rehearsal.Summary, f fault.Fault, out []string, part, cause string) {
	t.Helper()
	if len(sum.Faults) != 1 || !sum.Faults[0].Found {
		t.Errorf("%s was not found", f.Kind)
	}
	if len(sum.Unexpected) > 0 {
		t.Errorf("blamed beside %s: %+v", f.Kind, sum.Unexpected)
	}
	var not []string
	found := part == ""
	see := func(parts, why, action string) {
		found = found || strings.Contains(parts, part) && strings.Contains(why, cause) && action != ""
	}
	for _, q := range sum.Quarantined {
		not = append(not, q.Node)
		see(q.Part, q.Cause, q.Action)
		if len(q.Evidence) == 0 {
			t.Errorf("%s has no evidence", q.Node)
		}
	}
	for _, g := range sum.Findings {
		see(g.Part, g.Cause, g.Action)
	}
	slices.Sort(not)
	if !slices.Equal(not, out) {
		t.Errorf("quarantined %v, want %v\n%+v", not, out, sum.Quarantined)
	}
	if !found {
		t.Errorf("no finding names %q with %q: %+v %+v", part, cause, sum.Quarantined, sum.Findings)
	}
	ofSite := f.Kind == fault.RepoGone || f.Kind == fault.OtherDHCP
	if !ofSite && len(sum.Accepted)+len(not) != 8 {
		t.Errorf("accepted %v, waiting %v", sum.Accepted, sum.Waiting)
	}
	if ofSite && (len(sum.Accepted) != 0 || len(sum.Waiting) != 8) {
		t.Errorf("accepted %v, waiting %v", sum.Accepted, sum.Waiting)
	}
	if f.Kind == fault.ControllerKill && sum.Runs != 2 {
		t.Errorf("%d runs", sum.Runs)
	}
}

// TestOtherDHCP: a DHCP server that is plugged in while nodes boot is one finding about
// the site, with what it says of itself. Nodes take its offers, wait for it to go
// away, and none is blamed.
func TestOtherDHCP(t *testing.T) {
	t.Parallel()
	f := fault.Fault{Kind: fault.OtherDHCP, At: "install.write"}
	sum := rehearse(t, rehearsal.Options{Seed: 7, Faults: []fault.Fault{f}})
	if len(sum.Quarantined) != 0 || !sum.AsExpected() {
		t.Errorf("quarantined %+v", sum.Quarantined)
	}
	took := 0
	for _, w := range sum.Waiting {
		if strings.Contains(w.Cause, "another DHCP server is on the boot network") {
			took++
		}
	}
	if took == 0 {
		t.Errorf("no node waits for the other server to go: %+v", sum.Waiting)
	}
	if len(sum.Findings) != 1 || !strings.Contains(sum.Findings[0].Cause, `vendor class "PXEClient"`) || len(sum.Findings[0].Evidence) != 2 {
		t.Errorf("findings %+v; want one, with the vendor class and what was offered", sum.Findings)
	}
}

// TestWhole: without a fault every node is accepted.
func TestWhole(t *testing.T) {
	t.Parallel()
	sum := rehearse(t, rehearsal.Options{Seed: 1})
	if len(sum.Accepted) != 8 || len(sum.Quarantined)+len(sum.Waiting)+len(sum.Findings) != 0 || !sum.AsExpected() {
		t.Errorf("%+v", sum)
	}
	if sum.SimulatedTime <= 0 || sum.PredictedTime <= 0 || sum.PeakMemory == 0 || sum.Records == 0 {
		t.Errorf("figures: %+v", sum)
	}
}
