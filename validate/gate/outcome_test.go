// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
	"github.com/ironrail/ironrail/validate/gate/look"
)

func outcomeOf(list []judge.Outcome, name string) judge.Outcome {
	for _, o := range list {
		if o.Gate == name {
			return o
		}
	}
	return judge.Outcome{}
}

// TestOutcomes: a gate passes only where it had something to look at, and what the
// site allows is neither a pass nor a fault.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 1, Interconnect: "nvswitch"}}}
	s := look.Seen{Health: wire.Health{PCI: []wire.PCILink{{Address: "0000:01:00.0", Class: "030200", Vendor: "10de"}},
		Memory: []wire.MemoryErrors{{Controller: "mc0", Uncorrected: 2}}}, Time: &look.Time{Program: look.Chronyd, Offset: 1, Synced: true}}
	_, _, all := gate.JudgeEach(h, map[string]string{gate.Clock: "no servers yet"}, s)
	for name, want := range map[string]judge.Verdict{"gpu-count": judge.Pass, "gpu-memory": judge.NotJudged, "nvlink": judge.NotJudged, "pcie": judge.NotJudged, "host-memory": judge.Fail,
		"kernel-log": judge.NotJudged, gate.Clock: judge.Allowed, "xgmi": "", "ports": "", gate.IOMMU: "", "disks": ""} {
		o := outcomeOf(all, name)
		if o.Verdict != want || (o.Verdict != judge.Pass && want != "") == (o.Why == "") {
			t.Errorf("%s: %+v, want %q", name, o, want)
		}
	}
	if o := outcomeOf(all, gate.Clock); o.Why != "clock: the clock is off by 1.000 s (allowed by the site: no servers yet)" {
		t.Errorf("%+v", o)
	}
	if i := slices.IndexFunc(all, func(o judge.Outcome) bool { return o.Gate == "" }); i >= 0 {
		t.Errorf("%+v has no name", all[i])
	}
}

// TestChassisOutcomes: a BMC that tells nothing of fans proves nothing of them.
func TestChassisOutcomes(t *testing.T) {
	t.Parallel()
	all := host.ChassisOutcomes(&inventory.Hardware{}, host.Chassis{Logged: true, Parts: []chassis.Part{{Kind: chassis.Supply, Name: "PSU1", Failed: true}, {Kind: chassis.Supply, Name: "PSU2"}}})
	for name, want := range map[string]judge.Verdict{host.PowerSupplies: judge.Fail, host.Fans: judge.NotJudged, host.InletAir: judge.NotJudged, host.BMCLog: judge.Pass} {
		if o := outcomeOf(all, name); o.Verdict != want {
			t.Errorf("%s: %+v, want %q", name, o, want)
		}
	}
	if o := outcomeOf(host.ChassisOutcomes(&inventory.Hardware{}, host.Chassis{}), host.BMCLog); o.Verdict != judge.NotJudged {
		t.Errorf("a log that was not read: %+v", o)
	}
}
