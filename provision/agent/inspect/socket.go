// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"slices"
	"strconv"
	"strings"
)

// accelerates reports whether a PCI class is that of display controllers or of
// processing accelerators: the base classes of GPUs.
func accelerates(class string) bool {
	return strings.HasPrefix(class, "03") || strings.HasPrefix(class, "12")
}

// socket is the index of the CPU that a PCI function hangs on, in the order of the
// packages' numbers: that of the first CPU of its NUMA node. It is nil where the
// firmware does not say (numa_node is -1).
func (i Inspector) socket(address string) *int {
	node := i.FS.Text("sys/bus/pci/devices", address, "numa_node")
	if n, err := strconv.Atoi(node); err != nil || n < 0 {
		return nil
	}
	list := i.FS.Text("sys/devices/system/node", "node"+node, "cpulist") // such as 0-55,112-167
	first, _, _ := strings.Cut(list, ",")
	first, _, _ = strings.Cut(first, "-")
	at, err := strconv.Atoi(i.FS.Text("sys/devices/system/cpu", "cpu"+first, "topology", "physical_package_id"))
	if err != nil {
		return nil
	}
	var packages []int
	for _, name := range i.FS.Names("sys/devices/system/cpu") {
		if id, err := strconv.Atoi(i.FS.Text("sys/devices/system/cpu", name, "topology", "physical_package_id")); err == nil && cpuName.MatchString(name) {
			packages = append(packages, id)
		}
	}
	slices.Sort(packages)
	index := slices.Index(slices.Compact(packages), at)
	return &index
}
