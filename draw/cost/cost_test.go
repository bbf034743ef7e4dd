// SPDX-License-Identifier: Apache-2.0

package cost_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/draw/cost"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
	"github.com/ironrail/ironrail/inventory/power"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Checks: []inventory.Check{cost.Check}})
}

// site has three nodes of 8 kW at most and 5 kW typically.
const site = `
site "t" {
  %s
}
network "boot" { cidr = "10.20.0.0/16" }
network "oob" { cidr = "10.10.0.0/16" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "ironrail"
  password = secret("env:BMC_PASSWORD")
}
image "debian" "os" { release = "bookworm" }
disk_layout "d" {
  on = "os"
  root { size = "100GB" }
}
hardware "gpu" {
  rack_units = 8
  power {
    typical = "5kW"
    max     = "8kW"
  }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
}
role "worker" {
  hardware = hardware.gpu
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.d
}
rack "r01" {
  number = 1
  node "n" {
    count = 3
    name  = "n${count.index + 1}"
    role  = role.worker
    unit  = 1 + 8 * count.index
  }
  switch "mgmt" {
    unit  = 40
    ports = 48
    model = "NVIDIA SN2201"
  }
}
`

func load(t *testing.T, prices string) *inventory.Inventory {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), fmt.Appendf(nil, site, prices), 0o644); err != nil {
		t.Fatal(err)
	}
	inv, diags, _ := inventory.Load(dir, inventory.Options{})
	if inv == nil {
		t.Fatal(diags)
	}
	return inv
}

// TestNew: three nodes of 5 kW typically, at a PUE of 1.5 and 0.20 a kWh.
func TestNew(t *testing.T) {
	t.Parallel()
	inv := load(t, `prices {
    currency = "EUR"
    kwh      = 0.20
    pue      = 1.5
    part "gpu" { each = 250000 }
    part "NVIDIA" { each = 1 }
  }`)
	c := cost.New(inv, power.New(inv))
	if got, want := fmt.Sprintf("%s %v %v %.0f %.0f %.0f %.0f", c.Currency, c.Lines, c.Left, c.Total, c.Energy, c.Building, c.Year), "EUR [{gpu 3 250000 }] [{NVIDIA SN2201 1 0 }] 750000 131400 197100 39420"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if c := cost.New(load(t, ""), power.New(inv)); c != nil {
		t.Errorf("a site without prices costs %+v", c)
	}
}
