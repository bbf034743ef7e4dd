// SPDX-License-Identifier: Apache-2.0

package rocmsmi

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func TestCSV(t *testing.T) {
	t.Parallel()
	in := "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n\n" +
		"device,Temperature (Sensor junction) (C),Current Socket Graphics Package Power (W),GPU use (%),PCI Bus\ncard0,45.0,N/A,7,0000:0C:00.0\ncard1,46.0,152.0,0,0000:1C:00.0\n\n" +
		"name, value\n\"Driver version\", \"6.8.5\"\n\"(Topology) Weight between DRM devices 0 and 1\", \"15\"\n"
	r, p, err := Parse([]byte(in))
	want := `{"driver":"6.8.5","gpus":[{"gpu":0,"bus":"0000:0c:00.0",` + with("temperature_c", "45", "use_percent", "7") + `},{"gpu":1,"bus":"0000:1c:00.0",` +
		with("temperature_c", "46", "power_w", "152", "use_percent", "0") + `}],"links":[{"from":0,"to":1,"weight":15,"hops":null,"accessible":null}]}`
	if err != nil || len(p) > 0 || matchFormat([]byte(in)) < 80 || asJSON(t, r) != want {
		t.Errorf("%v, %v\ngot  %s\nwant %s", p, err, asJSON(t, r), want)
	}
	r, p, err = Parse([]byte("device,VBIOS version,Driver version\ncard0,113-X,N/A\nsystem,N/A,6.10.5\n"))
	if err != nil || len(p) > 0 || r.Driver != "6.10.5" || len(r.GPUs) != 1 || r.GPUs[0].VBIOS != "113-X" {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
	for in, kind := range map[string]tool.ProblemKind{"device,A,B\ncard0,1\n": tool.Truncated, "device,A,B\ncard0,1,2,3\ncard0,1,2\n": tool.Inconsistent} {
		if _, p, err := Parse([]byte(in)); err != nil || len(p) != 1 || p[0].Kind != kind {
			t.Errorf("%q: %v, %v", in, p, err)
		}
	}
}

// TestOldNames: before ROCm 4 the sensor of the memory was called so.
func TestOldNames(t *testing.T) {
	t.Parallel()
	r, _, err := Parse([]byte("GPU[0]\t\t: Temperature (Sensor junction) (C): 76.0\nGPU[0]\t\t: Temperature (Sensor mem) (C): 68.0\n"))
	if err != nil || len(r.GPUs) != 1 || *r.GPUs[0].Temperature != 76 || *r.GPUs[0].MemoryTemp != 68 {
		t.Errorf("%v: %s", err, asJSON(t, r))
	}
}

func TestErrorsAndPages(t *testing.T) {
	t.Parallel()
	in := `============================ ROCm System Management Interface ============================
=================================== XGMI Error status ====================================
ERROR: GPU[0]	: Cannot read Link Weight: Not supported on this machine
ERROR: 9 GPU[0]: od volt: The called function has not been implemented in this system for this device type
GPU[0]		: XGMI Error count: 0 (No errors detected since last read)
GPU[1]		: XGMI Error count: 2 (Multiple errors detected since last read)
ERROR: GPU[1]	: FRU Serial Number contains non-alphanumeric characters. FRU is likely corrupted
======================================= Pages Info =======================================

GPU[1]: 	ALL PAGES INFO
    Page address     Page size      Status
   0x7f3c1000         0x1000         reserved
==========================================================================================
================================== End of ROCm SMI Log ===================================
`
	r, p, err := Parse([]byte(in))
	if err != nil || len(p) != 1 || p[0].Kind != tool.Failed || p[0].Line != 7 || !strings.Contains(p[0].Text, "likely corrupted") {
		t.Fatalf("%v, %v", p, err)
	}
	if g := r.GPUs; len(g) != 2 || *g[0].XGMIErrors != 0 || *g[1].XGMIErrors != 2 || g[0].Pages != nil || len(g[1].Pages) != 1 || g[1].Pages[0] != (Page{"0x7f3c1000", "0x1000", "reserved"}) {
		t.Errorf("%s", asJSON(t, r))
	}
	r, p, err = Parse([]byte("============================ ROCm System Management Interface ============================\nDriver version: 6.8.5\n================================== End of ROCm SMI Log ===================================\n"))
	if err != nil || len(p) > 0 || r.Driver != "6.8.5" {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
}
