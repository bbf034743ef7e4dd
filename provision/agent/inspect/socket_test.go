// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// TestSockets: a GPU hangs on the CPU whose memory is nearest to it; a function
// that is no GPU, and one of which the firmware says nothing, have none.
func TestSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"sys/devices/system/cpu/cpu0/topology/physical_package_id": "0",
		"sys/devices/system/cpu/cpu1/topology/physical_package_id": "0",
		"sys/devices/system/cpu/cpu2/topology/physical_package_id": "36", // some firmware does not count
		"sys/devices/system/cpu/cpu3/topology/physical_package_id": "36",
		"sys/devices/system/node/node0/cpulist":                    "0-1",
		"sys/devices/system/node/node1/cpulist":                    "2,3",
		"sys/bus/pci/devices/0000:18:00.0/class":                   "0x030200",
		"sys/bus/pci/devices/0000:18:00.0/numa_node":               "0",
		"sys/bus/pci/devices/0000:9a:00.0/class":                   "0x120000",
		"sys/bus/pci/devices/0000:9a:00.0/numa_node":               "1",
		"sys/bus/pci/devices/0000:9b:00.0/class":                   "0x020700",
		"sys/bus/pci/devices/0000:9b:00.0/numa_node":               "1",
		"sys/bus/pci/devices/0000:c0:00.0/class":                   "0x030200",
		"sys/bus/pci/devices/0000:c0:00.0/numa_node":               "-1",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]int{}
	for _, f := range (Inspector{FS: sysfs.Dir(dir)}).Hardware().PCI {
		got[f.Address] = -1
		if f.Socket != nil {
			got[f.Address] = *f.Socket
		}
	}
	for address, want := range map[string]int{"0000:18:00.0": 0, "0000:9a:00.0": 1, "0000:9b:00.0": -1, "0000:c0:00.0": -1} {
		if got[address] != want {
			t.Errorf("%s: socket %d, want %d", address, got[address], want)
		}
	}
}
