// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/inspect"
	"github.com/ironrail/ironrail/provision/agent/smbios"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/rehearse/virtual/metal/metaltest"
)

var bootMAC = addr.MAC{0x52, 0x54, 0, 0x77, 0, 0x11}

// hgx is a block of a large node.
func hgx() *inventory.Hardware {
	fabric := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}}
	h := &inventory.Hardware{
		Name: "hgx", Vendor: "Supermicro", Product: "SYS-821GE-TNHR", Boot: inventory.BootUEFI,
		CPU: inventory.CPU{Model: "Xeon 8480C", Sockets: 2, Cores: 112}, Memory: inventory.Memory{Size: 2 << 40, DIMMs: 32},
		GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100 SXM5 80GB", Count: 8, Interconnect: "nvswitch"}},
		Disks: []inventory.Disk{
			{Name: "os", Type: "nvme", Count: 2, Size: unit.Limit[unit.Bytes]{Op: unit.AtLeast, Value: 900e9}},
			{Name: "data", Type: "nvme", Model: "KCM7", Count: 8, Size: unit.Limit[unit.Bytes]{Op: unit.Exactly, Value: 7681501126656}},
		},
		NICs: []inventory.NIC{
			{Name: "mgmt", Speed: 25e9, Boot: true, Ports: []inventory.NICPort{{Rail: -1, PCI: "0000:29:00.0"}}},
			{Name: "rail", HCA: true, Model: "ConnectX-7", Speed: 400e9, LinkType: "ethernet", Fabric: fabric},
		},
	}
	for i, bus := range []int{0x9a, 0x18, 0x40, 0x4f, 0x5e, 0xaa, 0xba, 0xca} {
		h.NICs[1].Ports = append(h.NICs[1].Ports, inventory.NICPort{Rail: i, PCI: fmt.Sprintf("0000:%02x:00.0", bus)})
	}
	return h
}

func hgxNode() *inventory.Node {
	return &inventory.Node{Name: "n1", Hardware: hgx(), BootMAC: bootMAC, Serial: "S1", UUID: "6c616230-0000-4000-8000-000000000001"}
}

// inspected is what the real inspection sees of a node that runs the ramdisk.
func inspected(n *Node) wire.Hardware {
	k := n.Boot(ramdiskRelease, "", nil)
	return inspect.Inspector{FS: sysfs.Of(k.FS()), RDMA: k.Device, Open: k.Opener(context.Background()), BootMAC: bootMAC}.Hardware()
}

func TestInspectionAgreesWithTheBlock(t *testing.T) {
	t.Parallel()
	n := BuildNode(hgxNode(), Options{})
	hw := inspected(n)
	want := wire.Identity{Vendor: "Supermicro", Product: "SYS-821GE-TNHR", Serial: "S1", UUID: "6c616230-0000-4000-8000-000000000001", BootMAC: bootMAC}
	if hw.Identity != want || n.Identity() != want {
		t.Errorf("got identity %+v, %+v, want %+v", hw.Identity, n.Identity(), want)
	}
	smt := hw.CPU.SMT
	hw.CPU.SMT = nil
	if (hw.CPU != wire.CPU{Model: "Xeon 8480C", Sockets: 2, Cores: 112, Threads: 224, NUMA: 2}) || smt == nil || !*smt || hw.Firmware != "uefi" {
		t.Errorf("got CPU %+v, firmware %s", hw.CPU, hw.Firmware)
	}
	if hw.Memory.Installed != 2<<40 || hw.Memory.DIMMs != 32 || float64(hw.Memory.Usable) < 0.9*(2<<40) || hw.Memory.Usable >= 2<<40 {
		t.Errorf("got memory %+v", hw.Memory)
	}
	gpus := 0
	for _, f := range hw.PCI {
		if f.Vendor == "10de" && f.Device == "2330" && f.Class == "030200" {
			gpus++
		}
	}
	if gpus != 8 || len(hw.Disks) != 10 || hw.Disks[0].Size < 900e9 || hw.Disks[9].Size != 7681501126656 || hw.Disks[9].Model != "KCM7" {
		t.Errorf("got %d GPUs, disks %+v", gpus, hw.Disks)
	}
	serials := map[string]bool{}
	for _, d := range hw.Disks {
		serials[d.Serial] = true
		if d.Type != "nvme" || d.Content != "" || d.PCI == "" || d.WWN == "" || d.Serial == "" {
			t.Errorf("got disk %+v", d)
		}
	}
	if len(serials) != 10 {
		t.Errorf("serials of disks repeat: %v", serials)
	}
	if len(hw.NICs) != 9 || len(hw.RDMA) != 8 {
		t.Fatalf("got %d NICs, %d RDMA devices", len(hw.NICs), len(hw.RDMA))
	}
	at := map[string]wire.NIC{}
	for _, nic := range hw.NICs {
		at[nic.PCI] = nic
	}
	for _, b := range n.shape.hardware.NICs {
		for _, p := range b.Ports {
			if at[p.PCI].Name == "" || at[p.PCI].MAC.IsZero() {
				t.Errorf("no NIC at %s", p.PCI)
			}
		}
	}
	if at["0000:29:00.0"].MAC != bootMAC || at["0000:18:00.0"].Driver != "mlx5_core" {
		t.Errorf("got NICs %+v", hw.NICs)
	}
	// In the order of the bus, not of the file.
	if hw.RDMA[0].Name != "mlx5_0" || at["0000:18:00.0"].Name != hw.RDMA[0].Netdev || hw.RDMA[0].GUID == "" {
		t.Errorf("got RDMA %+v", hw.RDMA)
	}
}

// The next node with the same block differs in what is its own, and only there.
func TestNodesDiffer(t *testing.T) {
	t.Parallel()
	shared := NewShared()
	one := hgxNode()
	one.Serial, one.UUID, one.BootMAC = "", "", addr.MAC{}
	two := *one
	two.Name = "n2"
	a, b, again := inspected(BuildNode(one, Options{Shared: shared})), inspected(BuildNode(&two, Options{Shared: shared})), inspected(BuildNode(one, Options{}))
	if a.Identity.Serial == b.Identity.Serial || a.Identity.UUID == b.Identity.UUID || a.NICs[0].MAC == b.NICs[0].MAC || a.RDMA[0].GUID == b.RDMA[0].GUID || a.Disks[0].Serial == b.Disks[0].Serial {
		t.Errorf("nodes are alike: %+v", a)
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(again)
	if !bytes.Equal(x, y) {
		t.Errorf("the same node twice: %s\n%s", x, y)
	}
}

func TestFileSystem(t *testing.T) {
	t.Parallel()
	h := hgx()
	h.GPUs, h.Disks, h.CPU.Cores, h.NICs = nil, h.Disks[:1], 2, h.NICs[:1]
	n := BuildNode(&inventory.Node{Name: "n1", Hardware: h}, Options{})
	k := n.Boot("6.1", "quiet", newRoot(n.options.Shared.image))
	for _, p := range n.Ports() {
		if err := k.Up(p.Netdev); err != nil { // else some attributes fail on read, as they should
			t.Fatal(err)
		}
	}
	if err := fstest.TestFS(k.Root().FS(), "etc/machine-id", "usr/lib/systemd/system/ssh.service", "lib"); err != nil {
		t.Error(err)
	}
	fs := sysfs.Of(k.FS())
	if got := fs.Real("sys/class/net/eth0/device"); got != "/sys/devices/pci0000:29/0000:29:00.0" {
		t.Errorf("got %q", got)
	}
	if fs.Text("etc/machine-id") == "" || fs.Text("lib/systemd/system/ssh.service") == "" || fs.Text("proc/cmdline") != "quiet" || !fs.Exists("usr/share/zoneinfo/Europe/Kyiv") || fs.Exists("usr/share/zoneinfo/Mars/Olympus") {
		t.Error("the root file system is not seen, or what should not be")
	}
	if fs.Exists("sys/class/net/eth9") || fs.Text("sys/class/net/eth0/speed") != "25000" {
		t.Error("eth9 or speed")
	}
}

// Every knob is seen by the inspection, and nothing else changes.
func TestKnobs(t *testing.T) {
	t.Parallel()
	whole, _ := json.Marshal(inspected(BuildNode(hgxNode(), Options{})))
	for _, c := range []struct {
		name string
		turn func(n *Node) bool
		seen func(hw wire.Hardware) bool
	}{
		{"DIMM", func(n *Node) bool { return n.RemoveDIMM(7) && !n.RemoveDIMM(7) && !n.RemoveDIMM(32) }, func(hw wire.Hardware) bool {
			return hw.Memory.DIMMs == 31 && hw.Memory.Installed == 31<<36 && hw.Memory.Usable < 31<<36
		}},
		{"GPU", func(n *Node) bool {
			gpu := n.Functions("10de", "0302")
			return len(gpu) == 8 && n.RemovePCI(gpu[3]) && !n.RemovePCI(gpu[3]) && len(n.Functions("10de", "0302")) == 7
		}, func(hw wire.Hardware) bool { return strings.Count(fmt.Sprint(hw.PCI), "10de 2330") == 7 }},
		{"HCA", func(n *Node) bool { return n.RemovePCI("0000:4f:00.0") }, func(hw wire.Hardware) bool {
			return len(hw.NICs) == 8 && len(hw.RDMA) == 7 && !slices.ContainsFunc(hw.NICs, func(n wire.NIC) bool { return n.PCI == "0000:4f:00.0" })
		}},
		{"disk", func(n *Node) bool { return n.RemovePCI(n.shape.functions[n.shape.disks[0].function].address) }, func(hw wire.Hardware) bool {
			return len(hw.Disks) == 9 && hw.Disks[0].Name == "nvme1n1"
		}},
		{"serial", func(n *Node) bool { n.SetSerial("OTHER"); return true }, func(hw wire.Hardware) bool { return hw.Identity.Serial == "OTHER" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			n := BuildNode(hgxNode(), Options{})
			if !c.turn(n) {
				t.Error("the knob does not turn as it should")
			}
			hw := inspected(n)
			if now, _ := json.Marshal(hw); !c.seen(hw) || bytes.Equal(now, whole) {
				t.Errorf("got %s", now)
			}
			for s := range smbios.All(n.dmi()) {
				if s.Type == typeSystem && smbios.Text(s, 7) != hw.Identity.Serial {
					t.Errorf("DMI has serial %q", smbios.Text(s, 7))
				}
			}
		})
	}
}

// A port that speaks InfiniBand, one whose lanes do not all carry, one that is down.
func TestLinks(t *testing.T) {
	t.Parallel()
	h := hgx()
	h.NICs[1].LinkType = ""
	h.NICs[1].Fabric.Kind = "infiniband"
	n := BuildNode(&inventory.Node{Name: "n1", Hardware: h}, Options{})
	n.SetLink("0000:40:00.0", Link{Lanes: 2, Counters: map[string]int64{"symbol_error": 7}})
	n.SetLink("0000:4f:00.0", Link{Down: true})
	f := sysfs.Of(n.Boot("6.1", "", nil).FS())
	port := func(device, name string) string { return f.Text("sys/class/infiniband", device, "ports/1", name) }
	for _, c := range []struct{ device, state, rate, errors string }{
		{"mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)", "0"}, {"mlx5_1", "4: ACTIVE", "200 Gb/sec (2X NDR)", "7"}, {"mlx5_2", "1: DOWN", "400 Gb/sec (4X NDR)", "0"},
	} {
		if port(c.device, "state") != c.state || port(c.device, "rate") != c.rate || port(c.device, "counters/symbol_error") != c.errors || port(c.device, "link_layer") != "InfiniBand" {
			t.Errorf("%s: got %q, %q, %q, %q", c.device, port(c.device, "state"), port(c.device, "rate"), port(c.device, "counters/symbol_error"), port(c.device, "link_layer"))
		}
	}
	if g := port("mlx5_0", "gids/0"); !strings.HasPrefix(g, "fe80:0000:0000:0000:") {
		t.Errorf("got GID %s", g)
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	b := metaltest.MakeImage(8<<20, 7)
	table, err := gpt.Read(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if got := disk.Probe(bytes.NewReader(b), int64(len(b))); got != "GPT; p1 BIOS boot; p2 ESP vfat label ESP; p3 ext4 label ironrail-root" || table.Backup {
		t.Errorf("got %q", got)
	}
	primary := bytes.Clone(b)
	clear(primary[512:1024])
	if backup, err := gpt.Read(bytes.NewReader(primary), int64(len(b))); err != nil || !backup.Backup {
		t.Errorf("backup: %v", err)
	}
	if !disk.AllZero(b[disk.MarkerOffset:disk.MarkerOffset+disk.MarkerSize]) || bytes.Equal(b, metaltest.MakeImage(8<<20, 8)) || !bytes.Equal(b, metaltest.MakeImage(8<<20, 7)) {
		t.Error("the marker's place is taken, or the content does not follow the seed")
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	n := BuildNode(hgxNode(), Options{})
	if _, ok := n.Hangs(); ok {
		t.Error("a new node hangs")
	}
	n.Hang(time.Second)
	if d, ok := n.Hangs(); !ok || d != time.Second {
		t.Errorf("got %v, %v", d, ok)
	}
	n.Hang(-1)
	if _, ok := n.Hangs(); ok {
		t.Error("still hangs")
	}
}

// TestDelivered: what is delivered in the place of something else is seen where the kernel
// and the firmware show it, and goes with the chassis.
func TestDelivered(t *testing.T) {
	t.Parallel()
	n := BuildNode(hgxNode(), Options{})
	whole := health.Read(sysfs.Of(n.Boot("6.1", "", nil).FS()))
	gpu := n.GPUs()[2]
	n.SetCPUModel("Other")
	n.DisableSMT()
	n.SplitNUMA(4)
	if !n.ReplaceDIMM(3, 32<<30, 4400) || !n.ReplacePCI(gpu, "H200") || !n.SlowPCI(gpu) || !n.SetDiskModel(0, "DISK") || n.ReplacePCI("0000:ff:00.0", "H200") || n.ReplaceDIMM(99, 0, 1) {
		t.Fatal("not what is there")
	}
	h := health.Read(sysfs.Of(n.Boot("6.1", "", nil).FS()))
	if h.CPU.Model != "Other" || h.CPU.Threads != 112 || *h.CPU.SMT || h.CPU.NUMA != 8 || h.CPU.Sockets != 2 || h.CPU.Cores != 112 {
		t.Errorf("CPU %+v", h.CPU)
	}
	if d := h.DIMMs[3]; d.Size != 32<<30 || d.Speed != 4400 || h.DIMMs[2] != whole.DIMMs[2] || whole.DIMMs[3].Speed != 4800 {
		t.Errorf("DIMMs %+v", h.DIMMs)
	}
	if h.Drives[0].Model != "DISK" || whole.Drives[0].Model == "DISK" {
		t.Errorf("drives %+v", h.Drives)
	}
	for i, l := range h.PCI {
		if other := l.Address == gpu; other != (l.Device != whole.PCI[i].Device) || other != (*l.Speed != *whole.PCI[i].Speed) {
			t.Errorf("%s: %+v, was %+v", gpu, l, whole.PCI[i])
		}
	}
	n.Replace("new")
	if h := health.Read(sysfs.Of(n.Boot("6.1", "", nil).FS())); h.CPU.Model != whole.CPU.Model || h.DIMMs[3].Size != whole.DIMMs[3].Size {
		t.Errorf("a new chassis has %+v", h.CPU)
	}
}
