// SPDX-License-Identifier: Apache-2.0

package donesite_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/cputime"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
)

// BenchmarkCheck loads and checks the site of one CSV: 8 GPUs and 8 rail cables a
// node, topology, cables, power, addresses; and the same site with each rack and node
// written out. The peak is that of the resident process, which the kernel counts anew
// for each size (Linux, proc_pid_clear_refs(5)).
func BenchmarkCheck(b *testing.B) {
	for _, nodes := range []int{100, 1_000, 12_500} {
		b.Run(strconv.Itoa(nodes), func(b *testing.B) { benchCheck(b, site(b, nodes), nodes) })
	}
	b.Run("literal/12500", func(b *testing.B) { benchCheck(b, literalSite(b, 12_500), 12_500) })
}

func benchCheck(b *testing.B, dir string, nodes int) {
	defer provision.CollectLess(dir)() // as the commands do while they load
	debug.FreeOSMemory()
	counted := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) == nil
	var cpu time.Duration
	var inv *inventory.Inventory
	for b.Loop() {
		b.StopTimer()
		inv = nil // a command loads one site
		debug.FreeOSMemory()
		b.StartTimer()
		began := cputime.Used()
		var diags inventory.Diagnostics
		if inv, diags, _ = provision.Load(dir, inventory.Options{}); diags.HasErrors() {
			b.Fatal(diags[0].Detail)
		}
		cpu += cputime.Used() - began
	}
	if len(inv.Nodes) != nodes || len(inv.Cables) < 8*nodes {
		b.Fatalf("%d nodes and %d cables", len(inv.Nodes), len(inv.Cables))
	}
	b.ReportMetric(float64(cpu.Milliseconds())/float64(b.N), "cpu-ms/op")
	b.ReportMetric(float64(cpu.Microseconds())/float64(b.N*nodes), "cpu-us/node")
	b.ReportMetric(float64(len(inv.Cables)), "cables")
	if counted {
		b.ReportMetric(peak(b), "MiB-peak")
	}
}

// literalSite is the site with each rack of nodes and each node written out.
func literalSite(t testing.TB, count int) string {
	dir := site(t, count)
	text, err := os.ReadFile(filepath.Join(dir, "site.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(filepath.Join(dir, "nodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "rack \"r\" {\n")
	rack, net, _ := strings.Cut(rest, "rack \"net\"")
	_, pdus, _ := strings.Cut(rack, "each.value[0].row\n")
	head, nodes, _ := strings.Cut(pdus, "  node \"n\" {")
	_, leaf, ok := strings.Cut(nodes, "  switch \"leaf\"")
	if !ok {
		t.Fatal("the example has other racks than it had")
	}
	var files [][]byte
	var racks bytes.Buffer
	last := ""
	for line := range strings.Lines(string(rows[bytes.IndexByte(rows, '\n')+1:])) {
		f := strings.Split(strings.TrimSpace(line), ",") // name, rack, number, row, unit, serial, bmc_mac, boot_mac
		if f[1] != last {
			if last != "" {
				fmt.Fprintf(&racks, "  switch \"leaf\"%s", leaf)
			}
			if racks.Len() > 256<<10 {
				files = append(files, bytes.Clone(racks.Bytes()))
				racks.Reset()
			}
			fmt.Fprintf(&racks, "rack %q {\n  number = %s\n  row = %q\n%s", f[1], f[2], f[3], head)
			last = f[1]
		}
		fmt.Fprintf(&racks, "  node %q {\n    role     = role.worker\n    unit     = %s\n    serial   = %q\n    boot_mac = %q\n    bmc_mac  = %q\n    feeds    = [\"a1\", \"a2\", \"b1\", \"b2\"]\n  }\n", f[0], f[4], f[5], f[7], f[6])
	}
	fmt.Fprintf(&racks, "  switch \"leaf\"%s", leaf)
	for i, text := range append(files, racks.Bytes(), []byte(before+"rack \"net\""+net)) {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("racks%02d.hcl", i)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(dir, "site.hcl")); err != nil {
		t.Fatal(err)
	}
	return dir
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
