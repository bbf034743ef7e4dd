// SPDX-License-Identifier: Apache-2.0

package rocmsmi

import (
	"encoding/json"
	"strings"
	"testing"
)

const showhw = `================================= ROCm System Management Interface =================================
====================================== Concise Hardware Info =======================================
GPU  NODE  DID     GUID   GFX VER  GFX RAS  SDMA RAS  UMC RAS   VBIOS            BUS           PARTITION ID
0    4     0x74a1  3871   gfx942   ENABLED  ENABLED   DISABLED  113-M3000100-01  0000:05:00.0  0
1    5     0x74a1  54192  gfx942   ENABLED  ENABLED   DISABLED  N/A              0000:05:00.0  1
====================================================================================================
======================================= End of ROCm SMI Log ========================================
`

func TestHardware(t *testing.T) {
	t.Parallel()
	r, p, err := Parse([]byte(showhw))
	if err != nil || len(p) > 0 || len(r.GPUs) != 2 {
		t.Fatalf("%v %v %+v", err, p, r)
	}
	if a, b := r.GPUs[0], r.GPUs[1]; a.Bus != "0000:05:00.0" || a.VBIOS != "113-M3000100-01" || a.DeviceID != "0x74a1" || b.VBIOS != "" || *b.Partition != 1 {
		t.Errorf("%+v %+v", a, b)
	}
	_, p, err = Parse([]byte(strings.Replace(showhw, "0000:05:00.0  1", "0000:05:00.0  0", 1)))
	if err != nil || len(p) != 1 || !strings.Contains(p[0].Text, "GPU 0 and GPU 1 are both at 0000:05:00.0") {
		t.Errorf("%v %v", err, p)
	}
	_, p, err = Parse([]byte(strings.Replace(showhw, "  0000:05:00.0  1", "", 1)))
	if err != nil || len(p) == 0 || !strings.Contains(p[0].Text, "9 of 11 columns") {
		t.Errorf("%v %v", err, p)
	}
}

// TestExamplesAreNoOutput: dots of a document are no JSON, and nothing is read.
func TestExamplesAreNoOutput(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"{\n  \"card0\": {...},\n}\n", "see \"card0\": there\n"} {
		if r, p, err := Parse([]byte(in)); err == nil {
			b, _ := json.Marshal(r)
			t.Errorf("%q: %v %s", in, p, b)
		}
	}
}
