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

// TestIntake: a service without the resource Thermal says in ThermalMetrics how warm the
// air is that comes in, and its sensor has the limit.
func TestIntake(t *testing.T) {
	t.Parallel()
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	const chassis = "/redfish/v1/Chassis/1"
	for _, tt := range []struct {
		name    string
		reading any
		sensor  map[string]any
		limit   float64 // 0: none
		failed  bool
		parts   int
	}{
		{"well", 24.5, map[string]any{"Name": "Front", "Thresholds": map[string]any{"UpperCaution": map[string]any{"Reading": 35}, "UpperCritical": map[string]any{"Reading": 40}}}, 35, false, 1},
		{"above its limit", 36, map[string]any{"Name": "Front", "Thresholds": map[string]any{"UpperCritical": map[string]any{"Reading": 36}}}, 36, true, 1},
		{"by its sensor's health", 30, map[string]any{"Name": "Front", "Status": map[string]any{"State": "Enabled", "Health": "Critical"}}, 0, true, 1},
		{"without its sensor", 30, nil, 0, false, 1},
		{"not measured", nil, nil, 0, false, 0},
	} {
		f := newFake()
		f.docs[chassis] = map[string]any{"ThermalSubsystem": ref(chassis + "/ThermalSubsystem")}
		f.docs[chassis+"/ThermalSubsystem"] = map[string]any{"ThermalMetrics": ref(chassis + "/ThermalSubsystem/ThermalMetrics")}
		f.docs[chassis+"/ThermalSubsystem/ThermalMetrics"] = map[string]any{"TemperatureSummaryCelsius": map[string]any{"Intake": map[string]any{"Reading": tt.reading, "DataSourceUri": chassis + "/Sensors/front"}}}
		if tt.sensor != nil {
			f.docs[chassis+"/Sensors/front"] = tt.sensor
		}
		rig(t, f, nil, func(ctx context.Context, c *Client) {
			if err := c.Open(ctx); err != nil {
				t.Fatal(err)
			}
			parts, err := c.Parts(ctx)
			if err != nil || len(parts) != tt.parts {
				t.Errorf("%s: %+v, %v", tt.name, parts, err)
				return
			}
			for _, p := range parts {
				if p.Kind != Inlet || p.Failed != tt.failed || (p.Limit != nil) != (tt.limit > 0) || p.Limit != nil && *p.Limit != tt.limit {
					t.Errorf("%s: %+v", tt.name, p)
				}
			}
		})
	}
}
