// SPDX-License-Identifier: Apache-2.0

package donesite_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
)

// BenchmarkCheck loads and checks the site of one CSV: 8 GPUs and 8 rail cables a
// node, topology, cables, power, addresses. The peak is that of the resident
// process, which the kernel counts anew for each size (Linux, proc_pid_clear_refs(5)).
func BenchmarkCheck(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the commands do while they load
	for _, nodes := range []int{100, 1_000, 12_500} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) {
			dir := site(b, nodes)
			debug.FreeOSMemory()
			counted := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
			var inv *inventory.Inventory
			for b.Loop() {
				b.StopTimer()
				inv = nil // a command loads one site
				debug.FreeOSMemory()
				b.StartTimer()
				var diags inventory.Diagnostics
				if inv, diags, _ = provision.Load(dir, inventory.Options{}); diags.HasErrors() {
					b.Fatal(diags[0].Detail)
				}
			}
			if len(inv.Nodes) != nodes || len(inv.Cables) < 8*nodes {
				b.Fatalf("%d nodes and %d cables", len(inv.Nodes), len(inv.Cables))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*nodes), "us/node")
			b.ReportMetric(float64(len(inv.Cables)), "cables")
			if counted {
				b.ReportMetric(peak(b), "MiB-peak")
			}
		})
	}
}

// peak is the largest resident size of this process since it was last reset.
func peak(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if m == nil {
		b.Fatal("no VmHWM in /proc/self/status")
	}
	var kib float64
	if _, err := fmt.Sscan(string(m[1]), &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}
