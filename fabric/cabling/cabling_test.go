// SPDX-License-Identifier: Apache-2.0

package cabling

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

func TestPanel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		os, model, name string
		want            int // 0: not understood
	}{
		{"sonic", "SN5600", "etp17", 17}, {"sonic", "SN5600", "etp17b", 17}, {"sonic", "SN5600", "Ethernet128", 17}, {"sonic", "SN3700", "Ethernet64", 17},
		{"sonic", "", "Ethernet64", 0}, {"sonic", "", "Eth17(Port17)", 17}, {"sonic", "", "Eth17/1(Port17)", 17}, {"sonic", "", "hundredGigE1/17", 17}, {"sonic", "", "Ethernet1/17", 17},
		{"cumulus", "", "swp17", 17}, {"cumulus", "", "swp17s1", 17}, {"cumulus", "", "eth0", 0},
		{"mlnx-os", "", "Eth1/17", 17}, {"onyx", "", "Eth1/17/2", 17}, {"mlnx-os", "", "1/17", 17}, {"nx-os", "", "Ethernet1/17", 17},
		{"eos", "", "Ethernet17/1", 17}, {"eos", "", "Et17", 17}, {"EOS", "", "Ethernet17", 17},
		{"", "", "swp3", 3}, {"", "", "Eth1/3", 0}, {"", "", "Ethernet64", 0}, {"junos", "", "et-0/0/16", 0}, {"sonic", "", "", 0}, {"sonic", "", "etp0", 0}, {"sonic", "", "etp99999999999999999999", 0},
	} {
		if got, ok := PanelNumber(c.os, c.model, c.name); got != c.want && ok || ok != (c.want > 0) {
			t.Errorf("%s %s %q: %d, %v; want %d", c.os, c.model, c.name, got, ok, c.want)
		}
	}
}

// room is a site of nodes n1..nN with two rails, on leaf-1 and leaf-2: node i is
// in port i.
func room(nodes int) *inventory.Inventory {
	fab := &inventory.Fabric{Block: inventory.Block{Name: "compute"}, Rails: 2, Topology: "explicit"}
	hw := &inventory.Hardware{Name: "h", NICs: []inventory.NIC{{Name: "rail", HCA: true, Fabric: fab, Ports: []inventory.NICPort{
		{Rail: 0, PCI: "0000:18:00.0", Panel: "OSFP 1/1"}, {Rail: 1, PCI: "0000:2a:00.0", Panel: "OSFP 1/2"}}}}}
	rack := &inventory.Rack{Name: "net"}
	for i := range 2 {
		label := fmt.Sprintf("leaf-%d", i+1)
		rack.Switches = append(rack.Switches, &inventory.Switch{Name: "net/" + label, Label: label, OS: "sonic", Model: "SN5600", Ports: 64, Rack: rack})
	}
	inv := &inventory.Inventory{Racks: []*inventory.Rack{rack}, Fabrics: []*inventory.Fabric{fab}}
	for i := range nodes {
		n := &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Hardware: hw}
		inv.Nodes = append(inv.Nodes, n)
		for rail := range 2 {
			nic := &hw.NICs[0]
			inv.Cables = append(inv.Cables, &inventory.Cable{
				From: inventory.CableEnd{Node: n, NIC: nic, Port: rail}, To: inventory.CableEnd{Switch: rack.Switches[rail], Port: i + 1},
				Decl: hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: 100 + i}},
			})
		}
	}
	return inv
}

// hear is what the nodes hear when all is as intended.
func hear(inv *inventory.Inventory) map[string][]wire.Neighbour {
	heard := map[string][]wire.Neighbour{}
	for i, n := range inv.Nodes {
		for rail, p := range n.Hardware.NICs[0].Ports {
			heard[n.Name] = append(heard[n.Name], wire.Neighbour{NIC: fmt.Sprint("eth", rail), PCI: p.PCI, ChassisID: fmt.Sprintf("0c:42:a1:00:00:%02x", rail),
				PortID: fmt.Sprintf("etp%d", i+1), SystemName: fmt.Sprintf("leaf-%d", rail+1)})
		}
	}
	return heard
}

// swap exchanges what two ports hear.
func swap(heard map[string][]wire.Neighbour, a string, i int, b string, j int) {
	x, y := &heard[a][i], &heard[b][j]
	x.PortID, y.PortID = y.PortID, x.PortID
	x.SystemName, y.SystemName = y.SystemName, x.SystemName
	x.ChassisID, y.ChassisID = y.ChassisID, x.ChassisID
}

// states counts results by state.
func states(r Report) map[State]int {
	n := map[State]int{}
	for _, x := range r.Results {
		n[x.State]++
	}
	return n
}

// suspects lists the links of a finding.
func suspects(r Report) (all []string) {
	for _, f := range r.Findings {
		var s []string
		for _, x := range f.Suspects {
			s = append(s, x.Subject.String())
		}
		all = append(all, strings.Join(s, "+"))
	}
	slices.Sort(all)
	return all
}

func TestCompare(t *testing.T) {
	t.Parallel()
	type world = map[string][]wire.Neighbour
	for _, c := range []struct {
		name   string
		change func(world)
		wrong  int
		unk    int
		want   []string
	}{
		{"as intended", func(world) {}, 0, 0, nil},
		{"two swapped on one leaf", func(w world) { swap(w, "n2", 0, "n3", 0) }, 2, 0, []string{"link/n2/rail/0+link/n3/rail/0"}},
		{"two swapped over leaves", func(w world) { swap(w, "n2", 0, "n3", 1) }, 2, 0, []string{"link/n2/rail/0+link/n3/rail/1"}},
		{"two pairs", func(w world) { swap(w, "n1", 0, "n2", 0); swap(w, "n3", 1, "n4", 1) }, 4, 0,
			[]string{"link/n1/rail/0+link/n2/rail/0", "link/n3/rail/1+link/n4/rail/1"}},
		{"a ring of three", func(w world) { swap(w, "n1", 0, "n2", 0); swap(w, "n2", 0, "n3", 0) }, 3, 0, []string{"link/n1/rail/0+link/n2/rail/0+link/n3/rail/0"}},
		{"in a free port", func(w world) { w["n1"][0].PortID = "etp60" }, 1, 0, []string{"link/n1/rail/0"}},
		{"in the port of one that is silent", func(w world) { w["n1"][0].PortID = "etp2"; w["n2"] = w["n2"][1:] }, 1, 1, []string{"link/n1/rail/0+link/n2/rail/0"}},
		{"nothing heard", func(w world) { clear(w) }, 0, 10, nil},
		{"one node is silent", func(w world) { delete(w, "n4") }, 0, 2, nil},
		{"a switch that nobody knows", func(w world) { w["n1"][0].SystemName, w["n1"][0].ChassisID = "core", "ff" }, 0, 1, nil},
		{"all switches are called sonic", func(w world) {
			for n := range w {
				for i := range w[n] {
					w[n][i].SystemName = "sonic"
				}
			}
			swap(w, "n2", 0, "n5", 0)
		}, 2, 0, []string{"link/n2/rail/0+link/n5/rail/0"}},
		{"a domain, and the scoped name", func(w world) {
			w["n1"][0].SystemName, w["n1"][1].SystemName = "Leaf-1.dc.example", "net-leaf-2"
		}, 0, 0, nil},
		{"a port name that says nothing", func(w world) { w["n1"][0].PortID = "mgmt7" }, 0, 1, nil},
		{"two switches have each other's name", func(w world) {
			for n := range w {
				swap(w, n, 0, n, 1)
			}
		}, 10, 0, []string{"switch/net/leaf-1", "switch/net/leaf-2"}},
	} {
		inv := room(5)
		heard := hear(inv)
		c.change(heard)
		r := CompareCables(inv, heard)
		if n := states(r); n[Wrong] != c.wrong || n[Unknown] != c.unk || n[Conforms] != 10-c.wrong-c.unk {
			t.Errorf("%s: %v", c.name, n)
		}
		if got := suspects(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		for _, x := range r.Results {
			if (x.State == Unknown) != (x.Why != "") {
				t.Errorf("%s: %+v", c.name, x)
			}
		}
	}
}

func TestSwapReadsWell(t *testing.T) {
	t.Parallel()
	inv := room(4)
	heard := hear(inv)
	swap(heard, "n1", 0, "n2", 0)
	f := CompareCables(inv, heard).Findings[0]
	cause := "two cables are exchanged: n1/rail/0 (OSFP 1/1) is in net/leaf-1/2 instead of net/leaf-1/1, and n2/rail/0 (OSFP 1/1) is in net/leaf-1/1 instead of net/leaf-1/2"
	action := "Exchange the plugs at net/leaf-1/1 (rack net, unit 0) and net/leaf-1/2 (rack net, unit 0), or correct the cable block at site.hcl:100 and site.hcl:101; then `ironrail apply`, which tests the nodes again."
	if f.Cause != cause || f.Action != action || len(f.Evidence) != 2 || f.Suspects[0].Part != "OSFP 1/1" {
		t.Errorf("%q\n%q\n%q", f.Cause, f.Action, f.Evidence)
	}
}

// TestRails: without cable blocks, a rail is where the other nodes have it.
func TestRails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes int
		want  []string
	}{{"five nodes", 5, []string{"link/n2/rail/0+link/n2/rail/1"}}, {"two nodes prove nothing", 2, nil}} {
		inv := room(c.nodes)
		inv.Cables = nil
		heard := hear(inv)
		swap(heard, "n2", 0, "n2", 1)
		r := CompareCables(inv, heard)
		if got := suspects(r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	inv := room(5)
	inv.Cables = nil
	heard := hear(inv)
	heard["n4"][1].SystemName = "leaf-1"
	r := CompareCables(inv, heard)
	if len(r.Findings) != 1 || r.Findings[0].Action != "Plug n4/rail/1 into net/leaf-2"+again+"." {
		t.Errorf("%+v", r.Findings)
	}
}

func TestInfiniBandAndUnknownPCI(t *testing.T) {
	t.Parallel()
	inv := room(1)
	nic := &inv.Nodes[0].Hardware.NICs[0]
	nic.Ports[0].PCI = ""
	if r := CompareCables(inv, hear(inv)).Results[0]; r.State != Unknown || !strings.Contains(r.Why, "PCI") {
		t.Errorf("%+v", r)
	}
	nic.Fabric.Kind = "infiniband"
	if r := CompareCables(inv, hear(inv)).Results[1]; r.State != Unknown || !strings.Contains(r.Why, "InfiniBand") {
		t.Errorf("%+v", r)
	}
}

func BenchmarkCompare(b *testing.B) {
	inv := room(1024)
	heard := hear(inv)
	swap(heard, "n1", 0, "n2", 0)
	for b.Loop() {
		if len(CompareCables(inv, heard).Findings) != 1 {
			b.Fatal("no finding")
		}
	}
}

func FuzzPanel(f *testing.F) {
	f.Add("sonic", "SN5600", "Ethernet128")
	f.Add("", "", "swp17s1")
	f.Fuzz(func(t *testing.T, os, model, name string) {
		if n, ok := PanelNumber(os, model, name); ok && n <= 0 {
			t.Errorf("%q of %s: %d", name, os, n)
		}
	})
}

// TestPlanes: a port that is split over two planes is one cable, and may hear the
// leaf of either.
func TestPlanes(t *testing.T) {
	t.Parallel()
	inv := room(2)
	hw := inv.Nodes[0].Hardware
	first, second := inv.Racks[0].Switches[0], inv.Racks[0].Switches[1]
	inv.Cables = nil
	for i, n := range inv.Nodes {
		for lane, s := range []*inventory.Switch{first, second} {
			inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Node: n, NIC: &hw.NICs[0], Lane: lane + 1}, To: inventory.CableEnd{Switch: s, Port: i + 1}})
		}
	}
	if list := IntendedCables(inv); len(list) != 2 {
		t.Fatalf("%d cables", len(list))
	}
	for port, want := range map[string]State{"leaf-1 etp1": Conforms, "leaf-2 etp1": Conforms, "leaf-2 etp2": Wrong} {
		system, id, _ := strings.Cut(port, " ")
		r := CompareCables(inv, map[string][]wire.Neighbour{"n1": {{PCI: "0000:18:00.0", SystemName: system, PortID: id, ChassisID: "02:00:00:00:00:01"}}})
		if got := r.Results[0].State; got != want {
			t.Errorf("%s: got %s, want %s", port, got, want)
		}
	}
}
