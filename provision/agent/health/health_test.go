// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/binary"
	"encoding/json"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// machine has a GPU whose link is narrow, a NIC without AER counters, a bridge,
// and a disk of which the kernel knows no link.
var machine = map[string]string{
	"sys/bus/pci/devices/0000:19:00.0/class":                          "0x030200",
	"sys/bus/pci/devices/0000:19:00.0/vendor":                         "0x10de",
	"sys/bus/pci/devices/0000:19:00.0/device":                         "0x2330",
	"sys/bus/pci/devices/0000:19:00.0/current_link_width":             "8",
	"sys/bus/pci/devices/0000:19:00.0/max_link_width":                 "16",
	"sys/bus/pci/devices/0000:19:00.0/current_link_speed":             "2.5 GT/s PCIe",
	"sys/bus/pci/devices/0000:19:00.0/max_link_speed":                 "32.0 GT/s PCIe",
	"sys/bus/pci/devices/0000:19:00.0/aer_dev_fatal":                  "Undefined 0\nDLP 2\nTOTAL_ERR_FATAL 2\n",
	"sys/bus/pci/devices/0000:19:00.0/aer_dev_nonfatal":               "Undefined 0\nTOTAL_ERR_NONFATAL 0\n",
	"sys/bus/pci/devices/0000:19:00.0/aer_dev_correctable":            "RxErr 0\nBadTLP 7\nTOTAL_ERR_COR 7\n",
	"sys/bus/pci/devices/0000:1a:00.0/class":                          "0x020000",
	"sys/bus/pci/devices/0000:1a:00.0/current_link_width":             "16",
	"sys/bus/pci/devices/0000:1b:00.0/class":                          "0x060400",
	"sys/bus/pci/devices/0000:1c:00.0/class":                          "0x010802",
	"sys/bus/pci/devices/0000:1c:00.0/current_link_width":             "255",
	"sys/bus/pci/devices/0000:1c:00.0/current_link_speed":             "Unknown",
	"sys/devices/system/edac/mc/mc0/ue_count":                         "1",
	"sys/devices/system/edac/mc/mc0/ce_count":                         "7",
	"sys/devices/system/edac/mc/power/control":                        "auto",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor":            "performance",
	"sys/devices/system/cpu/cpu1/cpufreq/scaling_governor":            "powersave",
	"sys/devices/system/cpu/cpu2/cpufreq/scaling_governor":            "performance",
	"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
	"sys/class/infiniband/mlx5_0/ports/1/state":                       "4: ACTIVE",
	"sys/class/infiniband/mlx5_0/ports/1/rate":                        "400 Gb/sec (4X NDR)",
	"sys/class/infiniband/mlx5_0/ports/1/link_layer":                  "InfiniBand",
}

func TestLook(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	for name, text := range machine {
		tree[name] = &fstest.MapFile{Data: []byte(text + "\n")}
	}
	got, err := json.Marshal(health.Read(sysfs.Of(tree)))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"pci":[{"address":"0000:19:00.0","class":"030200","vendor":"10de","device":"2330","width":8,"max_width":16,"speed":2.5,"max_speed":32,"fatal":2,"nonfatal":0,"corrected":7},` +
		`{"address":"0000:1a:00.0","class":"020000","vendor":"","device":"","width":16},{"address":"0000:1c:00.0","class":"010802","vendor":"","device":""}],` +
		`"memory":[{"controller":"mc0","corrected":7,"uncorrected":1}],"cpu":{"model":"","sockets":0,"cores":0,"threads":3},"governors":{"performance":2,"powersave":1},"clock":"tsc",` +
		`"ports":[{"device":"mlx5_0","number":1,"layer":"InfiniBand","state":"ACTIVE","physical":"","rate":"400 Gb/sec (4X NDR)"}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// memoryDevice is a structure of type 17 with a slot's name, its MiB and its MT/s.
func memoryDevice(slot string, mib, speed uint16) string {
	b := make([]byte, 0x22)
	b[0], b[1], b[0x10] = 17, byte(len(b)), 1
	binary.LittleEndian.PutUint16(b[0x0c:], mib)
	binary.LittleEndian.PutUint16(b[0x20:], speed)
	return string(b) + slot + "\x00\x00"
}

// TestTPM: a kernel that knows TPMs says which is there, and whether there is none.
func TestTPM(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, want string }{
		"2.0": {"sys/class/tpm/tpm0/tpm_version_major", "2\n", "2.0"}, "1.2": {"sys/class/tpm/tpm0/tpm_version_major", "1\n", "1.2"},
		"a version that is not known": {"sys/class/tpm/tpm0/caps", "TCG version: 1.2\n", ""}, "a kernel without drivers of TPMs": {"sys/class/net/lo/mtu", "1\n", ""},
	} {
		if got := health.Read(sysfs.Of(fstest.MapFS{c.file: {Data: []byte(c.text)}})).TPM; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := health.Read(sysfs.Of(fstest.MapFS{"sys/class/tpm": {Mode: fs.ModeDir | 0o555}})).TPM; got != wire.NoTPM {
		t.Errorf("no TPM: %q", got)
	}
}

// TestMadeOf: of what a node is made of, memory nodes without CPUs and CPUs that are offline
// are not counted, and an empty slot is one.
func TestMadeOf(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"proc/cpuinfo": "model name\t: AMD EPYC 9554 64-Core Processor\n", "sys/devices/system/cpu/smt/active": "0\n",
		"sys/devices/system/cpu/cpu0/topology/physical_package_id": "0\n", "sys/devices/system/cpu/cpu0/topology/core_id": "0\n",
		"sys/devices/system/cpu/cpu1/topology/physical_package_id": "1\n", "sys/devices/system/cpu/cpu1/topology/core_id": "0\n", "sys/devices/system/cpu/cpu2/online": "0\n",
		"sys/devices/system/node/node0/cpulist": "0\n", "sys/devices/system/node/node1/cpulist": "1-2\n", "sys/devices/system/node/node2/cpulist": "\n",
		"sys/firmware/dmi/tables/DMI": memoryDevice("A1", 16384, 4800) + memoryDevice("A2", 0, 0),
		"sys/block/sda/size":          "2048\n", "sys/block/sda/device/model": "HDD\n", "sys/block/sda/queue/rotational": "1\n",
		"sys/bus/pci/devices/0000:1a:00.0/class": "0x020000\n", "sys/bus/pci/devices/0000:1a:00.0/net/eth0/mtu": "9000\n",
		"sys/bus/pci/devices/0000:1b:00.0/class": "0x020000\n", "sys/bus/pci/devices/0000:1b:00.0/virtio1/net/ens4/mtu": "1400\n",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	h := health.Read(sysfs.Of(tree))
	off := false
	if want := (wire.CPU{Model: "AMD EPYC 9554 64-Core Processor", Sockets: 2, Cores: 2, Threads: 3, NUMA: 2, SMT: &off}); !reflect.DeepEqual(h.CPU, want) {
		t.Errorf("CPU %+v, want %+v", h.CPU, want)
	}
	if want := []wire.Module{{Slot: "A1", Size: 16 << 30, Speed: 4800}, {Slot: "A2"}}; !slices.Equal(h.DIMMs, want) {
		t.Errorf("DIMMs %+v", h.DIMMs)
	}
	if len(h.Drives) != 1 || h.Drives[0].Model != "HDD" || h.Drives[0].Size != 1<<20 {
		t.Errorf("drives %+v", h.Drives)
	}
	for i, want := range []int64{9000, 1400} {
		if m := h.PCI[i].MTU; m == nil || *m != want {
			t.Errorf("MTU of function %d: %v", i, m)
		}
	}
}

// TestOfThisMachine: the kernel that runs shows its CPUs, each on a NUMA node.
func TestOfThisMachine(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/sys/devices/system/node"); err != nil {
		t.Skip("no NUMA nodes in /sys")
	}
	c := health.Read(sysfs.Dir("/")).CPU
	if c.Threads < c.Cores || c.Cores < c.Sockets || c.Sockets < 1 || c.NUMA < 1 || c.SMT != nil && *c.SMT != (c.Threads > c.Cores) {
		t.Errorf("%+v", c)
	}
}

// TestPageSize: the page size is found behind other entries of the auxiliary vector, and not
// in one that is cut off or has none.
func TestPageSize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		numbers []uint64
		cut     int
		want    int
	}{
		"4K":      {[]uint64{33, 0x7ffc, 16, 6, 6, 4096, 0, 0}, 0, 4096},
		"64K":     {[]uint64{6, 65536, 0, 0}, 0, 65536},
		"none":    {[]uint64{33, 6, 0, 0}, 0, 0},
		"cut off": {[]uint64{33, 6, 6, 4096}, 1, 0},
	} {
		var b []byte
		for _, n := range c.numbers {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		got := health.Read(sysfs.Of(fstest.MapFS{"proc/self/auxv": {Data: b[:len(b)-c.cut]}})).PageSize
		if got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// TestOwnPageSize: what is read is what this kernel has.
func TestOwnPageSize(t *testing.T) {
	t.Parallel()
	if got := health.Read(sysfs.Of(os.DirFS("/"))).PageSize; got != os.Getpagesize() {
		t.Errorf("got %d, want %d", got, os.Getpagesize())
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(health.Read(sysfs.Of(fstest.MapFS{})))
	if err != nil || string(got) != `{"pci":[]}` {
		t.Errorf("%s, %v", got, err)
	}
}
