package gate_test

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate"
)

func outcomeOf(list []gate.Outcome, name string) gate.Outcome {
	for _, o := range list {
		if o.Gate == name {
			return o
		}
	}
	return gate.Outcome{}
}

// TestOutcomes: a gate passes only where it had something to look at, and what the
// site allows is neither a pass nor a fault.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 1, Interconnect: "nvswitch"}}}
	s := gate.Seen{Health: wire.Health{PCI: []wire.PCILink{{Address: "0000:01:00.0", Class: "030200", Vendor: "10de"}},
		Memory: []wire.MemoryErrors{{Controller: "mc0", Uncorrected: 2}}}, Time: &gate.Time{Offset: 1, Synced: true}}
	_, _, all := gate.Verdicts(h, map[string]string{gate.Clock: "no servers yet"}, s)
	for name, want := range map[string]gate.Verdict{"gpu-count": gate.Pass, "gpu-memory": gate.NotJudged, "nvlink": gate.NotJudged, "pcie": gate.NotJudged, "host-memory": gate.Fail,
		"kernel-log": gate.NotJudged, gate.Clock: gate.Allowed, "xgmi": "", "ports": "", gate.IOMMU: "", "disks": ""} {
		o := outcomeOf(all, name)
		if o.Verdict != want || (o.Verdict != gate.Pass && want != "") == (o.Why == "") {
			t.Errorf("%s: %+v, want %q", name, o, want)
		}
	}
	if o := outcomeOf(all, gate.Clock); o.Why != "clock: the clock is off by 1.000 s (allowed by the site: no servers yet)" {
		t.Errorf("%+v", o)
	}
	if i := slices.IndexFunc(all, func(o gate.Outcome) bool { return o.Gate == "" }); i >= 0 {
		t.Errorf("%+v has no name", all[i])
	}
}

// TestChassisOutcomes: a BMC that tells nothing of fans proves nothing of them.
func TestChassisOutcomes(t *testing.T) {
	t.Parallel()
	all := gate.ChassisOutcomes(&inventory.Hardware{}, gate.Chassis{Logged: true, Parts: []gate.Part{{Kind: gate.Supply, Name: "PSU1", Bad: true}, {Kind: gate.Supply, Name: "PSU2"}}})
	for name, want := range map[string]gate.Verdict{gate.PowerSupplies: gate.Fail, gate.Fans: gate.NotJudged, gate.InletAir: gate.NotJudged, gate.BMCLog: gate.Pass} {
		if o := outcomeOf(all, name); o.Verdict != want {
			t.Errorf("%s: %+v, want %q", name, o, want)
		}
	}
	if o := outcomeOf(gate.ChassisOutcomes(&inventory.Hardware{}, gate.Chassis{}), gate.BMCLog); o.Verdict != gate.NotJudged {
		t.Errorf("a log that was not read: %+v", o)
	}
}
