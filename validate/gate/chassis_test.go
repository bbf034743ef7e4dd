// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/host"
)

func TestJudgeChassis(t *testing.T) {
	t.Parallel()
	psu := func(name string) chassis.Part {
		return chassis.Part{Kind: chassis.Supply, Name: name, Message: "Enabled, OK"}
	}
	warm, limit, turns := 41.0, 40.0, 5400.0
	entry := func(severity, sensor, text string) chassis.LogEntry {
		return chassis.LogEntry{ID: "7", Severity: severity, Sensor: sensor, Message: text}
	}
	for _, c := range []struct {
		name    string
		chassis host.Chassis
		faults  string // PART: CAUSE, joined
		notes   int
	}{
		{"good", host.Chassis{Parts: []chassis.Part{psu("PSU1"), psu("PSU2")}}, "", 0},
		{"failed", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Supply, Name: "PSU1", Failed: true, Message: "Enabled, Critical"}, psu("PSU2")}, Log: []chassis.LogEntry{entry("Critical", "Power Supply", "PSU1 failure detected")}},
			"power supply PSU1: it has failed, by its BMC (Enabled, Critical)", 0},
		{"an empty bay that should not be", host.Chassis{Parts: []chassis.Part{psu("PSU1"), {Kind: chassis.Supply, Name: "PSU2", Absent: true}}}, "power supplies: 1 of 2 are there", 0},
		{"an empty bay beyond what was bought", host.Chassis{Parts: []chassis.Part{psu("PSU1"), psu("PSU2"), {Kind: chassis.Supply, Name: "PSU3", Absent: true}}}, "", 0},
		{"a BMC that tells of one only", host.Chassis{Parts: []chassis.Part{psu("PSU1")}}, "", 1},
		{"no mains", host.Chassis{Parts: []chassis.Part{psu("PSU1"), {Kind: chassis.Supply, Name: "PSU2", NoInput: true}}}, "power supply PSU2: it has no mains: the node has lost its redundancy", 0},
		{"no mains, and the PDU is read", host.Chassis{Watched: true, Parts: []chassis.Part{psu("PSU1"), {Kind: chassis.Supply, Name: "PSU2", NoInput: true}}}, "", 1},
		{"a fan", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Fan, Name: "FAN3", Failed: true, Message: "Enabled, Critical"}}}, "fan FAN3: the BMC finds it failed (Enabled, Critical)", 0},
		{"a fan, and its entry in the log", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Fan, Name: "FAN3", Failed: true, Message: "Enabled, Critical"}}, Log: []chassis.LogEntry{entry("Critical", "Fan", "FAN3 below its lower limit")}},
			"fan FAN3: the BMC finds it failed (Enabled, Critical)", 0},
		{"hot air, and its entry in the log", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Inlet, Name: "Inlet", Failed: true, Reading: &warm, Limit: &limit}}, Log: []chassis.LogEntry{entry("Critical", "Temperature", "Inlet above its upper limit")}},
			"inlet air: it is 41 degrees Celsius, and the limit is 40", 0},
		{"the log has a fan that turns again", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Fan, Name: "FAN3", Speed: &turns}}, Log: []chassis.LogEntry{entry("Critical", "Fan", "FAN3 below its lower limit")}},
			"event log: Fan: new critical entry since the bring-up began: FAN3 below its lower limit", 0},
		{"a fan that stands still", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Fan, Name: "FAN1", Speed: &turns}, {Kind: chassis.Fan, Name: "FAN2", Speed: new(float64)}}}, "", 1},
		{"fans that all stand still", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Fan, Name: "FAN1", Speed: new(float64)}, {Kind: chassis.Fan, Name: "FAN2"}}}, "", 0},
		{"hot air", host.Chassis{Parts: []chassis.Part{{Kind: chassis.Inlet, Name: "Inlet", Failed: true, Reading: &warm, Limit: &limit}}}, "inlet air: it is 41 degrees Celsius, and the limit is 40", 0},
		{"memory", host.Chassis{Log: []chassis.LogEntry{entry("Critical", "Memory", "Uncorrectable ECC")}}, "event log: Memory: new critical entry since the bring-up began: Uncorrectable ECC", 0},
		{"what a bring-up causes", host.Chassis{Log: []chassis.LogEntry{entry("Critical", "Power Unit", "Power off/down"), entry("Critical", "Physical Security", "General Chassis intrusion"),
			entry("Critical", "Power Supply", "Power supply redundancy is lost"), entry("Warning", "Memory", "Correctable ECC"), entry("Critical", "OS Boot", "No bootable media"), entry("OK", "Fan", "on")}}, "", 0},
		{"mains that were switched", host.Chassis{Log: []chassis.LogEntry{entry("Critical", "Power Supply", "PSU2 input lost")}}, "", 1},
	} {
		h := &inventory.Hardware{Name: "h", Power: inventory.Power{Supplies: 2}}
		faults, notes := host.JudgeChassis(h, c.chassis)
		var got []string
		for _, f := range faults {
			got = append(got, f.Cause)
			if f.Action == "" || len(f.Evidence) == 0 || !strings.HasPrefix(f.Cause, f.Part+": ") {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
		if strings.Join(got, "\n") != c.faults || len(notes) != c.notes {
			t.Errorf("%s: %q, %q", c.name, got, notes)
		}
	}
}
