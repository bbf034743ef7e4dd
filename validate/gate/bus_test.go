// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/dmesg"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/gate/link"
	"github.com/ironrail/ironrail/validate/gate/look"
)

// chassis is a node with as many GPUs as rails, and two ports for storage that no
// GPU is near to.
func hardware(kind, vendor, model string, count int) *inventory.Hardware {
	compute := &inventory.Fabric{Block: inventory.Block{Kind: kind, Name: "compute"}}
	storage := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "storage"}}
	rails := inventory.NIC{Name: "rail", HCA: true, Speed: 400e9, Fabric: compute}
	for i := range count {
		rails.Ports = append(rails.Ports, inventory.NICPort{Rail: i, PCI: nicAt(i)})
	}
	return &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: vendor, Model: model, Count: count}},
		NICs: []inventory.NIC{rails, {Name: "storage", HCA: true, Speed: 200e9, Fabric: storage, Ports: []inventory.NICPort{{Rail: 0, PCI: "0000:f0:00.0"}, {Rail: 1, PCI: "0000:f1:00.0"}}}}}
}

func nicAt(i int) string { return fmt.Sprintf("0000:%02x:00.0", 0x18+0x10*i) }
func gpuAt(i int) string { return fmt.Sprintf("0000:%02x:00.0", 0x1b+0x10*i) }

// healthy is what such a node shows. With switches a GPU and a rail stand below
// one each, as in DGX and HGX H100 and in most MI300X; else each below a root port
// of its own, as in a GB200 tray.
func healthy(h *inventory.Hardware, switches bool) look.Seen {
	var s look.Seen
	s.Kernel, s.Fabrics = &dmesg.Log{}, []string{"compute", "storage"}
	s.Health.Kernel, s.Health.Uptime, s.Health.PeerMem = "6.8.0-90-generic", 900, true
	vendor := map[string]string{"nvidia": "10de", "amd": "1002"}[h.GPUs[0].Vendor]
	layer := map[string]string{"infiniband": "InfiniBand", "roce": "Ethernet"}[h.NICs[0].Fabric.Kind]
	full := func(at, port string, acs int) wire.PCIBridge {
		return wire.PCIBridge{Address: at, Port: port, ACS: &acs, Width: ptr(16), MaxWidth: ptr(16), Speed: ptr(32.0), MaxSpeed: ptr(32.0)}
	}
	for i := range h.GPUs[0].Count {
		root, up, left, right := fmt.Sprintf("0000:%02x:01.0", 0x14+0x10*i), fmt.Sprintf("0000:%02x:00.0", 0x15+0x10*i), fmt.Sprintf("0000:%02x:00.0", 0x16+0x10*i), fmt.Sprintf("0000:%02x:01.0", 0x16+0x10*i)
		ofGPU, ofNIC := []string{root, up, left}, []string{root, up, right}
		if !switches {
			ofGPU, ofNIC = []string{root}, []string{left}
		}
		for _, b := range []wire.PCIBridge{full(root, "root", 0x1d), full(up, "upstream", 0), full(left, "downstream", 0), full(right, "downstream", 0)} {
			if switches || b.Address == root || b.Address == left {
				s.Health.Bridges = append(s.Health.Bridges, b)
			}
		}
		numa := i * 2 / h.GPUs[0].Count
		g := pciLink(gpuAt(i), vendor)
		g.Above, g.NUMA, g.Domain = ofGPU, ptr(numa), "identity"
		n := wire.PCILink{Address: nicAt(i), Class: "020000", Vendor: "15b3", Above: ofNIC, NUMA: ptr(numa), Domain: "identity", Carriers: ptr[int64](2), Bits: ptr[int64](400e9)}
		s.Health.PCI = append(s.Health.PCI, g, n)
		s.Health.Ports = append(s.Health.Ports, wire.InfiniBandPort{Device: fmt.Sprintf("mlx5_%d", i), PCI: nicAt(i), Number: 1, Layer: layer, State: "ACTIVE", Physical: "LinkUp", Rate: "400 Gb/sec (4X NDR)", Downed: ptr[int64](1)})
	}
	for i, at := range []string{"0000:f0:00.0", "0000:f1:00.0"} {
		s.Health.PCI = append(s.Health.PCI, wire.PCILink{Address: at, Class: "020000", Vendor: "15b3", Above: []string{fmt.Sprintf("0000:e%d:01.0", i)}, NUMA: ptr(i), Bits: ptr[int64](200e9)})
		s.Health.Ports = append(s.Health.Ports, wire.InfiniBandPort{Device: fmt.Sprintf("mlx5_%d", 8+i), PCI: at, Number: 1, Layer: "Ethernet", State: "ACTIVE", Physical: "LinkUp", Rate: "100 Gb/sec (4X EDR)"})
	}
	return s
}

// TestHealthyBuses: nodes as they are built and set are good, whatever they are.
func TestHealthyBuses(t *testing.T) {
	t.Parallel()
	h100, gb200, mi300x := hardware("infiniband", "nvidia", "H100 SXM5 80GB", 8), hardware("infiniband", "nvidia", "GB200", 4), hardware("roce", "amd", "MI300X", 8)
	grace := healthy(gb200, false)
	grace.Health.IOMMUs = []string{"smmu3.0x0000000005000000"}
	grace.Health.OpenGPU, grace.Health.PeerMem = ptr(true), false
	for i := range grace.Health.PCI {
		grace.Health.PCI[i].Domain = "DMA-FQ" // as Grace is meant to be
	}
	old := healthy(mi300x, true)
	for i := range old.Health.Ports {
		old.Health.Ports[i].Rate = "100 Gb/sec (4X EDR)" // Linux 5.15 of RoCE at 400 Gb/s, by bnxt_re
	}
	one := healthy(mi300x, true)
	for i := range one.Health.PCI { // one PCIe switch for all of a socket
		one.Health.PCI[i].Above = []string{fmt.Sprintf("0000:%d0:01.0", *one.Health.PCI[i].NUMA)}
	}
	// As DGX A100 with four compute HCAs: a NIC for two GPUs.
	half := hardware("infiniband", "nvidia", "A100", 8)
	half.NICs[0].Ports = half.NICs[0].Ports[:4]
	quarter := hardware("infiniband", "nvidia", "A100", 8)
	quarter.NICs[0].Ports = quarter.NICs[0].Ports[:3]
	silent := healthy(h100, true)
	for i := range silent.Health.PCI {
		l := &silent.Health.PCI[i]
		l.Above, l.NUMA, l.Domain, l.Bits, l.Carriers = nil, nil, "", nil, nil
	}
	silent.Health.Bridges, silent.Health.Ports, silent.Kernel, silent.Health.Kernel = nil, nil, nil, ""
	flat := healthy(h100, false) // in a virtual machine all functions are of one root
	for i := range flat.Health.PCI {
		flat.Health.PCI[i].Above = nil
		flat.Health.PCI[i].NUMA = ptr(0)
	}
	for name, c := range map[string]struct {
		h    *inventory.Hardware
		s    look.Seen
		near bool
	}{
		"HGX H100": {h100, healthy(h100, true), true}, "GB200": {gb200, grace, false}, "MI300X": {mi300x, old, true}, "one switch a socket": {mi300x, one, true},
		"a NIC for two GPUs": {half, healthy(h100, true), false}, "few NICs": {quarter, healthy(h100, true), false}, "nothing said": {h100, silent, false}, "virtual": {h100, flat, false},
	} {
		faults, notes := gate.Judge(c.h, nil, c.s)
		if len(faults) > 0 || len(notes) > 0 {
			t.Errorf("%s: %+v, %q", name, faults, notes)
		}
		if got := link.HasNearRails(c.h, c.s); got != c.near {
			t.Errorf("%s: near is %v", name, got)
		}
	}
}

// narrow is what pci_enable of the kernel says of a rail whose switch has half of
// its lanes.
func narrow(i int) dmesg.Event {
	l, _, err := dmesg.Parse(fmt.Appendf(nil, "[    3.2] pci %s: 252.048 Gb/s available PCIe bandwidth, limited by 32.0 GT/s PCIe x8 link at 0000:%02x:01.0 (capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)\n", nicAt(i), 0x14+0x10*i))
	if err != nil || len(l.Events) != 1 {
		panic(fmt.Sprint(l, err))
	}
	return l.Events[0]
}

// TestBuses breaks one thing of an HGX H100: exactly that part is found.
func TestBuses(t *testing.T) {
	t.Parallel()
	h := hardware("infiniband", "nvidia", "H100 SXM5 80GB", 8)
	gpu := func(s *look.Seen, i int) *wire.PCILink { return &s.Health.PCI[2*i] }
	nic := func(s *look.Seen, i int) *wire.PCILink { return &s.Health.PCI[2*i+1] }
	bridge := func(s *look.Seen, at string) *wire.PCIBridge {
		return &s.Health.Bridges[slices.IndexFunc(s.Health.Bridges, func(b wire.PCIBridge) bool { return b.Address == at })]
	}
	const third = "rail 3 of compute (mlx5_3 at 0000:48:00.0)"
	for _, c := range []struct {
		name, part, cause string // part "": no fault
		do                func(s *look.Seen)
	}{
		{"a rail in another slot", third, "no GPU below its PCIe switch or root port, as there is for 7 of 8 rails", func(s *look.Seen) {
			nic(s, 3).Above = []string{"0000:e9:01.0"}
			s.Health.PCI = slices.DeleteFunc(s.Health.PCI, func(l wire.PCILink) bool { return l.Address == gpuAt(3) }) // judged by its own gate
			s.Health.PCI = append(s.Health.PCI, wire.PCILink{Address: gpuAt(3), Class: "030200", Vendor: "10de", Above: s.Health.PCI[0].Above})
		}},
		{"half of them are near", "", "", func(s *look.Seen) {
			for i := range 4 {
				nic(s, i).Above = []string{fmt.Sprintf("0000:e%d:01.0", i)}
			}
		}},
		{"the lanes of a switch", third, "its way to the CPU is narrow at the bridge 0000:44:01.0, and that of 7 other rails is not", func(s *look.Seen) {
			s.Kernel.Events = append(s.Kernel.Events, narrow(3), narrow(3))
			bridge(s, "0000:44:01.0").Width = ptr(8)
		}},
		{"it has all lanes again", "", "", func(s *look.Seen) { s.Kernel.Events = append(s.Kernel.Events, narrow(3)) }},
		{"its own link", "", "", func(s *look.Seen) { // pcie judges that, as it is now
			e := narrow(3)
			e.Text = strings.ReplaceAll(e.Text, "0000:44:01.0", "0000:46:01.0")
			s.Kernel.Events = append(s.Kernel.Events, e)
		}},
		{"built so", "", "", func(s *look.Seen) {
			for i := range 8 {
				s.Kernel.Events = append(s.Kernel.Events, narrow(i))
				bridge(s, fmt.Sprintf("0000:%02x:01.0", 0x14+0x10*i)).Speed = ptr(16.0)
			}
		}},
		{"ACS", "PCIe switches", "ACS of 1 port sends data between GPU and NIC up to the CPU and down again: 0000:46:00.0", func(s *look.Seen) { bridge(s, "0000:46:00.0").ACS = ptr(0x1d) }},
		{"ACS checks sources only", "", "", func(s *look.Seen) { bridge(s, "0000:46:00.0").ACS = ptr(0x01) }},
		{"ACS with Direct NIC", "", "", func(s *look.Seen) { bridge(s, "0000:46:00.0").ACS, s.Health.DirectNIC = ptr(0x1d), true }},
		{"IOMMU", "IOMMU", "it translates the addresses of 2 of 16 GPUs and rails (DMA-FQ)", func(s *look.Seen) { gpu(s, 2).Domain, nic(s, 2).Domain = "DMA-FQ", "DMA-FQ" }},
		{"port down", third, "its port is DOWN", func(s *look.Seen) { s.Health.Ports[3].State, s.Health.Ports[3].Physical = "DOWN", "Polling" }},
		{"no subnet manager", third, "its port is INIT: no subnet manager", func(s *look.Seen) { s.Health.Ports[3].State = "INIT" }},
		{"no RDMA device", "rail 3 of compute (NIC at 0000:48:00.0)", "the kernel shows no RDMA device of it", func(s *look.Seen) { s.Health.Ports = slices.Delete(s.Health.Ports, 3, 4) }},
		{"a NIC that is gone is no RDMA device", "", "", func(s *look.Seen) {
			s.Health.Ports = slices.Delete(s.Health.Ports, 3, 4)
			s.Health.PCI = slices.DeleteFunc(s.Health.PCI, func(l wire.PCILink) bool { return l.Address == "0000:48:00.0" })
		}},
		{"no RDMA device of a fabric that is not up", "", "", func(s *look.Seen) {
			s.Health.Ports, s.Fabrics = slices.Delete(s.Health.Ports, 3, 4), []string{"storage"}
		}},
		{"port down on a fabric that is not up", "", "", func(s *look.Seen) { s.Health.Ports[3].State, s.Fabrics = "DOWN", []string{"storage"} }},
		{"rate", third, "its link runs at 100 Gb/s, and the inventory says 400 Gb/s", func(s *look.Seen) { s.Health.Ports[3].Rate = "100 Gb/sec (1X NDR)" }},
		{"speed of Ethernet", "rail 1 of storage (mlx5_9 at 0000:f1:00.0)", "its link runs at 100 Gb/s, and the inventory says 200 Gb/s", func(s *look.Seen) { s.Health.PCI[17].Bits = ptr[int64](100e9) }},
		{"layer", third, "its port is Ethernet, and the inventory says InfiniBand", func(s *look.Seen) { s.Health.Ports[3].Layer = "Ethernet" }},
		{"flaps", third, "its link went down 40 times, and a bring-up explains 10", func(s *look.Seen) { s.Health.Ports[3].Downed = ptr[int64](40) }},
		{"carrier", third, "its link went down 30 times", func(s *look.Seen) { nic(s, 3).Carriers = ptr[int64](61) }},
		{"a few flaps in months", "", "", func(s *look.Seen) { nic(s, 3).Carriers, s.Health.Uptime = ptr[int64](61), 90*86400 }},
		{"closed driver", "GPUDirect RDMA", "nvidia_peermem is not loaded, and the driver that runs is not the open one", func(s *look.Seen) { s.Health.PeerMem, s.Health.OpenGPU = false, ptr(false) }},
		{"closed driver with peermem", "", "", func(s *look.Seen) { s.Health.OpenGPU = ptr(false) }},
		{"old kernel", "GPUDirect RDMA", "Linux 5.10.0-30-amd64 is before 5.12", func(s *look.Seen) {
			s.Health.PeerMem, s.Health.OpenGPU, s.Health.Kernel = false, ptr(true), "5.10.0-30-amd64"
		}},
		{"dma-buf", "", "", func(s *look.Seen) { s.Health.PeerMem, s.Health.OpenGPU = false, ptr(true) }},
		{"disk warns", "NVMe disk nvme0 at 0000:02:00.0, serial S1", "its spare blocks are below the threshold; NVMe", func(s *look.Seen) { s.Health.Disks = disk(wire.SMART{Critical: 1}) }},
		{"media errors of a new disk", "NVMe disk nvme0 at 0000:02:00.0, serial S1", "it is new and has met 3 media errors", func(s *look.Seen) { s.Health.Disks = disk(wire.SMART{MediaErrors: 3, Used: 1}) }},
		{"media errors of an old disk", "", "", func(s *look.Seen) { s.Health.Disks = disk(wire.SMART{MediaErrors: 3, Used: 12}) }},
		{"worn out", "NVMe disk nvme0 at 0000:02:00.0, serial S1", "102 % of its life are used", func(s *look.Seen) { s.Health.Disks = disk(wire.SMART{Used: 102}) }},
		{"clock", "clock", "the clock is off by 0.250 s", func(s *look.Seen) { s.Time = &look.Time{Program: look.Chronyd, Offset: -0.25, Synced: true} }},
		{"clock follows nobody", "", "", func(s *look.Seen) { s.Time = &look.Time{Program: look.Chronyd} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := healthy(h, true)
			c.do(&s)
			found(t, h, s, c.part, strings.TrimSuffix(c.cause, "; NVMe"))
		})
	}
}

func disk(s wire.SMART) []wire.NVMe {
	return []wire.NVMe{{Name: "nvme0", PCI: "0000:02:00.0", Serial: "S1", SMART: &s}}
}

// TestNUMA: where there are no PCIe switches a rail whose NUMA node has no GPU
// stands out.
func TestNUMA(t *testing.T) {
	t.Parallel()
	h := hardware("infiniband", "nvidia", "GB200", 4)
	s := healthy(h, false)
	s.Health.PCI[1].NUMA = ptr(2)
	found(t, h, s, "rail 0 of compute (mlx5_0 at 0000:18:00.0)", "there is no GPU on its NUMA node, as there is for 3 of 4 rails")
}

// TestAllowed: what the site allows is a note, with its reason.
func TestAllowed(t *testing.T) {
	t.Parallel()
	h := hardware("infiniband", "nvidia", "H100 SXM5 80GB", 8)
	s := healthy(h, true)
	s.Health.PCI[0].Domain, s.Health.Ports[3].State = "DMA", "DOWN"
	faults, notes := gate.Judge(h, map[string]string{gate.IOMMU: "tenants' VMs"}, s)
	if len(faults) != 1 || !strings.HasPrefix(faults[0].Part, "rail 3") || len(notes) != 1 || !strings.HasSuffix(notes[0], `(gate "iommu", allowed by the site: tenants' VMs)`) {
		t.Errorf("%+v, %q", faults, notes)
	}
}

// TestNotesOfBuses: worth knowing, and no fault.
func TestNotesOfBuses(t *testing.T) {
	t.Parallel()
	h := hardware("infiniband", "nvidia", "B300", 8)
	s := healthy(h, true)
	s.Health.Bridges[2].ACS = ptr(0x0c)
	s.Health.Disks = append(disk(wire.SMART{Used: 7}), wire.NVMe{Name: "nvme1", Why: "permission denied"})
	s.Time = &look.Time{Program: look.Chronyd, Offset: 0.004, Synced: true}
	faults, notes := gate.Judge(h, nil, s)
	if want := []string{"ACS is on at 1 port", "NVMe disk nvme0 at 0000:02:00.0, serial S1 is not new", "NVMe disk nvme1: its health was not read: permission denied", "the clock is off by 4.0 ms"}; len(faults) > 0 || len(notes) != len(want) {
		t.Errorf("%+v, %q", faults, notes)
	} else {
		for i := range want {
			if !strings.HasPrefix(notes[i], want[i]) {
				t.Errorf("note %q, want %q", notes[i], want[i])
			}
		}
	}
}
