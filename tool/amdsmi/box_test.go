// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"strings"
	"testing"
)

func TestBox(t *testing.T) {
	t.Parallel()
	r := read(t, "box.txt")
	for i, want := range []string{
		`{"gpu":0,"bdf":"0000:05:00.0","static":{"name":"AMD Instinct MI300X","oam_id":4,"max_pcie_width":null,"max_pcie_speed_gts":null,"vbios":"00140001","driver_version":"6.16.6","max_power_w":null,"power_limit_w":750,"vram_mb":196592,"numa_node":null,"compute_partition":"SPX","memory_partition":"NPS1"},` +
			`"metric":{"power_w":141,"hotspot_c":null,"memory_c":null,"pcie_width":null,"pcie_speed_gts":null,"pcie_replays":null,"pcie_nak_received":null,"pcie_nak_sent":null,"ecc":{"correctable":null,"uncorrectable":0,"deferred":null},"vram_total_mb":196592,"vram_used_mb":291,"gfx_percent":97}}`,
		`{"gpu":1,"bdf":"0000:15:00.0","static":{"name":"...Instinct MI300X OAM","oam_id":5,"max_pcie_width":null,"max_pcie_speed_gts":null,"vbios":"00140001","driver_version":"6.16.6","max_power_w":null,"power_limit_w":0,"vram_mb":196592,"numa_node":null},` +
			`"metric":{"power_w":null,"hotspot_c":null,"memory_c":null,"pcie_width":null,"pcie_speed_gts":null,"pcie_replays":null,"pcie_nak_received":null,"pcie_nak_sent":null,"ecc":{"correctable":null,"uncorrectable":6,"deferred":null},"vram_total_mb":196592,"vram_used_mb":283,"gfx_percent":null}}`,
	} {
		if got := asJSON(t, r.GPUs[i]); got != want {
			t.Errorf("GPU %d: got\n%s\nwant\n%s", i, got, want)
		}
	}
	whole := string(load(t, "box.txt"))
	for name, in := range map[string]string{
		"within a GPU":  whole[:strings.Index(whole, "|   1       1")],
		"behind a GPU":  whole[:strings.Index(whole, "+-------------------------------------+----------------------------------------+\n+")],
		"behind no GPU": whole[:strings.Index(whole, "| 0000:05")],
	} {
		if _, p, err := Parse([]byte(in)); err != nil || len(p) == 0 {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
}

func TestMonitor(t *testing.T) {
	t.Parallel()
	r := read(t, "monitor.txt")
	want := `{"gpu":1,"metric":{"power_w":118,"hotspot_c":null,"memory_c":37,"pcie_width":null,"pcie_speed_gts":null,"pcie_replays":0,"pcie_nak_received":null,"pcie_nak_sent":null,` +
		`"ecc":{"correctable":0,"uncorrectable":5,"deferred":null},"vram_total_mb":196592,"vram_used_mb":283,"gfx_percent":0}}`
	if got := asJSON(t, r.GPUs[1]); got != want || len(r.GPUs) != 2 {
		t.Errorf("got %s, want %s", got, want)
	}
	for in, want := range map[string]string{
		"GPU  POWER  GPU_TEMP\n  0  183 W\n":             "the row has 2 of 3 columns",
		"GPU  POWER  GPU_TEMP\n  0  183 W  43 °C  11\n":  "more than its 3 columns",
		"GPU  POWER  GPU_TEMP\n  9999  183 W   43 °C \n": "a GPU without a number",
	} {
		if _, p, err := Parse([]byte(in)); err != nil || len(p) == 0 || !strings.Contains(p[0].Text, want) {
			t.Errorf("%q: %v, %v", in, p, err)
		}
	}
}

func TestTopologyOfOldVersions(t *testing.T) {
	t.Parallel()
	in := `[{"gpu":0,"link_accessibility":{"gpu_0":"ENABLED","gpu_1":"DISABLED"},"weight":{"gpu_0":0,"gpu_1":40},"hops":{"gpu_0":0,"gpu_1":2},"link_type":{"gpu_0":"SELF","gpu_1":"PCIE"},"numa_bandwidth":{"gpu_0":"N/A","gpu_1":"N/A"}}]`
	r, p, err := Parse([]byte(in))
	want := `[{"from":0,"to":1,"type":"PCIE","access":"DISABLED","weight":40,"hops":2,"read_kb":null,"written_kb":null}]`
	if err != nil || len(p) > 0 || matchFormat([]byte(in)) < 80 || asJSON(t, r.Links) != want {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
	in = "LINK METRIC TABLE:\n       bdf          bit_rate max_bandwidth link_type 05:00.0 26:00.0\nGPU0   05:00.0      32 Gb/s  512 Gb/s      XGMI\n" +
		" Read                                                N/A     1259 KB\n Write                                               N/A     1074 KB\nGPU1   26:00.0      32 Gb/s  512 Gb/s      XGMI\n" +
		" Read                                                7 KB     N/A\n Write                                               8 KB     N/A\n"
	r, p, err = Parse([]byte(in))
	if err != nil || len(p) > 0 || len(r.Links) != 2 || *r.Links[1].Written != 8 || r.GPUs[1].BDF != "26:00.0" {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
}

// TestExamplesAreNoOutput: dots of a document are no JSON, and nothing is read.
func TestExamplesAreNoOutput(t *testing.T) {
	t.Parallel()
	if r, p, err := Parse([]byte("[\n  {\n    \"gpu\": 0,\n    \"asic\": { ... },\n  }\n]\n")); err == nil {
		t.Errorf("%v: %s", p, asJSON(t, r))
	}
}

func TestStaticOfOneSection(t *testing.T) {
	t.Parallel()
	in := []byte("GPU: 0\n    PARTITION:\n        COMPUTE_PARTITION: CPX\n        MEMORY_PARTITION: NPS4\n        PARTITION_ID: 0\n")
	r, p, err := Parse(in)
	if err != nil || len(p) > 0 || matchFormat(in) < 80 || r.GPUs[0].Static == nil || r.GPUs[0].Static.Compute != "CPX" || r.GPUs[0].Static.Memory != "NPS4" {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
}
