// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/rehearse/virtual"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// demoSite is the site that the cases plant in.
func demoSite(t *testing.T) *inventory.Inventory { return siteOf(t, "demo") }

func siteOf(t *testing.T, example string) *inventory.Inventory {
	t.Helper()
	inv, diags, _ := provision.Load("../../examples/"+example, inventory.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return inv
}

func finding(s ...stage.Suspect) []stage.Finding {
	return []stage.Finding{{Suspects: s, Cause: "a cause", Action: "an action"}}
}

// TestFoundIsThePart: a fault is found when the very part is named, and what is named
// beside it is unexpected. The wrong parts are those that were once taken for the right
// ones: another GPU, another rail, a BMC for a cable, another disk, another node.
func TestFoundIsThePart(t *testing.T) {
	t.Parallel()
	inv := demoSite(t)
	hw := virtual.FaultyPart{GPU: 3, GPUAddress: "0000:5d:00.0", DiskSerial: "S1"}
	node := func(part string) stage.Suspect { return stage.Suspect{Subject: subject.OfNode("r01-u09"), Part: part} }
	link := func(name string) stage.Suspect {
		return stage.Suspect{Subject: subject.ID{Kind: subject.Link, Name: name}, Part: "P3"}
	}
	for _, c := range []struct {
		fault string
		right []stage.Suspect
		wrong []stage.Suspect
	}{
		{"kind=pcie-width,node=r01-u09", []stage.Suspect{node("GPU 3 at 0000:5d:00.0"), node("GPU at 0000:5d:00.0")}, []stage.Suspect{node("GPU 5 at 0000:9b:00.0"), node("GPU 30"), node("GPU")}},
		{"kind=missing-gpu,node=r01-u09", []stage.Suspect{node("GPU"), node("GPU 3 at 0000:5d:00.0")}, []stage.Suspect{node("GPU 5 at 0000:9b:00.0")}},
		{"kind=degraded-link,node=r01-u09,port=rail/0", []stage.Suspect{node("rail 0"), node("rail 0 (P1)"), link("r01-u09/rail/0")}, []stage.Suspect{node("rail 7"), node("BMC"), link("r01-u09/rail/7"), link("r01-u01/rail/0")}},
		{"kind=cable-swap,node=r01-u09,with=r02-u01,port=rail/3", []stage.Suspect{link("r01-u09/rail/3"), link("r02-u01/rail/3"), node("rail/3 (OSFP 2/2)")}, []stage.Suspect{node("BMC"), node("rail/30 (OSFP 2/2)"), link("r01-u09/rail/2")}},
		{"kind=disk-write-error,node=r01-u09", []stage.Suspect{node("disk vda (Model S1)")}, []stage.Suspect{node("disk vdb (Model S2)"), node("disk"), node("disk S12")}},
		{"kind=bmc-dead,node=r01-u09", []stage.Suspect{node("BMC")}, []stage.Suspect{{Subject: subject.OfNode("r01-u01"), Part: "BMC"}, node("boot NIC 02:00:00:00:00:01")}},
		{"kind=missing-nic,node=r01-u09,port=rail/3", []stage.Suspect{node("nic rail/3"), node("nic rail/3 (P4)")}, []stage.Suspect{node("nic rail/30"), node("nic mgmt/0"), node("rail 3")}},
	} {
		f, err := fault.Parse(c.fault)
		if err != nil {
			t.Fatal(err)
		}
		e := expect(f, inv, hw)
		for _, s := range c.right {
			if all := finding(s); !e.matchesAny(all) || len(listExtraSuspects(all, []expectation{e})) > 0 {
				t.Errorf("%s: %+v is not found; expected %s", c.fault, s, e)
			}
		}
		for _, s := range c.wrong {
			beside := listExtraSuspects(finding(s), []expectation{e})
			if e.matchesAny(finding(s)) || len(beside) != 1 || beside[0].Part != s.Part || beside[0].Cause != "a cause" {
				t.Errorf("%s: %+v passes for it: %+v", c.fault, s, beside)
			}
		}
	}
}

// TestEveryKindExpects: every kind of fault names its suspect.
func TestEveryKindExpects(t *testing.T) {
	t.Parallel()
	inv := demoSite(t)
	for _, row := range fault.Rows() {
		f := fault.Fault{Kind: row.Kind, Node: "r01-u09", With: "r02-u01", PDU: "r01/a", Leaf: "net/leaf-1"}
		if slices.Contains([]fault.Kind{fault.BadUplink, fault.SlowTrunk, fault.TrunkErrors, fault.DeadTrunk}, row.Kind) {
			f.Port = "net/leaf-1/33"
		}
		of := inv
		if slices.Contains([]fault.Kind{fault.SMDead, fault.OtherSM}, row.Kind) { // the demo has no InfiniBand
			of, f.Leaf = siteOf(t, "hgx-h100"), "r01/leaf-1"
		}
		if got := expect(f, of, virtual.FaultyPart{GPU: 3}).String(); strings.TrimSpace(got) == "" {
			t.Errorf("%s leads to nothing", row.Kind)
		}
	}
}
