// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// How long nvbandwidth takes: to start, of each GPU and test, and of each pair.
// Belief.
const (
	nvbStart  = 4 * time.Second
	nvbOfGPU  = 1500 * time.Millisecond
	nvbOfPair = 400 * time.Millisecond
)

// nvbTest is one test of nvbandwidth.
type nvbTest struct {
	name, what string
	rows       bool // a row for each GPU, without itself
	rate       func(n *node, g, peer gpu) float64
}

// nvbTests are those that are simulated, with the words of testcases_ce.cpp of
// nvbandwidth 0.8. A copy within a memory counts each byte once.
var nvbTests = []nvbTest{
	{"device_local_copy", "memcpy local GPU(column) bandwidth (GB/s)", false, func(n *node, g, _ gpu) float64 { return n.memoryRate(g.address(), g.name) / 2 }},
	{"host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", false, func(n *node, g, _ gpu) float64 { return n.hostRate(g.address(), g.name, true) }},
	{"device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)", false, func(n *node, g, _ gpu) float64 { return n.hostRate(g.address(), g.name, false) }},
	{"device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", true, func(n *node, g, peer gpu) float64 { return n.peerRate(g.address(), peer.address(), g.name, "nvidia") }},
}

// runNvbandwidth is nvbandwidth -b SIZE -t TEST..., with text.
func runNvbandwidth(ctx context.Context, c call) int {
	wanted := []string{}
	for i, a := range c.Argv {
		if a == "-t" {
			wanted = c.Argv[i+1:]
		}
	}
	list := c.n.gpus()
	if !c.n.loaded("nvidia") || len(list) == 0 {
		c.print("nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\n[CUDA_ERROR_NO_DEVICE] no CUDA-capable device is detected in expression cuInit(0) in main() : nvbandwidth.cpp:215\n")
		return 1
	}
	driver, cuda := c.n.nvidiaDriver(), 13000
	if driver < "580" {
		cuda = 12080
	}
	var b strings.Builder
	fmt.Fprintf(&b, "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nCUDA Runtime Version: %d\nCUDA Driver Version: %d\nDriver Version: %s\n\n%s\n", cuda, cuda, driver, c.n.hostname())
	for _, g := range list {
		fmt.Fprintf(&b, "Device %d: %s (%s)\n", g.index, g.name, strings.ToLower(strings.TrimSuffix(g.bus, ".0")))
	}
	b.WriteString("\n")
	took := nvbStart
	for _, name := range wanted {
		known := false
		for _, t := range nvbTests {
			if t.name == name {
				known = true
				took += t.write(&b, c.n, list)
			}
		}
		if !known {
			fmt.Fprintf(&b, "ERROR: Testcase %s not found!\n", name)
		}
	}
	b.WriteString("NOTE: The reported results may not reflect the full capabilities of the platform.\nPerformance can vary with software drivers, hardware clocks, and system topology.\n\n")
	if c.n.cfg.Clock.Sleep(ctx, took) != nil {
		return 137
	}
	c.print(b.String())
	return 0
}

// write prints a test and returns how long it takes.
func (t nvbTest) write(b *strings.Builder, n *node, list []gpu) time.Duration {
	if t.rows && len(list) < 2 {
		b.WriteString("Waived: \n")
		return 0
	}
	fmt.Fprintf(b, "Running %s.\n%s\n  ", t.name, t.what)
	for i := range list {
		fmt.Fprintf(b, "%10d", i)
	}
	sum, rows, took := 0.0, list[:1], time.Duration(len(list))*nvbOfGPU
	if t.rows {
		rows, took = list, time.Duration(len(list)*(len(list)-1))*nvbOfPair
	}
	for i, row := range rows {
		fmt.Fprintf(b, "\n%2d", i)
		for _, g := range list {
			if t.rows && g.index == row.index {
				fmt.Fprintf(b, "%10s", "N/A")
				continue
			}
			from, to := g, g
			if t.rows {
				from, to = row, g
			}
			v := t.rate(n, from, to)
			sum += v
			fmt.Fprintf(b, "%10s", formatGBps(v, 2))
		}
	}
	fmt.Fprintf(b, "\n\nSUM %s %s\n\n", t.name, formatGBps(sum, 2))
	return took
}
