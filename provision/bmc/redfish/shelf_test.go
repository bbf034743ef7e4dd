// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// TestPowerShelf: shelves as their makers' services show them. One has no systems, numbers
// its supplies from 1 and measures their input by sensors of the chassis; the other shows
// the shelf twice, numbers from 0, and says true and false of what is on.
func TestPowerShelf(t *testing.T) {
	t.Parallel()
	ref := func(p string) map[string]any { return map[string]any{"@odata.id": p} }
	refs := func(p ...string) (out []any) {
		for _, q := range p {
			out = append(out, ref(q))
		}
		return out
	}
	const root = "/redfish/v1/Chassis"
	delta := map[string]map[string]any{
		root:                                  {"Members": refs(root + "/PowerShelf_0")},
		root + "/PowerShelf_0":                {"Manufacturer": "DELTA", "Model": "AHE50V660A33KWR", "SerialNumber": "S1", "PowerSubsystem": ref(root + "/PowerShelf_0/PowerSubsystem"), "Sensors": ref(root + "/PowerShelf_0/Sensors")},
		root + "/PowerShelf_0/PowerSubsystem": {"PowerSupplies": ref(root + "/PowerShelf_0/PowerSubsystem/PowerSupplies")},
		root + "/PowerShelf_0/PowerSubsystem/PowerSupplies":                   {"Members": refs(root+"/PowerShelf_0/PowerSubsystem/PowerSupplies/PowerSupplyUnit%201", root+"/PowerShelf_0/PowerSubsystem/PowerSupplies/2", root+"/PowerShelf_0/PowerSubsystem/PowerSupplies/3")},
		root + "/PowerShelf_0/PowerSubsystem/PowerSupplies/PowerSupplyUnit 1": {"Status": map[string]any{"State": "Enabled", "Health": "OK"}},
		root + "/PowerShelf_0/PowerSubsystem/PowerSupplies/2":                 {"Status": map[string]any{"State": "Enabled", "Health": "Critical"}},
		root + "/PowerShelf_0/PowerSubsystem/PowerSupplies/3":                 {"Status": map[string]any{"State": "Absent"}},
		root + "/PowerShelf_0/Sensors":                                        {"Members": refs(root+"/PowerShelf_0/Sensors/ps1_input_voltage", root+"/PowerShelf_0/Sensors/ps2_input_voltage", root+"/PowerShelf_0/Sensors/total_power_in")},
		root + "/PowerShelf_0/Sensors/ps1_input_voltage":                      {"Reading": 241.5, "ReadingType": "Voltage"},
		root + "/PowerShelf_0/Sensors/ps2_input_voltage":                      {"Reading": 0, "ReadingType": "Voltage"},
	}
	liteOn := map[string]map[string]any{
		root:                                {"Members": refs(root+"/chassis", root+"/powershelf")},
		root + "/chassis":                   {"Manufacturer": "LITE-ON TECHNOLOGY CORP."},
		root + "/powershelf":                {"Manufacturer": "LITE-ON TECHNOLOGY CORP.", "Model": "PF-1333-7RB", "PowerSubsystem": ref(root + "/powershelf/PowerSubsystem"), "Sensors": ref(root + "/powershelf/Sensors")},
		root + "/powershelf/PowerSubsystem": {"PowerSupplies": ref(root + "/powershelf/PowerSubsystem/PowerSupplies")},
		root + "/powershelf/PowerSubsystem/PowerSupplies":   {"Members": refs(root+"/powershelf/PowerSubsystem/PowerSupplies/0", root+"/powershelf/PowerSubsystem/PowerSupplies/1", root+"/powershelf/PowerSubsystem/PowerSupplies/2")},
		root + "/powershelf/PowerSubsystem/PowerSupplies/0": {"Name": "psu0", "PowerState": true, "Status": map[string]any{"State": "Standby", "Health": "OK"}},
		root + "/powershelf/PowerSubsystem/PowerSupplies/1": {"Name": "psu1", "PowerState": false, "Status": map[string]any{"State": "Enabled", "Health": "OK"}},
		root + "/powershelf/PowerSubsystem/PowerSupplies/2": {"Name": "psu2", "PowerState": true, "Status": map[string]any{"State": "Enabled", "Health": "Warning"}},
		root + "/powershelf/Sensors":                        {"Members": refs(root+"/powershelf/Sensors/voltage_p0_vin", root+"/powershelf/Sensors/voltage_p2_vin", root+"/powershelf/Sensors/voltage_p2_vout")},
		root + "/powershelf/Sensors/voltage_p0_vin":         {"Reading": 0.2},
		root + "/powershelf/Sensors/voltage_p2_vin":         {"Reading": 239},
		root + "/powershelf/Sensors/voltage_p2_vout":        {"Reading": 0},
	}
	older := map[string]map[string]any{
		root:              {"Members": refs(root + "/1")},
		root + "/1":       {"Power": ref(root + "/1/Power")},
		root + "/1/Power": {"PowerSupplies": []any{map[string]any{"Name": "PS 1", "LineInputVoltage": 230, "Status": map[string]any{"State": "Enabled", "Health": "OK"}}, map[string]any{"Name": "PS 2", "LineInputVoltage": 0, "Status": map[string]any{"State": "Enabled", "Health": "Critical"}}}},
	}
	for _, tt := range []struct {
		name string
		docs map[string]map[string]any
		want string
	}{
		{"Delta", delta, "DELTA AHE50V660A33KWR S1: PowerSupplyUnit 1 well, 2 without input, 3 absent"},
		{"Lite-On", liteOn, "LITE-ON TECHNOLOGY CORP. PF-1333-7RB : psu0 without input, psu1 off, psu2 failed"},
		{"Power", older, "  : PS 1 well, PS 2 without input"},
		{"no shelf", map[string]map[string]any{root: {"Members": refs(root + "/1")}, root + "/1": {"Manufacturer": "any"}}, "  :"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFake()
			for path := range f.docs {
				if strings.HasPrefix(path, "/redfish/v1/Systems") || strings.HasPrefix(path, root) {
					delete(f.docs, path)
				}
			}
			for path, doc := range tt.docs {
				f.docs[path] = doc
			}
			rig(t, f, nil, func(ctx context.Context, c *Client) {
				got, err := c.PowerShelf(ctx)
				if err != nil {
					t.Fatal(err)
				}
				var parts []string
				for _, p := range got.Supplies {
					is := "well"
					switch {
					case p.Absent:
						is = "absent"
					case p.NoInput:
						is = "without input"
					case p.Off:
						is = "off"
					case p.Failed:
						is = "failed"
					}
					parts = append(parts, p.Name+" "+is)
				}
				text := strings.TrimSpace(fmt.Sprintf("%s %s %s: %s", got.Manufacturer, got.Model, got.Serial, strings.Join(parts, ", ")))
				if text != strings.TrimSpace(tt.want) {
					t.Errorf("read %q, want %q", text, tt.want)
				}
				if err := c.Close(ctx); err != nil || len(f.sessions) > 0 {
					t.Errorf("%d sessions left, %v", len(f.sessions), err)
				}
			})
		})
	}
}
