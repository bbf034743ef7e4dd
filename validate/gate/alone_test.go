// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// TestRealGPU: what driver 580.159.04 printed of an H100 that stood alone in a virtual
// machine (docs/gpu.md; serial, UUID and PDI are changed), at rest and under a matrix
// product that its power limit held down. Nothing of it is a fault, and what is changed
// in it is one.
func TestRealGPU(t *testing.T) {
	t.Parallel()
	alone := &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3", Count: 1}}}
	for name, loaded := range map[string]bool{"alone-rest.xml": false, "alone-load.xml": true} {
		xml := file(t, "nvidiasmi/testdata/"+name)
		see := func(from, to string) look.Seen {
			if !strings.Contains(xml, from) {
				t.Fatalf("%s has no %q", name, from)
			}
			log, problems, err := nvidiasmi.ParseXML([]byte(strings.ReplaceAll(xml, from, to)))
			if err != nil || len(problems) > 0 || len(log.GPUs) != 1 {
				t.Fatalf("%s: %v, %v", name, problems, err)
			}
			s := look.Seen{NVIDIA: &log}
			s.Health.PCI = append(s.Health.PCI, pciLink("0000:00:06.0", "10de"))
			s.Health.Governors = map[string]int{}
			return s
		}
		s := see("<temperature>", "<temperature>")
		if faults, _ := gate.Judge(alone, nil, s); len(faults) > 0 {
			t.Errorf("%s: %+v", name, faults)
		}
		g := s.NVIDIA.GPUs[0]
		if busy := len(g.Processes) > 0; busy != loaded {
			t.Errorf("%s: processes %+v", name, g.Processes)
		}
		for from, to := range map[string]string{
			"<current_ecc>Enabled<":           "<current_ecc>Disabled<",
			"<remapped_row_failure>No<":       "<remapped_row_failure>Yes<",
			"<sram_uncorrectable_parity>0<":   "<sram_uncorrectable_parity>1<",
			"<current_power_limit>700.00 W<":  "<current_power_limit>500.00 W<",
			"<gpu_recovery_action>None<":      "<gpu_recovery_action>Reset<",
			"hw_thermal_slowdown>Not Active<": "hw_thermal_slowdown>Active<",
		} {
			if faults, _ := gate.Judge(alone, nil, see(from, to)); len(faults) != 1 || !strings.HasPrefix(faults[0].Part, "GPU 0 at 0000:00:06.0") {
				t.Errorf("%s with %s: %+v", name, to, faults)
			}
		}
	}
}
