// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/hashicorp/hcl/v2/hclparse"
)

// bigSite is a site of so many racks of eight nodes, all from one rack block, one
// node block and a vendor's list.
func bigSite(racks int) fs.FS {
	var rows bytes.Buffer
	rows.WriteString("rack,unit,serial,bmc_mac,boot_mac\n")
	for r := 1; r <= racks; r++ {
		for u := range 8 {
			n := r*8 + u
			fmt.Fprintf(&rows, "r%04d,%d,SN%06d,02:01:00:%02x:%02x:%02x,02:02:00:%02x:%02x:%02x\n", r, 1+u*4, n, n>>16, n>>8&255, n&255, n>>16, n>>8&255, n&255)
		}
	}
	const site = `
locals { shipped = csvdecode(file("manifest.csv")) }
site "big" { domain = "big.example" }
network "boot" { cidr = "10.0.0.0/12" }
network "oob" { cidr = "10.16.0.0/12" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD")
}
hardware "h" {
  rack_units = 4
  power {
    max      = "8kW"
    supplies = 4
  }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
role "worker" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
rack "r" {
  count  = %d
  name   = "r${format("%%04d", count.index + 1)}"
  number = count.index + 1
  pdu "a" {
    feed    = "A"
    phases  = 3
    voltage = "415V"
    current = "63A"
  }
  node "n" {
    for_each = { for r in local.shipped : r.unit => r if r.rack == rack.name }
    name     = "${rack.name}-u${format("%%02d", tonumber(each.key))}"
    role     = role.worker
    unit     = tonumber(each.key)
    serial   = each.value.serial
    boot_mac = each.value.boot_mac
    bmc_mac  = each.value.bmc_mac
    feeds    = ["a"]
  }
}
`
	return fstest.MapFS{"site.hcl": {Data: fmt.Appendf(nil, site, racks)}, "manifest.csv": {Data: rows.Bytes()}}
}

func loadBig(tb testing.TB, racks int) time.Duration {
	tb.Helper()
	fsys := bigSite(racks)
	start := time.Now()
	inv, diags, _ := LoadFS(fsys, Options{})
	took := time.Since(start)
	if len(diags) > 0 {
		tb.Fatalf("%d findings, the first: %+v", len(diags), diags[0])
	}
	if len(inv.Nodes) != racks*8 {
		tb.Fatalf("nodes: got %d, want %d", len(inv.Nodes), racks*8)
	}
	return took
}

// BenchmarkLoad is a site by for_each, from a vendor's list: ns/node stays the
// same from 100 nodes to 12,500.
func BenchmarkLoad(b *testing.B) {
	for _, nodes := range []int{104, 1_000, 12_504} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				loadBig(b, nodes/8)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*nodes), "ns/node")
		})
	}
}

// literalSite is the same site with every node written out.
func literalSite(racks int) fs.FS {
	fsys := bigSite(0).(fstest.MapFS)
	head, _, _ := bytes.Cut(fsys["site.hcl"].Data, []byte("rack \"r\" {"))
	out := fstest.MapFS{"site.hcl": {Data: head}, "manifest.csv": fsys["manifest.csv"]}
	var b bytes.Buffer
	for r := 1; r <= racks; r++ {
		fmt.Fprintf(&b, "rack \"r%04d\" {\n  number = %d\n", r, r)
		for u := range 8 {
			n := r*8 + u
			fmt.Fprintf(&b, "  node \"r%04d-u%02d\" {\n    role     = role.worker\n    unit     = %d\n    serial   = \"SN%06d\"\n    boot_mac = \"02:02:00:%02x:%02x:%02x\"\n    bmc_mac  = \"02:01:00:%02x:%02x:%02x\"\n  }\n",
				r, 1+u*4, 1+u*4, n, n>>16, n>>8&255, n&255, n>>16, n>>8&255, n&255)
		}
		b.WriteString("}\n")
		if r%200 == 0 || r == racks {
			out[fmt.Sprintf("racks%04d.hcl", r)] = &fstest.MapFile{Data: bytes.Clone(b.Bytes())}
			b.Reset()
		}
	}
	return out
}

// BenchmarkLoadLiteral is a site of nodes written out one by one, beside what the
// HCL library takes to parse the same files and nothing else: x-hclparse is how
// many times longer Load takes. Both are timed by turns, so that whatever else the
// computer does meets both.
func BenchmarkLoadLiteral(b *testing.B) {
	for _, nodes := range []int{104, 1_000, 12_504} {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			fsys := literalSite(nodes / 8).(fstest.MapFS)
			b.ReportAllocs()
			var parsing, loading time.Duration
			for b.Loop() {
				parsing += parseOnly(b, fsys)
				runtime.GC()
				start := time.Now()
				inv, diags, _ := LoadFS(fsys, Options{})
				loading += time.Since(start)
				if len(diags) > 0 || len(inv.Nodes) != nodes {
					b.Fatalf("%d nodes, %d findings: %+v", len(inv.Nodes), len(diags), diags[0])
				}
			}
			b.ReportMetric(float64(loading)/float64(parsing), "x-hclparse")
			b.ReportMetric(float64(loading.Nanoseconds())/float64(b.N*nodes), "ns/node")
		})
	}
}

// parseOnly parses the files as any program with the HCL library does.
func parseOnly(tb testing.TB, fsys fstest.MapFS) time.Duration {
	tb.Helper()
	runtime.GC() // what the one before left is not its cost
	start := time.Now()
	p := hclparse.NewParser()
	for _, name := range slices.Sorted(maps.Keys(fsys)) {
		if !strings.HasSuffix(name, ".hcl") {
			continue
		}
		if _, diags := p.ParseHCL(fsys[name].Data, name); diags.HasErrors() {
			tb.Fatal(diags)
		}
	}
	return time.Since(start)
}
