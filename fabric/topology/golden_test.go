// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestGolden holds the ports of small fabrics: another order of ports in a later
// version would have technicians plug a site anew.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		nodes   int
		racks   int // switches in the first rack
		fabric  inventory.Fabric
		manager int
	}{
		{"rail-optimized", 5, 2, inventory.Fabric{Rails: 2, Link: 400 * gbps, Switch: inventory.SwitchModel{Ports: 8}}, 1},
		{"planes", 3, 0, inventory.Fabric{Rails: 2, Link: 800 * gbps, Planes: 2, UnitSize: 4, Switch: inventory.SwitchModel{Ports: 4, Speed: 800 * gbps, Split: 2}}, 0},
		{"lanes", 10, 0, inventory.Fabric{Rails: 2, Link: 400 * gbps, Levels: 2, Switch: inventory.SwitchModel{Ports: 4, Speed: 800 * gbps, Split: 2}}, 0},
		{"three-levels", 6, 0, inventory.Fabric{Rails: 2, Link: 400 * gbps, Switch: inventory.SwitchModel{Ports: 4}, Levels: 3}, 0},
		{"top-of-rack", 10, 1, inventory.Fabric{Rails: 2, Link: 400 * gbps, Topology: "top-of-rack", Switch: inventory.SwitchModel{Ports: 32}}, 0},
		{"fat-tree", 5, 0, inventory.Fabric{Rails: 2, Link: 400 * gbps, Topology: "fat-tree", Switch: inventory.SwitchModel{Ports: 8}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.fabric.Kind = "roce"
			inv := site(c.nodes, &c.fabric)
			for i := range c.racks {
				inv.Switches = append(inv.Switches, &inventory.Switch{Name: fmt.Sprintf("r0001/leaf-%d", i+1), Label: fmt.Sprintf("leaf-%d", i+1), Rack: inv.Racks[0], Unit: 40 + i, Fabric: &c.fabric, Rail: -1, Plane: -1})
			}
			inv.Racks[0].Switches = inv.Switches
			counts := build(t, inv, Options{ManagerPorts: c.manager, Managers: []string{"head1"}})
			sound(t, inv)
			golden(t, "testdata/"+c.name+".golden", picture(inv, counts))
		})
	}
}

// picture is a fabric in words.
func picture(inv *inventory.Inventory, c Counts) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d nodes, %d leaves, %d spines, %d cores; cables %d, %d, %d; ratio %.3g\n", c.Nodes, c.Leaves, c.Spines, c.Cores, c.NodeCables, c.LeafSpine, c.SpineCore, c.Ratio)
	for _, s := range inv.Switches {
		fmt.Fprintf(&b, "%s: %s unit %d rail %d plane %d pod %d\n", s.Name, s.Tier, s.ScalableUnit, s.Rail, s.Plane, s.Pod)
	}
	for _, x := range inv.Cables {
		fmt.Fprintf(&b, "%s %s %s", x.From.String(), x.To.String(), x.Speed)
		if x.Splitter != nil {
			fmt.Fprintf(&b, " half of %s %s", x.Splitter.From.String(), x.Splitter.To.String())
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// golden compares with a file; -update writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", path, got, want)
	}
}
