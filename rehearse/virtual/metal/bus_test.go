// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// TestBus: each GPU stands beside a rail below a PCIe switch, on a NUMA node of its
// own half; the ports of the switches say what ACS does; disks say what they have
// gone through. The agent's own code reads it.
func TestBus(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{CPU: inventory.CPU{Sockets: 2, Cores: 8}, GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 8}}, Disks: []inventory.Disk{{Name: "os", Type: "nvme", Count: 2}}}
	rails := inventory.NIC{Name: "rail", Model: "ConnectX-7", Fabric: &inventory.Fabric{Block: inventory.Block{Kind: "infiniband", Name: "compute"}}}
	for i := range 8 {
		rails.Ports = append(rails.Ports, inventory.NICPort{Rail: i, PCI: fmt.Sprintf("0000:%02x:00.0", 0x18+8*i)})
	}
	h.NICs = []inventory.NIC{rails}
	n := BuildNode(&inventory.Node{Name: "n1", Hardware: h}, Options{})
	k := n.Boot("6.1", "", nil)
	fs := sysfs.Of(k.FS())
	look := func() wire.Health { return health.Read(fs) }
	seen := look()
	links := map[string]wire.PCILink{}
	for _, l := range seen.PCI {
		links[l.Address] = l
	}
	gpus := n.GPUs()
	for i, p := range rails.Ports {
		g, r := links[gpus[i]], links[p.PCI]
		if len(g.Above) != 3 || len(r.Above) != 3 || g.Above[1] != r.Above[1] || g.Above[2] == r.Above[2] || g.NUMA == nil || *g.NUMA != i/4 || *r.NUMA != i/4 {
			t.Errorf("GPU %+v, rail %+v", g, r)
		}
	}
	acs := func(s wire.Health) (on int) {
		for _, b := range s.Bridges {
			if b.Port == "downstream" && b.ACS != nil && *b.ACS&wire.ACSRequestRedirect != 0 {
				on++
			}
		}
		return on
	}
	roots := slices.DeleteFunc(slices.Clone(seen.Bridges), func(b wire.PCIBridge) bool { return b.Port != "root" })
	if len(seen.Bridges) != 24 || len(roots) != 4 || acs(seen) != 0 {
		t.Errorf("%+v", seen.Bridges)
	}
	n.RedirectPCI(true)
	if got := acs(look()); got != 16 {
		t.Errorf("ACS is on at %d ports", got)
	}
	if !n.WearDisk("nvme1n1", Wear{Critical: 4, Used: 3, MediaErrors: 9}) || n.WearDisk("nvme7n1", Wear{}) {
		t.Error("WearDisk")
	}
	disks := health.Disks(fs, k.SMART)
	if len(disks) != 2 || disks[0].SMART == nil || disks[0].SMART.Spare != 100 || disks[1].SMART == nil || *disks[1].SMART != (wire.SMART{Critical: 4, Spare: 100, SpareLeast: 10, Used: 3, MediaErrors: 9, Hours: 2}) || disks[1].PCI == "" || disks[1].Serial == "" {
		t.Errorf("%+v", disks)
	}
	if _, err := k.SMART("/dev/nvme2"); err == nil {
		t.Error("a disk that is not there answers")
	}
}

// TestMissingPartsAlone: a GPU that is off the bus takes nothing along, not even the first
// below a switch.
func TestMissingPartsAlone(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{CPU: inventory.CPU{Sockets: 2, Cores: 8}, GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 8}}}
	rails := inventory.NIC{Name: "rail", Model: "ConnectX-7", Fabric: &inventory.Fabric{Block: inventory.Block{Kind: "infiniband", Name: "compute"}}}
	for i := range 8 {
		rails.Ports = append(rails.Ports, inventory.NICPort{Rail: i, PCI: fmt.Sprintf("0000:%02x:00.0", 0x18+8*i)})
	}
	h.NICs = []inventory.NIC{rails}
	n := BuildNode(&inventory.Node{Name: "n1", Hardware: h}, Options{})
	fs := sysfs.Of(n.Boot("6.1", "", nil).FS())
	count := func() (parts int) {
		for _, l := range health.Read(fs).PCI {
			if slices.Contains(n.GPUs(), l.Address) || slices.ContainsFunc(rails.Ports, func(p inventory.NICPort) bool { return p.PCI == l.Address }) {
				parts++
			}
		}
		return parts
	}
	if got := count(); got != 16 {
		t.Fatalf("%d GPUs and rails", got)
	}
	for i, gone := range []int{6, 2, 3} {
		if !n.RemovePCI(n.GPUs()[gone-min(i, 1)]) {
			t.Fatal("it is not there")
		}
		if got := count(); got != 15-i {
			t.Errorf("%d GPUs and rails without %d GPUs", got, i+1)
		}
	}
}
