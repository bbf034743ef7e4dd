// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// TestTableOfOldDrivers: before driver 319 the table had no persistence mode, and
// before 304 errors of one bit and of two in one cell.
func TestTableOfOldDrivers(t *testing.T) {
	t.Parallel()
	in := `Fri Jan  6 10:00:00 2012
+------------------------------------------------------+
| NVIDIA-SMI 2.290.10   Driver Version: 290.10         |
|-------------------------------+----------------------+----------------------+
| Nb.  Name                     | Bus Id        Disp.  | Volatile ECC SB / DB |
| Fan   Temp   Power Usage /Cap | Memory Usage         | GPU Util. Compute M. |
|===============================+======================+======================|
| 0.  Tesla M2090               | 0000:14:00.0  Off    |         3          1 |
|  N/A   62 C  P0    77W / 225W |   1%   10MB / 5375MB |    7%      Default   |
|-------------------------------+----------------------+----------------------|
| Compute processes:                                               GPU Memory |
|  GPU  PID     Process name                                       Usage      |
|=============================================================================|
|  0.   4711    ./solve                                                 8MB   |
+-----------------------------------------------------------------------------+
`
	log, p, err := ParseTable([]byte(in))
	if err != nil || len(p) > 0 || len(log.GPUs) != 1 {
		t.Fatalf("%v, %v: %+v", err, p, log)
	}
	g := log.GPUs[0]
	is(t, "GPU", []any{g.BusID, g.Name, g.ECC.Volatile.Correctable, g.ECC.Volatile.Uncorrectable, g.Temperature.GPU, g.Power.Draw, g.Memory.Used, g.Memory.Total, g.Utilization, g.ComputeMode},
		[]any{"0000:14:00.0", "Tesla M2090", 3, 1, 62, 77, 10, 5375, 7, "Default"})
	in = `+------------------------------------------------------+
| NVIDIA-SMI 4.304.64   Driver Version: 304.64         |
|-------------------------------+----------------------+----------------------+
| GPU  Name                     | Bus-Id        Disp.  | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap| Memory-Usage         | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla K20m               | 0000:02:00.0     Off |                  Off |
| N/A   33C    P0    47W / 225W |   0%   13MB / 4799MB |    100%  E. Process  |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Compute processes:                                               GPU Memory |
|  GPU       PID  Process name                                     Usage      |
|=============================================================================|
|    0      4711  ./solve -n 8                                         120MB  |
+-----------------------------------------------------------------------------+
`
	log, p, err = ParseTable([]byte(in))
	if err != nil || len(p) > 0 || len(log.GPUs) != 1 {
		t.Fatalf("%v, %v: %+v", err, p, log)
	}
	g = log.GPUs[0]
	is(t, "GPU", []any{g.Name, g.ECC.Current, g.Temperature.GPU, g.Memory.Total, g.ComputeMode}, []any{"Tesla K20m", false, 33, 4799, "E. Process"})
	is(t, "process", g.Processes, []map[string]any{{"pid": 4711, "type": "", "name": "./solve -n 8", "memory_mib": 120}})
}

// TestTableOfTegra: a GPU that is part of a CPU has no address, and once no version
// of its driver.
func TestTableOfTegra(t *testing.T) {
	t.Parallel()
	in := `+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 540.3.0                Driver Version: N/A          CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|=========================================+======================+======================|
|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
`
	log, p, err := ParseTable([]byte(in))
	if err != nil || len(p) > 0 || len(log.GPUs) != 1 || log.GPUs[0].Name != "Orin (nvgpu)" || log.GPUs[0].BusID != "" || log.CUDA != "12.2" || log.Driver != "" {
		t.Errorf("%v, %v: %+v", err, p, log)
	}
}

// TestVersion: new drivers say in place of an old name which name is meant.
func TestVersion(t *testing.T) {
	t.Parallel()
	for in, want := range map[string][]string{
		"NVIDIA-SMI version  : 550.1\nNVML version        : 550.1\nDRIVER version      : 550.1\nCUDA Version        : 12.4\n": {"550.1", "12.4"},
		"NVIDIA-SMI version  : 610.1\nNVML version        : 610.1\nDRIVER version      : Deprecated, see \"KMD version\" instead\nCUDA version        : Deprecated, see \"CUDA UMD version\" instead\n" +
			"KMD version         : 610.2\nCUDA UMD version    : 13.3\n": {"610.2", "13.3"},
	} {
		log, p, err := ParseTable([]byte(in))
		if err != nil || len(p) > 0 || isTable([]byte(in)) == 0 {
			t.Errorf("%v, %v", err, p)
		}
		is(t, "version", []string{log.Driver, log.CUDA}, want)
	}
}

// TestMIGDevicesOfTable reads the second table, also of drivers with wider columns.
func TestMIGDevicesOfTable(t *testing.T) {
	t.Parallel()
	whole := string(load(t, "table.txt"))
	at := strings.LastIndex(whole[:strings.Index(whole, "| Processes:")], "\n+") + 1
	mig := "+-----------------------------------------------------------------------------------------+\n| MIG devices:                                                                            |\n" +
		"+------------------+----------------------------------+-----------+-----------------------+\n| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |\n" +
		"|==================+==================================+===========+=======================|\n|  1    2   0   3  |              44MiB / 40448MiB    | 60      0 |  3   0    3    0    3 |\n" +
		"|                  |                 0MiB / 65535MiB  |           |                       |\n+------------------+----------------------------------+-----------+-----------------------+\n\n"
	log, p, err := ParseTable([]byte(whole[:at] + mig + whole[at:]))
	if err != nil || len(p) > 0 || len(log.GPUs) != 2 || log.GPUs[0].MIGDevices != nil {
		t.Fatalf("%v, %v: %+v", err, p, log)
	}
	is(t, "MIG", log.GPUs[1].MIGDevices, []map[string]any{{"index": 3, "gpu_instance": 2, "compute_instance": 0, "memory_used_mib": 44, "memory_total_mib": 40448, "sms": 60}})
}

// TestNVLinkOfNames: -info says what no link does, -p only where links lead to.
func TestNVLinkOfNames(t *testing.T) {
	t.Parallel()
	in := "GPU 0: NVIDIA GB200 (UUID: GPU-00000000-1111-2222-3333-444455556666)\n         NVLE: disabled\n         Firmware Version:\n             MSE: 14:4:0\n             NETIR UPHY: 7:0:0\n"
	v, p, err := ParseNVLink([]byte(in))
	if err != nil || len(p) > 0 || isNVLink([]byte(in)) == 0 || isList([]byte(in)) > 0 {
		t.Fatalf("%v, %v", err, p)
	}
	is(t, "info", v.GPUs[0].Info, map[string]string{"nvle": "disabled", "firmware_version_mse": "14:4:0", "firmware_version_netir_uphy": "7:0:0"})
	in = "GPU 0: Tesla V100 (UUID: GPU-00000000-1111-2222-3333-444455556666)\n\t Link 0: 00000000:15:00.0\n"
	v, p, err = ParseNVLink([]byte(in))
	if err != nil || len(p) > 0 || v.GPUs[0].Links[0].Remote != "0000:15:00.0" {
		t.Errorf("%v, %v: %+v", err, p, v)
	}
}

// TestTopologyOfNames: the heading says what is a device, whatever its name.
func TestTopologyOfNames(t *testing.T) {
	t.Parallel()
	in := "\tGPU0\troceP2p1s0f1\tib-store\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tNODE\tPIX\t\t2\t\tN/A\nroceP2p1s0f1\tNODE\t X \tSYS\nib-store\tPIX\tSYS\t X \n" +
		"\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
	v, p, err := ParseTopology([]byte(in))
	if err != nil || len(p) > 0 || isTopology([]byte(in)) == 0 {
		t.Fatalf("%v, %v", err, p)
	}
	is(t, "devices", v.Devices, []map[string]any{{"name": "GPU0", "numa_affinity": "2", "gpu": true}, {"name": "roceP2p1s0f1", "gpu": false}, {"name": "ib-store", "gpu": false}})
	is(t, "links", v.Links, [][]string{{"X", "NODE", "PIX"}, {"NODE", "X", "SYS"}, {"PIX", "SYS", "X"}})
}

func TestTextOfAGuest(t *testing.T) {
	t.Parallel()
	in := "==============NVSMI LOG==============\n\nDriver Version                            : 535.216.01\n\nAttached vGPUs                             : 2\nGPU 00000000:02:00.0\n    Product Name                          : GRID V100D-8C\n"
	log, p, err := ParseText([]byte(in))
	if err != nil || log.Attached == nil || *log.Attached != 2 || len(p) != 1 || !strings.Contains(p[0].Text, "2 GPUs are attached and 1 described") {
		t.Errorf("%v, %v: %+v", err, p, log)
	}
}

// TestTableOfWindows: the model of the driver stands where its mode does elsewhere.
func TestTableOfWindows(t *testing.T) {
	t.Parallel()
	for _, heading := range []string{"   Driver-Model", "       TCC/WDDM"} {
		in := strings.Replace(strings.Replace(string(load(t, "table.txt")), "  Persistence-M", heading, 1), "On  |", "WDDM|", 1)
		log, p, err := ParseTable([]byte(in))
		if !strings.Contains(in, heading) || err != nil || len(p) > 0 || log.GPUs[0].Name != "NVIDIA H100 80GB HBM3" || log.GPUs[0].Persistence != nil {
			t.Errorf("%v, %v: %q", err, p, log.GPUs[0].Name)
		}
	}
}

// TestTextOfWindows: where the driver of Windows says nothing, there is no value.
func TestTextOfWindows(t *testing.T) {
	t.Parallel()
	in := "==============NVSMI LOG==============\n\nDriver Version                            : 591.86\nAttached GPUs                             : 1\nGPU 00000000:02:00.0\n    Product Name                          : NVIDIA GeForce\n" +
		"    Processes\n        GPU instance ID                   : N/A\n        Process ID                        : 4711\n            Type                          : C+G\n            Name                          : C:\\a.exe\n" +
		"            Used GPU Memory               : Not available in WDDM driver model\n"
	log, p, err := ParseText([]byte(in))
	if err != nil || len(p) > 0 {
		t.Fatalf("%v, %v", err, p)
	}
	is(t, "process", log.GPUs[0].Processes, []map[string]any{{"pid": 4711, "type": "C+G", "name": "C:\\a.exe", "memory_mib": nil}})
}

// TestTextOfNewDrivers: a name that is deprecated says so behind its value.
func TestTextOfNewDrivers(t *testing.T) {
	t.Parallel()
	old := "Driver Version                            : 610.1 [Deprecated; will be removed in CUDA 14.0. Use KMD Version instead]\nCUDA Version                              : 13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]\n"
	for _, names := range []string{"", "KMD Version                               : 610.1\nCUDA UMD Version                          : 13.3\n"} {
		in := "==============NVSMI LOG==============\n\n" + old + names + "Attached GPUs                             : 1\nGPU 00000000:02:00.0\n    Product Name                          : NVIDIA GeForce\n"
		log, p, err := ParseText([]byte(in))
		if err != nil || len(p) > 0 || log.Driver != "610.1" || log.CUDA != "13.3" {
			t.Errorf("%v, %v: driver %q, CUDA %q", err, p, log.Driver, log.CUDA)
		}
	}
}

// TestNoNVLink: GPUs without NVLink say so below their line, and are no plain list.
func TestNoNVLink(t *testing.T) {
	t.Parallel()
	const gpu = "GPU %d: NVIDIA A10 (UUID: GPU-0b0b0b0b-1c1c-2d2d-3e3e-4f4f4f4f4f4%d)\n"
	for _, line := range []string{"NVML: Unable to retrieve NVLink information: Not Supported", "\tDevice does not have or support Nvlink"} {
		in := fmt.Sprintf(gpu+"%s\n"+gpu+"%s\n", 0, 0, line, 1, 1, line)
		v, p, err := ParseNVLink([]byte(in))
		if err != nil || len(v.GPUs) != 2 || v.GPUs[1].Links != nil || isNVLink([]byte(in)) <= isList([]byte(in)) {
			t.Errorf("%q: %+v, %v", line, v, err)
		}
		if len(p) != 2 || p[1].Kind != tool.Failed || p[1].Line != 4 || p[1].Text != "GPU 1: "+strings.TrimSpace(line) {
			t.Errorf("%q: problems %+v", line, p)
		}
	}
}
