// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// site is a site of so many nodes, each with a port on each rail of one fabric,
// eight nodes to a rack.
func site(nodes int, f *inventory.Fabric) *inventory.Inventory {
	if f.Name == "" {
		f.Name = "compute"
	}
	if f.Oversubscription == 0 {
		f.Oversubscription = 1
	}
	if f.Topology == "" {
		f.Topology = "rail-optimized"
	}
	hw := &inventory.Hardware{Name: "h"}
	nic := inventory.NIC{Name: "rail", HCA: true, Fabric: f, Speed: f.Link}
	for r := range f.Rails {
		nic.Ports = append(nic.Ports, inventory.NICPort{Rail: r})
	}
	hw.NICs = []inventory.NIC{nic}
	inv := &inventory.Inventory{Hardware: []*inventory.Hardware{hw}, Fabrics: []*inventory.Fabric{f}}
	for i := range nodes {
		if i%8 == 0 {
			inv.Racks = append(inv.Racks, &inventory.Rack{Name: fmt.Sprintf("r%04d", i/8+1), Number: i/8 + 1, Units: 48})
		}
		r := inv.Racks[len(inv.Racks)-1]
		n := &inventory.Node{Name: fmt.Sprintf("n%05d", i), Rack: r, Unit: i%8*4 + 1, Hardware: hw}
		r.Nodes = append(r.Nodes, n)
		inv.Nodes = append(inv.Nodes, n)
	}
	return inv
}

// build adds what Build makes to the site, as Load does.
func build(t testing.TB, inv *inventory.Inventory, opt Options) Counts {
	t.Helper()
	f := inv.Fabrics[0]
	switches, cables, found := Build(inv, f, opt)
	if found.HasErrors() {
		t.Fatalf("%+v", found)
	}
	inv.Switches = append(inv.Switches, switches...)
	inv.Cables = append(inv.Cables, cables...)
	return CountFabric(inv, f)
}

func quantum2() *inventory.Fabric {
	return &inventory.Fabric{Block: inventory.Block{Kind: "infiniband"}, Rails: 8, Link: 400 * gbps, UnitSize: 32, Switch: inventory.SwitchModel{Model: "QM9700", Ports: 64}}
}

func spectrum4() *inventory.Fabric {
	return &inventory.Fabric{Block: inventory.Block{Kind: "roce"}, Rails: 8, Link: 800 * gbps, UnitSize: 64, Planes: 2, Switch: inventory.SwitchModel{Model: "SN5600", Ports: 64, Speed: 800 * gbps, Split: 2}}
}

func quantumX800() *inventory.Fabric {
	return &inventory.Fabric{Block: inventory.Block{Kind: "infiniband"}, Rails: 8, Link: 800 * gbps, UnitSize: 72, Switch: inventory.SwitchModel{Model: "Q3400-RA"}}
}

// TestPublishedDesigns compares with the component counts that NVIDIA publishes.
// Sources: DGX SuperPOD reference architectures, chapter "DGX SuperPOD
// Architecture", the tables of larger configurations: for DGX H100 (RA-11333), DGX
// B200 (reference-architecture-scalable-infrastructure-b200), DGX B300 with
// Spectrum-4 (scalable-infrastructure-b300) and with Quantum-X800
// (scalable-infrastructure-b300-xdr).
func TestPublishedDesigns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                              string
		fabric                            *inventory.Fabric
		nodes, managers                   int
		leaves, spines, cores             int
		nodeCables, leafSpine, spineCores int
	}{
		{"H100 1 SU", quantum2(), 31, 4, 8, 4, 0, 252, 256, 0},
		{"H100 2 SU", quantum2(), 63, 4, 16, 8, 0, 508, 512, 0},
		{"H100 3 SU", quantum2(), 95, 4, 24, 16, 0, 764, 768, 0},
		{"H100 4 SU", quantum2(), 127, 4, 32, 16, 0, 1020, 1024, 0},
		{"B200 2 SU", quantum2(), 64, 0, 16, 8, 0, 512, 512, 0},
		{"B200 4 SU", quantum2(), 128, 0, 32, 16, 0, 1024, 1024, 0},
		{"B200 8 SU", quantum2(), 256, 0, 64, 32, 0, 2048, 2048, 0},
		{"B200 16 SU", quantum2(), 512, 0, 128, 128, 64, 4096, 4096, 4096},
		{"B200 32 SU", quantum2(), 1024, 0, 256, 256, 128, 8192, 8192, 8192},
		{"B200 64 SU", quantum2(), 2048, 0, 512, 512, 256, 16384, 16384, 16384},
		{"B300 1 SU", spectrum4(), 64, 0, 16, 8, 0, 512, 512, 0},
		{"B300 2 SU", spectrum4(), 128, 0, 32, 16, 0, 1024, 1024, 0},
		{"B300 4 SU", spectrum4(), 256, 0, 64, 32, 0, 2048, 2048, 0},
		{"B300 8 SU", spectrum4(), 512, 0, 128, 64, 0, 4096, 4096, 0},
		{"B300 16 SU", spectrum4(), 1024, 0, 256, 128, 0, 8192, 8192, 0},
		{"B300 XDR 1 SU", quantumX800(), 72, 0, 8, 4, 0, 576, 576, 0},
		{"B300 XDR 2 SU", quantumX800(), 144, 0, 16, 8, 0, 1152, 1152, 0},
		{"B300 XDR 4 SU", quantumX800(), 288, 0, 32, 18, 0, 2304, 2304, 0},
		{"B300 XDR 8 SU", quantumX800(), 576, 0, 64, 36, 0, 4608, 4608, 0},
		{"B300 XDR 18 SU", quantumX800(), 1296, 0, 144, 72, 0, 10368, 10368, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site(c.nodes, c.fabric)
			got := build(t, inv, Options{ManagerPorts: c.managers, Managers: []string{"head1", "head2"}})
			links := c.nodes * 8 * max(c.fabric.Planes, 1)
			want := Counts{Nodes: c.nodes, Leaves: c.leaves, Spines: c.spines, Cores: c.cores, NodeCables: c.nodeCables, LeafSpine: c.leafSpine, SpineCore: c.spineCores, Links: links, Ratio: got.Ratio}
			if got != want {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			if got.Ratio > 1 || got.Ratio < 0.9 {
				t.Errorf("ratio: got %v, want not over-subscribed", got.Ratio)
			}
			sound(t, inv)
		})
	}
}

// sound checks what holds for every computed fabric: a port has one cable, a leaf
// as many links to each of its spines, and from every leaf a way to every other.
func sound(t testing.TB, inv *inventory.Inventory) {
	t.Helper()
	type port struct {
		at         any
		nic        *inventory.NIC
		port, lane int
	}
	f := inv.Fabrics[0]
	taken := map[port]string{}
	whole := map[port]bool{} // ports with lanes
	for _, c := range inv.Cables {
		for _, e := range []inventory.CableEnd{c.From, c.To} {
			p := port{port: e.Port, lane: e.Lane, nic: e.NIC}
			switch {
			case e.Node != nil:
				p.at = e.Node
				if c.Splitter != nil && c.Splitter.From.Node == e.Node {
					continue // a further plane of the same port
				}
			case e.Switch != nil:
				p.at = e.Switch
				if e.Port < 1 || e.Switch.Ports > 0 && e.Port > e.Switch.Ports {
					t.Fatalf("%s is not one of %d ports", e.String(), e.Switch.Ports)
				}
				all := port{at: e.Switch, port: e.Port}
				if lanes, seen := whole[all]; seen && lanes != (e.Lane > 0) {
					t.Fatalf("%s has cables whole and split", e.String())
				}
				whole[all] = e.Lane > 0
			default:
				continue
			}
			if other, dup := taken[p]; dup {
				t.Fatalf("%s has two cables: %s and %s", e.String(), other, c.From.String()+" "+c.To.String())
			}
			taken[p] = c.From.String() + " " + c.To.String()
		}
	}
	if bad := Check(inv, f); len(bad) > 0 {
		t.Fatalf("its own checks: %+v", bad[0])
	}
	connected(t, inv, f)
}

// connected checks that the switches of each plane are one tree, unless nothing
// stands above the leaves.
func connected(t testing.TB, inv *inventory.Inventory, f *inventory.Fabric) {
	t.Helper()
	root := map[*inventory.Switch]*inventory.Switch{}
	var find func(*inventory.Switch) *inventory.Switch
	find = func(s *inventory.Switch) *inventory.Switch {
		if root[s] == nil || root[s] == s {
			return s
		}
		root[s] = find(root[s])
		return root[s]
	}
	above := false
	used := map[*inventory.Switch]bool{}
	for _, c := range inv.Cables {
		used[c.From.Switch], used[c.To.Switch] = true, true
		if c.From.Switch != nil && c.To.Switch != nil {
			above = true
			if c.From.Switch.Plane != c.To.Switch.Plane {
				t.Fatalf("%s and %s are in two planes", c.From.Switch.Name, c.To.Switch.Name)
			}
			root[find(c.From.Switch)] = find(c.To.Switch)
		}
	}
	trees := map[*inventory.Switch]bool{}
	for _, s := range inv.Switches {
		if s.Fabric == f && used[s] {
			trees[find(s)] = true
		}
	}
	if want := max(f.Planes, 1); above && len(trees) != want {
		t.Fatalf("the switches are %d trees, want %d", len(trees), want)
	}
}

// BenchmarkBuild is 12,500 nodes with eight rails on switches of 128 ports, which
// takes three levels and some 300,000 cables.
func BenchmarkBuild(b *testing.B) {
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce"}, Rails: 8, Link: 400 * gbps, Switch: inventory.SwitchModel{Ports: 128}}
	inv := site(12_500, f)
	b.ReportAllocs()
	for b.Loop() {
		_, cables, found := Build(inv, f, Options{})
		if found.HasErrors() || len(cables) < 250_000 {
			b.Fatalf("%d cables, %+v", len(cables), found)
		}
	}
}
