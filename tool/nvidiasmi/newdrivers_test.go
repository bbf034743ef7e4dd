// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// log610 is what -q prints of power and temperatures from driver 610 on. Source:
// nvidia-smi's own list of changes: the limits stand in a section "GPU Ceiling Power
// Limit", beside that of the base power; "GPU T.Limit Temp" is "GPU Current T.Limit
// Temp", and static thresholds end with "Specification".
const log610 = `==============NVSMI LOG==============

Timestamp                                              : Sun Sep  6 08:21:38 2026
Driver Version                                         : 610.57.04 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]
KMD Version                                            : 610.57.04
CUDA UMD Version                                       : 13.3

Attached GPUs                                          : 1
GPU 00000000:01:00.0
    Product Name                                       : NVIDIA H200
    Shared FB Memory Usage
        Total                                          : 143771 MiB
        Used                                           : 12 MiB
        Free                                           : 143759 MiB
    Temperature
        GPU Current Temp                               : 31 C
        GPU Current T.Limit Temp                       : 54 C
        GPU Shutdown T.Limit Temp Specification        : -8 C
        GPU Slowdown T.Limit Temp Specification        : -2 C
        GPU Max Operating T.Limit Temp Specification   : 0 C
        GPU Target Temperature Specification           : N/A
        Memory Current Temp                            : 33 C
    GPU Power Readings
        Average Power Draw                             : 77.10 W
        Instantaneous Power Draw                       : 76.45 W
        GPU Base Power Limit
            Current Power Limit                        : N/A
        GPU Ceiling Power Limit
            Current Power Limit                        : 700.00 W
            Requested Power Limit                      : 700.00 W
            Default Power Limit                        : 700.00 W
            Min Power Limit                            : 200.00 W
            Max Power Limit                            : 700.00 W
`

func TestDriver610(t *testing.T) {
	t.Parallel()
	log, p, err := ParseText([]byte(log610))
	if err != nil || len(p) > 0 || len(log.GPUs) != 1 {
		t.Fatalf("%v, %v, %+v", err, p, log)
	}
	g := log.GPUs[0]
	is(t, "power", g.Power, map[string]any{"draw_w": 76.45, "limit_w": 700, "default_limit_w": 700, "min_limit_w": 200, "max_limit_w": 700})
	is(t, "temperature", g.Temperature, map[string]any{"gpu": 31, "memory": 33, "limit": 54, "slowdown_limit": -2})
	is(t, "memory", g.Memory, map[string]any{"total": 143771, "used": 12, "free": 143759})
}

// TestRenamedValues: a value that is printed under a name that is not known is a
// problem, and not silently absent.
func TestRenamedValues(t *testing.T) {
	t.Parallel()
	for old, with := range map[string]string{
		"GPU Ceiling Power Limit":  "GPU Board Power Limit",
		"Power Draw":               "Power Draw Reading",
		"GPU Current T.Limit Temp": "GPU Present T.Limit Temp",
	} {
		in := strings.ReplaceAll(log610, old, with)
		if with == "GPU Present T.Limit Temp" {
			in = strings.ReplaceAll(in, "Slowdown T.Limit Temp Specification", "Slowdown T.Limit Temp Threshold")
		}
		_, p, err := ParseText([]byte(in))
		if err != nil || len(p) == 0 || p[0].Kind != tool.Missing || !strings.Contains(p[0].Text, "a name that this version does not know") {
			t.Errorf("%s: %v, %v", with, err, p)
		}
	}
}

func TestMIGDevicesOfQuery(t *testing.T) {
	t.Parallel()
	text := strings.Replace(log610, "    Shared FB", `    MIG Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    MIG Device
        Index                                          : 0
        GPU Instance ID                                : 1
        Compute Instance ID                            : 0
        Device Attributes
            Shared
                Multiprocessor count                   : 60
        Shared FB Memory Usage
            Total                                      : 70000 MiB
            Used                                       : 37 MiB
    MIG Device
        Index                                          : 1
        GPU Instance ID                                : 2
        Compute Instance ID                            : 0
        FB Memory Usage
            Total                                      : 70000 MiB
            Used                                       : 12 MiB
    Shared FB`, 1)
	const xml = `<?xml version="1.0" ?><nvidia_smi_log><driver_version>575.57.08</driver_version><attached_gpus>1</attached_gpus><gpu id="00000000:01:00.0">
<mig_devices><mig_device><index>0</index><gpu_instance_id>1</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<device_attributes><shared><multiprocessor_count>60</multiprocessor_count></shared></device_attributes><fb_memory_usage><total>70000 MiB</total><used>37 MiB</used></fb_memory_usage></mig_device>
<mig_device><index>1</index><gpu_instance_id>2</gpu_instance_id><compute_instance_id>0</compute_instance_id><fb_memory_usage><total>70000 MiB</total><used>12 MiB</used></fb_memory_usage></mig_device></mig_devices>
</gpu></nvidia_smi_log>`
	want := []map[string]any{
		{"index": 0, "gpu_instance": 1, "compute_instance": 0, "memory_used_mib": 37, "memory_total_mib": 70000, "sms": 60},
		{"index": 1, "gpu_instance": 2, "compute_instance": 0, "memory_used_mib": 12, "memory_total_mib": 70000},
	}
	for name, parse := range map[string]func() (Log, tool.Problems, error){
		"text": func() (Log, tool.Problems, error) { return ParseText([]byte(text)) },
		"xml":  func() (Log, tool.Problems, error) { return ParseXML([]byte(xml)) },
	} {
		log, p, err := parse()
		if err != nil || len(p) > 0 || len(log.GPUs) != 1 {
			t.Fatalf("%s: %v, %v", name, err, p)
		}
		is(t, name, log.GPUs[0].MIGDevices, want)
	}
	off := strings.ReplaceAll(xml[:strings.Index(xml, "<mig_devices>")], "", "") + "<mig_devices>None</mig_devices></gpu></nvidia_smi_log>"
	if log, p, err := ParseXML([]byte(off)); err != nil || len(p) > 0 || log.GPUs[0].MIGDevices != nil {
		t.Errorf("none: %v, %v, %+v", err, p, log)
	}
}

// TestNVLinkLeftOut: links that somebody cut out of a report are missing, with and
// without the mark of it; of a GPU in MIG mode a link is neither up nor down.
func TestNVLinkLeftOut(t *testing.T) {
	t.Parallel()
	const gpu = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-4039dfe4-0c97-4b1e-683e-eb7d42699053)\n"
	line := func(n string) string { return "\t Link " + n + ": Replay Errors: 0\n" }
	for name, in := range map[string]string{"marked": gpu + line("0") + line("1") + "\t [...]\n" + line("17"), "not marked": gpu + line("0") + line("1") + line("17")} {
		v, p, err := ParseNVLink([]byte(in))
		if err != nil || len(v.GPUs) != 1 || len(p) == 0 || !strings.Contains(p[len(p)-1].Text, "links 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 are not in it, link 17 is") {
			t.Errorf("%s: %v, %v", name, err, p)
		}
	}
	in := gpu + "  MIG 1g.10gb     Device  0: (UUID: MIG-4b1e683e-0c97-5b1e-883e-eb7d42699053)\n\t Link 0: N/A\n\t Link 1: <inactive>\n"
	v, p, err := ParseNVLink([]byte(in))
	if err != nil || len(p) > 0 || v.GPUs[0].MIGDevices != 1 || len(v.GPUs[0].Links) != 2 || v.GPUs[0].Links[0].Active != nil || v.GPUs[0].Links[1].Active == nil {
		t.Errorf("MIG: %v, %v, %+v", err, p, v)
	}
}

// TestQueryIsNoTable: a heading of general words is that of anybody's table, and what
// somebody left out is no row.
func TestQueryIsNoTable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]bool{"name,unit\nrail,GB/s\n": false, "# Limits\n\nname,unit\n\nsome text\n": false, "index, name\n0, NVIDIA H100\n": true, "index, name, uuid, serial\n": true} {
		if got := isQuery([]byte(in)) > 0; got != want {
			t.Errorf("%q: recognised %t", in, got)
		}
	}
	q, p, err := ParseQuery([]byte("name\nNVIDIA H100\n[...]\nNVIDIA H100\n"))
	if err != nil || len(q.Rows) != 2 || len(p) != 1 || p[0].Kind != tool.Truncated {
		t.Errorf("%v, %v, %+v", err, p, q)
	}
}
