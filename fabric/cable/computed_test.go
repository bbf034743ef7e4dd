// SPDX-License-Identifier: Apache-2.0

package cable_test

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// computed loads a site of nodes with 8 ports in 4 twin-port cages; inside is part
// of their racks, more has the fabric and other racks. Controller head takes 4 ports of
// the leaves of an InfiniBand fabric.
func computed(t *testing.T, nodes int, inside, more string) *inventory.Inventory {
	t.Helper()
	kinds := inventory.DefaultKinds()
	for name, o := range map[string]topology.Options{"infiniband": {Kind: "infiniband", Managers: []string{"head"}, ManagerPorts: 4}, "roce": {}} {
		spec := kinds.Fabric[name]
		spec.Design = func(inv *inventory.Inventory, f *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List) {
			return topology.Build(inv, f, o)
		}
		spec.Check = func(inv *inventory.Inventory, b inventory.Block) diag.List {
			return topology.Check(inv, topology.Of(inv, b))
		}
		kinds.Fabric[name] = spec
	}
	const site = `
site "t" {
  geometry {
    rack_width  = "600mm"
    row_pitch   = "2.4m"
    tray_height = "2.7m"
    slack       = "0.5m"
  }
}
network "boot" { cidr = "10.20.0.0/16" }
network "oob" { cidr = "10.10.0.0/16" }
controller "head" { address = "10.20.0.2" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD")
}
hardware "gpu" {
  rack_units = 8
  power { max = "8kW" }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "rail" {
    fabric = fabric.compute
    speed  = "400Gbps"
    ports  = [for i in range(8) : { rail = i, pci = "0000:1${i}:00.0", panel = "OSFP ${floor(i / 2) + 1}/${i %% 2 + 1}" }]
  }
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
role "worker" {
  hardware = hardware.gpu
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
rack "r" {
  count  = %d
  name   = "r${count.index + 1}"
  number = count.index + 1
  row    = "A"
  units  = 48
  node "n" {
    for_each = { for u in [1, 9, 17, 25] : u => u if 4 * (rack.number - 1) + (u - 1) / 8 < %d }
    name     = "n${format("%%03d", 4 * (rack.number - 1) + (each.value - 1) / 8 + 1)}"
    role     = role.worker
    unit     = each.value
  }
%s}
`
	text := fmt.Sprintf(site, (nodes+3)/4, nodes, inside) + more
	inv, diags, _ := inventory.LoadFS(fstest.MapFS{"site.hcl": {Data: []byte(text)}}, inventory.Options{Kinds: &kinds, Checks: []inventory.Check{cable.Check}})
	for _, d := range diags {
		t.Errorf("%s %s: %s", d.Severity, d.Check, d.Detail)
	}
	return inv
}

// TestScalableUnit is NVIDIA's DGX H100 SuperPOD of one unit: 31 nodes, 252
// cables to nodes and subnet managers, 256 between switches (DGX H100 SuperPOD
// reference architecture, table of the compute fabric).
func TestScalableUnit(t *testing.T) {
	t.Parallel()
	inv := computed(t, 31, "", `
fabric "infiniband" "compute" {
  rails     = 8
  link      = "400Gbps"
  topology  = "rail-optimized"
  unit_size = 32
  switch {
    model = "QM9700"
    ports = 64
  }
  subnet_manager {
    run_on = [controller.head]
    ports  = 4
  }
}
rack "net" {
  number = 20
  row    = "A"
  switch "leaf" {
    for_each = toset(["1", "2", "3", "4", "5", "6", "7", "8"])
    name     = "leaf-${each.key}"
    unit     = 10 + tonumber(each.key)
    fabric   = fabric.compute
  }
  switch "spine" {
    for_each = toset(["1", "2", "3", "4"])
    name     = "spine-${each.key}"
    unit     = 20 + tonumber(each.key)
    fabric   = fabric.compute
  }
}
`)
	runs := cable.ListRuns(inv)
	tiers := map[bool]int{}
	for _, r := range runs {
		tiers[r.Cables[0].From.Switch != nil && r.Cables[0].To.Switch != nil]++
	}
	if tiers[false] != 252 || tiers[true] != 256 {
		t.Errorf("got %d cables to nodes and subnet managers and %d between switches, want 252 and 256", tiers[false], tiers[true])
	}
	fibres, optics := 0, 0
	for _, i := range cable.CountBill(runs) {
		switch {
		case i.Type == "optic":
			optics += i.Count
		case i.Type == "fibre":
			fibres += i.Count
		}
	}
	// Four cages a node, 16 down and 16 up a leaf, 128 of all spines; the cables
	// of the subnet managers end where no rack is.
	if want := 31*8 + 256; fibres != want {
		t.Errorf("fibres: got %d, want %d", fibres, want)
	}
	if want := 31*4 + 8*32 + 128; optics != want {
		t.Errorf("transceivers: got %d, want %d", optics, want)
	}
}

// TestBothPortsOfACage lays one straight cable where a port of a switch is split
// into two that end in one cage of a node.
func TestBothPortsOfACage(t *testing.T) {
	t.Parallel()
	inv := computed(t, 4, `
  switch "leaf" {
    unit   = 40
    height = 2
    fabric = fabric.compute
  }
`, `
fabric "roce" "compute" {
  rails    = 8
  link     = "400Gbps"
  topology = "top-of-rack"
  switch {
    model = "SN5600"
    ports = 64
    speed = "800Gbps"
    split = 2
  }
}
`)
	runs := cable.ListRuns(inv)
	if len(runs) != 16 {
		t.Errorf("got %d cables, want 16: one for each cage of 4 nodes", len(runs))
	}
	types := map[string]int{}
	for _, r := range runs {
		types[r.Part]++
		if len(r.Cables) != 2 || r.Speed != 800e9 {
			t.Errorf("%s to %s: got %d halves, %q of %s, want one straight cable of 800Gbps", r.Cables[0].From, r.Cables[0].To, len(r.Cables), r.Part, r.Speed)
		}
	}
	if types["DAC 800Gbps"] != 4 || types["fibre multimode 800Gbps"] != 12 {
		t.Errorf("got %v, want DAC for the uppermost node and fibre for the others", types)
	}
}
