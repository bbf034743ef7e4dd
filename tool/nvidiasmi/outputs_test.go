// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// good reads a fixture that has nothing wrong with it.
func good[T any](t *testing.T, name string, parse func([]byte) (T, tool.Problems, error)) T {
	t.Helper()
	v, p, err := parse(load(t, name))
	if err != nil || len(p) > 0 {
		t.Fatalf("%s: %v, %v", name, p, err)
	}
	return v
}

func TestTable(t *testing.T) {
	t.Parallel()
	log := good(t, "table.txt", ParseTable)
	is(t, "head", []string{log.Time, log.Driver, log.CUDA}, []string{"Tue Mar  3 10:00:00 2026", "550.90.07", "12.4"})
	g := log.GPUs[1]
	is(t, "GPU", []any{g.Index, g.BusID, g.Name, g.Persistence, g.ECC.Volatile.Uncorrectable, g.Temperature.GPU, g.State, g.Power.Draw, g.Power.Limit,
		g.Memory.Used, g.Memory.Total, g.Utilization, g.ComputeMode, g.MIG.Current},
		[]any{1, "0000:3b:00.0", "NVIDIA H100 80GB HBM3", true, 4, 31, "P0", 70, 700, 1, 81559, 0, "Default", false})
	is(t, "process", g.Processes, []map[string]any{{"pid": 4711, "type": "C", "name": "python3 train.py", "memory_mib": 512}})
	is(t, "no process", log.GPUs[0].Processes, nil)
}

func TestList(t *testing.T) {
	t.Parallel()
	log := good(t, "list.txt", ParseList)
	is(t, "UUIDs", []string{log.GPUs[0].UUID, log.GPUs[1].UUID}, []string{"GPU-00000000-1111-2222-3333-444455556666", "GPU-00000001-1111-2222-3333-444455556666"})
	is(t, "MIG", log.GPUs[0].MIGDevices, []map[string]any{{"profile": "1g.10gb", "index": 0, "uuid": "MIG-00000000-aaaa-bbbb-cccc-ddddeeeeffff"}})
}

func TestQuery(t *testing.T) {
	t.Parallel()
	q := good(t, "query.csv", ParseQuery)
	is(t, "units", []string{q.Columns[5].Unit, q.Columns[6].Unit, q.Columns[0].Unit}, []string{"MiB", "W", ""})
	is(t, "row", q.Rows[0], map[string]any{"index": 0, "name": "NVIDIA H100 80GB HBM3", "uuid": "GPU-00000000-1111-2222-3333-444455556666", "serial": "1650000000000",
		"pci.bus_id": "00000000:19:00.0", "memory.total": 81559, "power.limit": 700, "ecc.errors.uncorrected.volatile.total": 0,
		"retired_pages.pending": nil, "fan.speed": nil, "driver_version": "550.90.07"})
	is(t, "text", q.Rows[1].Text("retired_pages.pending"), "No")
	if n, ok := q.Rows[1].Number("ecc.errors.uncorrected.volatile.total"); !ok || n != 4 {
		t.Errorf("got %v, %v", n, ok)
	}
	if _, ok := q.Rows[0].Number("fan.speed"); ok {
		t.Error("what is not supported is a number")
	}
	is(t, "remapped rows", good(t, "rows.csv", ParseQuery).Rows[1], map[string]any{"gpu_uuid": "GPU-00000001-1111-2222-3333-444455556666",
		"remapped_rows.correctable": 0, "remapped_rows.uncorrectable": 2, "remapped_rows.pending": 1, "remapped_rows.failure": 0})
}

func TestNVLink(t *testing.T) {
	t.Parallel()
	v := good(t, "nvlink-s.txt", ParseNVLink)
	is(t, "links", v.GPUs[1].Links[1:3], []map[string]any{{"link": 1, "active": true, "gbytes_per_s": 26.562}, {"link": 2, "active": false, "gbytes_per_s": nil}})
	if s := v.Summary(); !strings.Contains(s[2], "3 of 4 up") {
		t.Errorf("summary %q", s)
	}
	e := good(t, "nvlink-e.txt", ParseNVLink)
	is(t, "counters", e.GPUs[0].Links[0].Counters, map[string]int{"replay_errors": 0, "recovery_errors": 0, "crc_errors": 7})
	is(t, "unknown counter", e.GPUs[0].Links[1].Counters, map[string]int{"replay_errors": 0, "crc_errors": 0})
	is(t, "NVLink 5", e.GPUs[1].Links[0].Counters, map[string]float64{"malformed_packet_errors": 0, "link_recovery_failed_events": 2, "effective_ber": 15e-255})
	c := good(t, "nvlink-c.txt", ParseNVLink)
	is(t, "capabilities", c.GPUs[0].Links[0].Capabilities, map[string]bool{"p2p_is_supported": true, "access_to_system_memory_supported": true, "sli_is_supported": false})
}

func TestTopology(t *testing.T) {
	t.Parallel()
	v := good(t, "topo.txt", ParseTopology)
	is(t, "devices", v.Devices[1:3], []map[string]any{{"name": "GPU1", "cpu_affinity": "32-63,96-127", "numa_affinity": "1", "gpu": true}, {"name": "NIC0", "device": "mlx5_0", "gpu": false}})
	is(t, "links", v.Links, [][]string{{"X", "NV18", "PXB", "SYS"}, {"NV18", "X", "SYS", "PXB"}, {"PXB", "SYS", "X", "SYS"}, {"SYS", "PXB", "SYS", "X"}})
	m := good(t, "topo.md", ParseTopology)
	is(t, "Markdown", m.Links, [][]string{{"X", "NV18", "PXB", "SYS"}, {"NV18", "X", "SYS", "PXB"}, nil, nil})
	is(t, "legend", []string{m.Devices[2].Device, m.Devices[3].Device}, []string{"mlx5_0", "mlx5_3"})
	is(t, "summary", v.Summary()[1], "GPU0: 1 GPUs by NV18, near mlx5_0")
}

// TestOutputProblems changes one thing in a good output.
func TestOutputProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, old, new string
		kind                 tool.ProblemKind
		text                 string
	}{
		{"unknown error", "table.txt", "31C    P0", "Unknown Error P0", tool.Failed, "GPU 0 at 0000:19:00.0 has a value that cannot be read"},
		{"value", "table.txt", "31C    P0", "ERR!   P0", tool.Failed, "GPU 0 at 0000:19:00.0 has a value that cannot be read"},
		{"GPU left out", "table.txt", "|   0  NVIDIA", "|   3  NVIDIA", tool.Missing, "GPU 3 follows 0 GPUs"},
		{"end", "table.txt", "512MiB |\n+-----------------------------------------------------------------------------------------+\n", "", tool.Truncated, "without its last line"},
		{"list", "list.txt", "GPU 1:", "GPU 2:", tool.Missing, "GPU 2 follows 1 GPUs"},
		{"list torn", "list.txt", " (UUID: GPU-00000001-1111-2222-3333-444455556666)", " (UU", tool.Truncated, "ends before its UUID"},
		{"list lost", "list.txt", "GPU 1: NV", "Unable to determine the device handle for gpu 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\nGPU 1: NV", tool.Failed, "is lost"},
		{"row", "query.csv", ", No, [N/A], 550.90.07", "", tool.Truncated, "8 of 11 columns"},
		{"cell", "query.csv", "[Not Supported]", "[GPU requires reset]", tool.Failed, "fan.speed: GPU requires reset"},
		{"link", "nvlink-s.txt", "\t Link 3: 26.562 GB/s\nGPU 1", "GPU 1", tool.Inconsistent, "GPU 0 has 3 links, another NVIDIA H100 80GB HBM3 has 4"},
		{"other way", "topo.txt", "GPU1\tNV18", "GPU1\tSYS", tool.Inconsistent, "GPU0 reaches GPU1 by NV18, and the other way round by SYS"},
		{"matrix row", "topo.txt", "GPU1\tNV18\t X \tSYS\tPXB\t32-63,96-127\t1\t\tN/A\n", "", tool.Truncated, "GPU1 has a column and no row"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := string(load(t, c.file))
			if !strings.Contains(in, c.old) {
				t.Fatalf("%s has no %q", c.file, c.old)
			}
			in = strings.Replace(in, c.old, c.new, 1)
			for _, f := range Formats {
				if f.Is([]byte(in)) < 70 {
					continue
				}
				_, problems, err := f.Parse([]byte(in))
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range problems {
					if p.Kind == c.kind && strings.Contains(p.Text, c.text) {
						return
					}
				}
				t.Fatalf("%s: got %+v", f.Name, problems)
			}
			t.Error("no format")
		})
	}
}

// TestComplaints reads what nvidia-smi prints when it cannot work.
func TestComplaints(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n",
		"No devices were found\n",
		"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.90\n",
		"Unable to determine the device handle for GPU1: 0000:3B:00.0: Unknown Error\n",
	} {
		log, p, err := ParseTable([]byte(in))
		if err != nil || len(p) != 1 || p[0].Kind != tool.Failed || isTable([]byte(in)) == 0 || len(log.Summary()) == 0 {
			t.Errorf("%q: %v, %v", in, p, err)
		}
	}
	if isTable([]byte("[ 12.5] NVRM: GPU is lost\n")) > 0 {
		t.Error("a kernel log is taken for nvidia-smi")
	}
}

// TestEachIsItself gives every fixture to every format.
func TestEachIsItself(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"h100.xml": "nvidia-smi-qx", "h100.txt": "nvidia-smi-q", "table.txt": "nvidia-smi", "list.txt": "nvidia-smi-l",
		"query.csv": "nvidia-smi-query", "rows.csv": "nvidia-smi-query", "nvlink-s.txt": "nvidia-smi-nvlink", "nvlink-e.txt": "nvidia-smi-nvlink",
		"nvlink-c.txt": "nvidia-smi-nvlink", "topo.txt": "nvidia-smi-topo", "topo.md": "nvidia-smi-topo"} {
		for _, f := range Formats {
			if n := f.Is(load(t, file)); (n > 0) != (f.Name == want) {
				t.Errorf("%s: %s is %d sure", file, f.Name, n)
			}
		}
	}
}

// TestQueryOfEverything: a heading of all fields is long and has capitals; the
// prompt behind the rows is no row, and a node without processes has none.
func TestQueryOfEverything(t *testing.T) {
	t.Parallel()
	in := "timestamp, driver_version, vgpu_driver_capability.heterogenous_multivGPU, index, pci.baseClass, fabric.state\n" +
		"2026/11/20 10:00:00.000, 590.48.01, 0, 0, 0x03, Completed\n2026/11/20 10:00:00.000, 590.48.01, [N/A], 1, 0x03, In Progress\nroot@r01-u01:~# \n[root@r01-u01 ~]# exit\n"
	q, p, err := ParseQuery([]byte(in))
	if err != nil || len(p) > 0 || isQuery([]byte(in)) < 80 || len(q.Rows) != 2 {
		t.Fatalf("%v, %v: %+v", err, p, q)
	}
	is(t, "row", q.Rows[1], map[string]any{"timestamp": "2026/11/20 10:00:00.000", "driver_version": "590.48.01", "vgpu_driver_capability.heterogenous_multivGPU": nil,
		"index": 1, "pci.baseClass": "0x03", "fabric.state": "In Progress"})
	for in, want := range map[string]int{"pid, process_name, used_gpu_memory [MiB]\n": 0, "gpu_uuid, retired_pages.address, retired_pages.cause\n": 0, "index, name, uuid\n": 1} {
		if _, p, err := ParseQuery([]byte(in)); err != nil || len(p) != want {
			t.Errorf("%q: %v, %v", in, err, p)
		}
	}
}

func TestTableOfNewDrivers(t *testing.T) {
	t.Parallel()
	in := strings.Replace(string(load(t, "table.txt")), "Driver Version: 550.90.07      CUDA Version: 12.4", "KMD Version: 610.57.04     CUDA UMD Version: 13.3", 1)
	log, p, err := ParseTable([]byte(in))
	if err != nil || len(p) > 0 || log.Driver != "610.57.04" || log.CUDA != "13.3" {
		t.Errorf("%v, %v, driver %q, CUDA %q", err, p, log.Driver, log.CUDA)
	}
}

func TestGPUToGPU(t *testing.T) {
	t.Parallel()
	in := "$ nvidia-smi topo -p2p r\n \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tOK\tX\t\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n"
	v, p, err := ParseTopology([]byte(in))
	if err != nil || isTopology([]byte(in)) < 80 || len(p) != 1 || !strings.Contains(p[0].Text, "the other way round") {
		t.Fatalf("%v, %v", err, p)
	}
	is(t, "links", v.Links, [][]string{{"X", "CNS"}, {"OK", "X"}})
}

// TestBurnIsNoList: gpu_burn lists GPUs as nvidia-smi -L does, and is no list.
func TestBurnIsNoList(t *testing.T) {
	t.Parallel()
	in := string(load(t, "list.txt")) + "50.0%  proc'd: 2261 (7150 Gflop/s) - 0 (0 Gflop/s)   errors: 0 - 0   temps: 38 C - 36 C \n\tGPU 0: OK\n"
	if n := isList([]byte(in)); n != 0 {
		t.Errorf("it is %d%% sure", n)
	}
}

// TestTableOfMIG: the table of MIG devices is no table of GPUs.
func TestTableOfMIG(t *testing.T) {
	t.Parallel()
	whole := string(load(t, "table.txt"))
	at := strings.Index(whole, "| Processes:")
	at = strings.LastIndex(whole[:at], "+--")
	for strings.HasSuffix(whole[:at], "-") {
		at--
	}
	for _, row := range []string{"|  No MIG devices found                                                       |\n", "|  0    1   0   0  |      6MiB /  9984MiB | 14      0 |  1   0    0    0    0 |\n"} {
		mig := "+-----------------------------------------------------------------------------+\n| MIG devices:                                                                |\n" +
			"| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |\n|==================+======================+===========+=======================|\n" + row +
			"+------------------+----------------------+-----------+-----------------------+\n\n"
		log, p, err := ParseTable([]byte(whole[:at] + mig + whole[at:]))
		if err != nil || len(p) > 0 || len(log.GPUs) != 2 || len(log.GPUs[1].Processes) != 1 {
			t.Errorf("%v, %v: %+v", err, p, log)
		}
	}
}
