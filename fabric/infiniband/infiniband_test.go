// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"fmt"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
)

// site is one unit of H100 with 31 nodes and two controllers.
const site = `
site "t" { domain = "t.example" }
controller "head1" { address = "10.20.0.2" }
controller "head2" { address = "10.20.0.3" }
network "oob" { cidr = "10.10.0.0/16" }
network "boot" { cidr = "10.20.0.0/16" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
hardware "h" {
  power { max = "10kW" }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "rail" {
    fabric = fabric.compute
    ports  = [for i in range(8) : { rail = i, pci = "0000:1${i}:00.0" }]
  }
}
role "h" {
  hardware = hardware.h
  bmc      = bmc.b
  image    = image.os
  disks    = disk_layout.os
}
fabric "infiniband" "compute" {
  rails     = 8
  link      = "400Gbps"
  topology  = "rail-optimized"
  unit_size = 32
  switch { model = "QM9700" }
  subnet_manager {
    run_on = [controller.head1, controller.head2]
    ports  = %d
  }
}
rack "r" {
  count  = %d
  name   = "r${count.index + 1}"
  number = count.index + 1
  node "n" {
    count = 4
    name  = "${rack.name}-n${count.index + 1}"
    role  = role.h
    unit  = 1 + count.index
  }
}
rack "last" {
  number = 90
  node "n" {
    count = 3
    name  = "last-n${count.index + 1}"
    role  = role.h
    unit  = 1 + count.index
  }
}
`

func load(t *testing.T, ports, racks int) (*inventory.Inventory, inventory.Diagnostics) {
	t.Helper()
	k := inventory.DefaultKinds()
	spec := k.Fabric[Name]
	spec.Design, spec.Check = Design, Check
	k.Fabric[Name] = spec
	inv, found, _ := inventory.LoadFS(fstest.MapFS{"site.hcl": {Data: fmt.Appendf(nil, site, ports, racks)}}, inventory.Options{Kinds: &k})
	return inv, found
}

// TestSubnetManager: its hosts take ports of leaves where a node's place is free,
// as in one unit of DGX H100 (31 nodes, 252 cables to 8 leaves).
func TestSubnetManager(t *testing.T) {
	t.Parallel()
	inv, found := load(t, 4, 7)
	if found.HasErrors() {
		t.Fatal(found)
	}
	c := topology.CountFabric(inv, inv.Fabrics[0])
	if c.NodeCables != 252 || c.LeafSpine != 256 || c.Leaves != 8 || c.Spines != 4 {
		t.Errorf("%+v", c)
	}
	var got []string
	for _, x := range inv.Cables {
		if x.To.Text != "" {
			got = append(got, x.From.String()+" "+x.To.String())
			if x.To.Node != nil || x.To.Switch != nil || x.From.Switch == nil {
				t.Errorf("%+v", x)
			}
		}
	}
	want := "[compute/leaf-u1-r0/32 head1/sm/0 compute/leaf-u1-r1/32 head2/sm/0 compute/leaf-u1-r2/32 head1/sm/1 compute/leaf-u1-r3/32 head2/sm/1]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v\nwant %v", got, want)
	}
}
