// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"encoding/json"
	"testing"
	"testing/fstest"

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
	want := `{"pci":[{"address":"0000:19:00.0","class":"030200","vendor":"10de","device":"2330","width":8,"max_width":16,"speed":2.5,"max_speed":32,"fatal":2,"nonfatal":0},` +
		`{"address":"0000:1a:00.0","class":"020000","vendor":"","device":"","width":16},{"address":"0000:1c:00.0","class":"010802","vendor":"","device":""}],` +
		`"memory":[{"controller":"mc0","corrected":7,"uncorrected":1}],"governors":{"performance":2,"powersave":1},"clock":"tsc",` +
		`"ports":[{"device":"mlx5_0","number":1,"layer":"InfiniBand","state":"ACTIVE","physical":"","rate":"400 Gb/sec (4X NDR)"}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestNothing(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(health.Read(sysfs.Of(fstest.MapFS{})))
	if err != nil || string(got) != `{"pci":[]}` {
		t.Errorf("%s, %v", got, err)
	}
}
