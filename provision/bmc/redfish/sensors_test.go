// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"testing"
)

// TestAbsentSensors: what a service shows of an empty slot is no reading, in the
// resources Power and Thermal, in the collection Sensors, and among the parts.
func TestAbsentSensors(t *testing.T) {
	t.Parallel()
	state := func(s string) map[string]any { return map[string]any{"State": s} }
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	const chassis = "/redfish/v1/Chassis/1"
	power := map[string]any{
		"PowerControl": []any{map[string]any{"Name": "Node", "PowerConsumedWatts": 900, "Status": state("Enabled")}, map[string]any{"Name": "Sled 2", "PowerConsumedWatts": 0, "Status": state("Absent")}},
		"Voltages":     []any{map[string]any{"Name": "P12V", "ReadingVolts": 12.1}, map[string]any{"Name": "P12V_2", "ReadingVolts": 0, "Status": state("absent")}},
	}
	thermal := map[string]any{
		"Temperatures": []any{map[string]any{"Name": "Inlet Temp", "ReadingCelsius": 24, "Status": state("Enabled")}, map[string]any{"Name": "Inlet Temp 2", "ReadingCelsius": 0, "Status": state("Absent")}},
		"Fans":         []any{map[string]any{"Name": "Fan 1", "Reading": 8000, "Status": state("Enabled")}, map[string]any{"Name": "Fan 2", "Reading": 0, "Status": state("Absent")}, map[string]any{"Name": "Fan 3", "Reading": 0, "Status": state("Disabled")}},
	}
	for name, docs := range map[string]map[string]map[string]any{
		"Power and Thermal": {chassis: {"Power": ref(chassis + "/Power"), "Thermal": ref(chassis + "/Thermal")}, chassis + "/Power": power, chassis + "/Thermal": thermal},
		"Sensors": {chassis: {"Sensors": ref(chassis + "/Sensors")},
			chassis + "/Sensors":   {"Members": []any{ref(chassis + "/Sensors/a"), ref(chassis + "/Sensors/b")}},
			chassis + "/Sensors/a": {"Name": "GPU 1 Temp", "Reading": 41, "ReadingUnits": "Cel", "Status": state("Enabled")},
			chassis + "/Sensors/b": {"Name": "GPU 2 Temp", "Reading": 0, "ReadingUnits": "Cel", "Status": state("Absent")}},
	} {
		want := map[string]int{"Power and Thermal": 4, "Sensors": 1}[name]
		f := newFake()
		for path, doc := range docs {
			f.docs[path] = doc
		}
		rig(t, f, nil, func(ctx context.Context, c *Client) {
			if err := c.Open(ctx); err != nil {
				t.Fatal(err)
			}
			got, err := c.Sensors(ctx)
			if err != nil || len(got) != want {
				t.Errorf("%s: %d readings, want %d: %+v, %v", name, len(got), want, got, err)
			}
			for _, r := range got {
				if r.Value == 0 {
					t.Errorf("%s: %s reads 0 and is not there", name, r.Name)
				}
			}
			parts, err := c.Parts(ctx)
			for _, p := range parts {
				if err != nil || p.Kind == Inlet && p.Name != "Inlet Temp" || p.Kind == Fan && p.Name == "Fan 2" && !p.Absent || p.Kind == Fan && (p.Speed != nil) != (p.Name == "Fan 1") || p.Speed != nil && *p.Speed != 8000 {
					t.Errorf("%s: part %+v, %v", name, p, err)
				}
			}
		})
	}
}
