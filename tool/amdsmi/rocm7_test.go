// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// links7 is xgmi as ROCm 7.1 and later print it: columns by number, amounts in
// the unit that suits them, the state of ports and that of each pair.
const links7 = `LINK METRIC TABLE:
       bdf           bit_rate  max_bandwidth  link_type  GPU0      GPU1
GPU0   0000:0a:00.0  38 Gb/s   608 Gb/s       XGMI
 Read                                                    N/A       1.500 TB
 Write                                                   N/A       12.00 MB
GPU1   0000:1a:00.0  38 Gb/s   608 Gb/s       XGMI
 Read                                                    512.0 B   N/A
 Write                                                   3.000 GB  N/A

GPU LINK PORT STATUS:
       bdf           port_num
GPU0   0000:0a:00.0  U  X
GPU1   0000:1a:00.0  N/A  N/A

XGMI LINK STATUS:
       bdf           GPU0          GPU1
GPU0   0000:0a:00.0  SELF          U
GPU1   0000:1a:00.0  D             SELF

Legend:
  SELF = Current GPU
  N/A = Not supported
  U / D / X = Link is Up / Down / Disabled
  Read / Write = GPU Metric Accumulated Read / Write
`

func TestXGMIOfROCm7(t *testing.T) {
	t.Parallel()
	r, p, err := Parse([]byte(links7))
	if err != nil || fmt.Sprint(p) != "[{failed the xGMI link of GPU 1 to GPU 0 is down 0}]" || matchFormat([]byte(links7)) < 80 {
		t.Fatalf("%v, %v", p, err)
	}
	want := `{"gpus":[{"gpu":0,"bdf":"0000:0a:00.0","xgmi":{"bit_rate_gbps":38,"max_bandwidth_gbps":608,"type":"XGMI","status":["U","X"]}},` +
		`{"gpu":1,"bdf":"0000:1a:00.0","xgmi":{"bit_rate_gbps":38,"max_bandwidth_gbps":608,"type":"XGMI"}}],` +
		`"links":[{"from":0,"to":1,"from_bdf":"0000:0a:00.0","to_bdf":"0000:1a:00.0","weight":null,"hops":null,"read_kb":1610612736,"written_kb":12288,"status":"U"},` +
		`{"from":1,"to":0,"from_bdf":"0000:1a:00.0","to_bdf":"0000:0a:00.0","weight":null,"hops":null,"read_kb":0.5,"written_kb":3145728,"status":"D"}]}`
	if got := asJSON(t, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for from, text := range map[string]string{"1.500 TB\n": "the row has 1 of 2 columns", "D             SELF\n": "the row of GPU1 has 1 of 2 columns"} {
		in := strings.Replace(links7, from, strings.Fields(from)[0][:1]+"\n", 1)
		if strings.HasPrefix(from, "1.5") {
			in = strings.Replace(links7, from, "\n", 1)
		}
		if _, p, _ := Parse([]byte(in)); len(p) == 0 || p[0].Kind != tool.Truncated || !strings.Contains(p[0].Text, text) {
			t.Errorf("%q: %v", from, p)
		}
	}
}

// TestXGMIOfNoLinks: the numbers that stand for nothing are none, also where they
// run into one another, and amounts in units under columns of addresses.
func TestXGMIOfNoLinks(t *testing.T) {
	t.Parallel()
	in := "LINK METRIC TABLE:\n       bdf           bit_rate  max_bandwidth  link_type  GPU0         GPU1\n" +
		"GPU0   0000:0a:00.0  65535 Gb/s4294967295 Gb/sN/A\n Read                                                    N/A          N/A\n" +
		"GPU1   0000:1a:00.0  N/A       N/A             N/A\n Read                                                    N/A          N/A\n"
	r, p, err := Parse([]byte(in))
	want := `{"gpus":[{"gpu":0,"bdf":"0000:0a:00.0","xgmi":{"bit_rate_gbps":null,"max_bandwidth_gbps":null}},{"gpu":1,"bdf":"0000:1a:00.0","xgmi":{"bit_rate_gbps":null,"max_bandwidth_gbps":null}}]}`
	if err != nil || len(p) > 0 || asJSON(t, r) != want {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
	in = "LINK METRIC TABLE:\n    bdf          bit_rate max_bandwidth link_type 0000:0a:00.0 0000:1a:00.0\n" +
		"GPU0   0000:0a:00.0 32 Gb/s  512 Gb/s      XGMI\nRead                                                N/A          1.125 PB\nWrite                                               N/A          2.5 MB\n" +
		"GPU1   0000:1a:00.0 32 Gb/s  512 Gb/s      XGMI\nRead                                                7 KB         N/A\nWrite                                               9 KB         N/A\n"
	r, p, err = Parse([]byte(in))
	if err != nil || len(p) > 0 || len(r.Links) != 2 || *r.Links[0].Read != 1.125*(1<<40) || *r.Links[0].Written != 2560 || *r.Links[1].Read != 7 {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
	in = `{"xgmi_metric":[{"gpu":0,"bdf":"0000:0a:00.0","link_metrics":{"bit_rate":{"value":65535,"unit":"Gb/s"},"max_bandwidth":{"value":4294967295,"unit":"Gb/s"},` +
		`"links":[{"gpu":1,"bdf":"0000:1a:00.0","read":{"value":2,"unit":"GB"},"write":"N/A"}]}}]}`
	r, p, err = Parse([]byte(in))
	if err != nil || len(p) > 0 || len(r.Links) != 1 || *r.Links[0].Read != 2<<20 || r.Links[0].Written != nil || r.GPUs[0].XGMI.BitRate != nil || r.GPUs[0].XGMI.MaxBandwidth != nil {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
}

// TestMonitorOfROCm7: cells with lists, rows of partitions, limits, times.
func TestMonitorOfROCm7(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"GPU  XCP  PVIOL  TVIOL  TVIOL_ACTIVE  GFXCLK_PVIOL\n  0    0   12 %    0 %         False  [0 %, 3 %, N/A]\n  0    1    N/A    N/A           N/A  [0 %, 3 %, N/A]\n": `"violations_percent":{"ppt":12,"socket_thermal":0}`,
		"GPU  XCP  POWER   GPU_T  GFX%  VRAM_USAGE\n  0    0  148 W   38 °C   7 %  0.5/192.0 GB\n":                                                                           `"vram_total_mb":196608,"vram_used_mb":512,"gfx_percent":7`,
		"GPU  POWER  PWR_CAP\n  0  148 W    750 W\n":                                                    `"power_limit_w":750`,
		"TIMESTAMP   GPU  POWER  GPU_T\n1700000001    0  148 W  38 °C\n1700000002    0  149 W  39 °C\n": `"power_w":149,"hotspot_c":39`,
	} {
		r, p, err := Parse([]byte(in))
		if err != nil || len(p) > 0 || len(r.GPUs) != 1 || matchFormat([]byte(in)) < 80 || !strings.Contains(asJSON(t, r), want) {
			t.Errorf("%q: %v, %v: %s", in, p, err, asJSON(t, r))
		}
	}
}

// TestCSVOfOneSection: a row has no section to tell what its columns are of.
func TestCSVOfOneSection(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"'CTRL' + 'C' to stop watching output:\ntimestamp,gpu,socket_power,power_management\n1,0,238,ENABLED\ntimestamp,gpu,socket_power,power_management\n2,0,239,ENABLED\n": `"metric":{"power_w":239`,
		"gpu,max_power,min_power,socket_power\n0,750,0,700\n":                                                 `"max_power_w":750,"power_limit_w":700`,
		"gpu,ppt0_max_power_limit,ppt0_socket_power_limit\n0,1000,900\n":                                      `"max_power_w":1000,"power_limit_w":900`,
		"gpu,width,speed,replay_count\n0,16,32,4\n":                                                           `"pcie_width":16,"pcie_speed_gts":32,"pcie_replays":4`,
		"GPU: 0\n    THROTTLE:\n        PPT_VIOLATION_STATUS: ACTIVE\n        PPT_VIOLATION_ACTIVITY: 40 %\n": `"violations_percent":{"ppt":40}`,
		"GPU: 0\n    THROTTLE:\n        ACCUMULATION_COUNTER: 8213780\n        PROCHOT_ACCUMULATED: 0\n        PPT_ACCUMULATED: 2\n        SOCKET_THERMAL_ACCUMULATED: N/A\n        TOTAL_GFX_CLK_BELOW_HOST_LIMIT_ACCUMULATED:\n            XCP_0: [8213744, N/A]\n": `"throttle_accumulated":{"ppt":2,"prochot":0},"throttle_ticks":8213780`,
	} {
		r, p, err := Parse([]byte(in))
		if err != nil || len(p) > 0 || matchFormat([]byte(in)) < 80 || !strings.Contains(asJSON(t, r), want) || strings.Contains(want, "max_power") && r.GPUs[0].Metric != nil {
			t.Errorf("%q: %v, %v: %s", in, p, err, asJSON(t, r))
		}
	}
	_, p, err := Parse([]byte("GPU: 0\n    RAS:\n        BAD_PAGE_THRESHOLD: 128\n        BAD_PAGE_THRESHOLD_EXCEEDED: True\n"))
	if err != nil || len(p) != 1 || p[0].Kind != tool.Failed {
		t.Errorf("%v, %v", p, err)
	}
}

// TestSeveralCommandsOfMetric: what each says of a GPU is put together.
func TestSeveralCommandsOfMetric(t *testing.T) {
	t.Parallel()
	r, p, err := Parse([]byte("GPU: 0\n    POWER:\n        SOCKET_POWER: 141 W\n\nGPU: 0\n    TEMPERATURE:\n        HOTSPOT: 44 °C\n"))
	if err != nil || len(p) > 0 || len(r.GPUs) != 1 || *r.GPUs[0].Metric.Power != 141 || *r.GPUs[0].Metric.Hotspot != 44 {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
}

// TestBoxOfAPU: no limit stands behind what it draws.
func TestBoxOfAPU(t *testing.T) {
	t.Parallel()
	in := "+------------------------------------------------------------------------------+\n| AMD-SMI 26.1.0+aaaaaaaa      amdgpu version: Linuxver ROCm version: 7.1.0    |\n" +
		"|-------------------------------------+----------------------------------------|\n| 0000:c2:00.0  Radeon 8050S Graphics | N/A      29 °C   0                14 W |\n" +
		"|   0       0     N/A             N/A | 7 %        N/A            3056/8192 MB |\n+-------------------------------------+----------------------------------------+\n"
	r, p, err := Parse([]byte(in))
	if err != nil || len(p) > 0 || len(r.GPUs) != 1 || *r.GPUs[0].Metric.Power != 14 || r.GPUs[0].Static.PowerLimit != nil || *r.GPUs[0].Metric.VRAMUsed != 3056 {
		t.Errorf("%v, %v: %s", p, err, asJSON(t, r))
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"AMDSMI Tool: 26.0.2+39589fda | AMDSMI Library version: 26.0.2 | ROCm version: 7.0.2 | amdgpu version: 6.14.14 | amd_hsmp version: N/A\n":                                            `{"gpus":null,"versions":{"tool":"26.0.2+39589fda","library":"26.0.2","rocm":"7.0.2","amdgpu":"6.14.14"}}`,
		"AMDSMI Tool: 26.1.0+b | AMDSMI Library version: 26.1.0 | ROCm version: N/A\n":                                                                                                       `{"gpus":null,"versions":{"tool":"26.1.0+b","library":"26.1.0"}}`,
		"[\n    {\n        \"tool\": \"AMDSMI Tool\",\n        \"version\": \"25.5.1\",\n        \"amdsmi_library_version\": \"25.5.1.0\",\n        \"rocm_version\": \"6.4.3\"\n    }\n]\n": `{"gpus":null,"versions":{"tool":"25.5.1","library":"25.5.1.0","rocm":"6.4.3"}}`,
	} {
		r, p, err := Parse([]byte(in))
		if err != nil || len(p) > 0 || matchFormat([]byte(in)) == 0 || asJSON(t, r) != want {
			t.Errorf("%v, %v: got\n%s\nwant\n%s", err, p, asJSON(t, r), want)
		}
	}
	if _, _, err := Parse([]byte("[{\"amdsmi_library_version\": 4}]")); err == nil {
		t.Error("no version is read")
	}
}

// TestPartitions: the parts of one GPU are at one address.
func TestPartitions(t *testing.T) {
	t.Parallel()
	in := "GPU: 0\n    BDF: 0000:0a:00.0\n    UUID: a\n    PARTITION_ID: 0\n\nGPU: 1\n    BDF: 0000:0a:00.0\n    UUID: b\n    PARTITION_ID: 1\n"
	r, p, err := Parse([]byte(in))
	if err != nil || len(p) > 0 || len(r.GPUs) != 2 || *r.GPUs[1].Partition != 1 {
		t.Errorf("%v, %v: %s", err, p, asJSON(t, r))
	}
	in2 := "gpu,gpu_bdf,gpu_uuid\n0,0000:0c:00.0,c0ff74a1\n1,0000:0c:00.0,c0ff74a1\n"
	if _, p, err := Parse([]byte(in2)); err != nil || len(p) > 0 {
		t.Errorf("%v, %v", err, p)
	}
	if _, p, _ := Parse([]byte(strings.Replace(in, "PARTITION_ID: 1", "PARTITION_ID: 0", 1))); len(p) != 1 || p[0].Kind != tool.Inconsistent {
		t.Errorf("two whole GPUs at one address: %v", p)
	}
}
