// SPDX-License-Identifier: Apache-2.0

package speed

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// core is a core by its first thread.
type core struct{ cpu, node int }

var cpuName = lazyregexp.New(`^cpu[0-9]+$`)

// findCores lists the cores that run, in the order of their first threads. A kernel without
// NUMA has one node.
func findCores(fs sysfs.FS) (list []core) {
	const cpus = "sys/devices/system/cpu"
	nodes, taken := nodesOf(fs), map[string]bool{}
	for _, name := range fs.Names(cpus) {
		if !cpuName.MatchString(name) || !fs.Exists(cpus, name, "topology") || fs.Text(cpus, name, "online") == "0" {
			continue
		}
		key := fs.Text(cpus, name, "topology/physical_package_id") + " " + fs.Text(cpus, name, "topology/die_id") + " " + fs.Text(cpus, name, "topology/core_id")
		number, err := strconv.Atoi(strings.TrimPrefix(name, "cpu"))
		if err != nil || taken[key] {
			continue
		}
		taken[key] = true
		list = append(list, core{number, nodes[number]})
	}
	return list
}

func numbers(cores []core) (list []int) {
	for _, c := range cores {
		list = append(list, c.cpu)
	}
	return list
}

// nodesOf is the NUMA node of each CPU.
func nodesOf(fs sysfs.FS) map[int]int {
	const dir = "sys/devices/system/node"
	of := map[int]int{}
	for _, name := range fs.Names(dir) {
		node, err := strconv.Atoi(strings.TrimPrefix(name, "node"))
		if err != nil || !strings.HasPrefix(name, "node") {
			continue
		}
		for _, cpu := range parseList(fs.Text(dir, name, "cpulist")) {
			of[cpu] = node
		}
	}
	return of
}

// mostCPUs bounds a list: Linux has no more.
const mostCPUs = 8192

// parseList reads a list of CPUs as the kernel writes it, such as 0-55,112-167.
func parseList(text string) (list []int) {
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		for i := a; i <= min(b, mostCPUs); i++ {
			list = append(list, i)
		}
	}
	return list
}
