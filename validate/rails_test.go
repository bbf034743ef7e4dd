package validate

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// railSite is so many nodes with eight rails on a fabric.
func railSite(t *testing.T, nodes int) ([]*inventory.Node, *onnodetest.Run) {
	t.Helper()
	f := &inventory.Fabric{Block: inventory.Block{Name: "compute"}}
	h := &inventory.Hardware{Name: "gpu", NICs: []inventory.NIC{{Name: "rail", Fabric: f}}}
	run := onnodetest.NewRun()
	var list []*inventory.Node
	for i := range nodes {
		n := &inventory.Node{Name: fmt.Sprintf("n%04d", i), Hardware: h}
		var ports []fabric.Port
		for rail := range 8 {
			ports = append(ports, fabric.Port{Rail: rail})
		}
		fact, err := fabric.Ports(f.Name).New(subject.OfNode(n.Name), ports, "")
		if err == nil {
			err = run.Learn(t.Context(), fact)
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	return list, run
}

// TestEndsAreLinear: what it takes to list the ports of a test grows with its members,
// and not with their square.
func TestEndsAreLinear(t *testing.T) {
	for _, of := range []string{"collective", "pairs"} {
		took := func(nodes int) float64 {
			list, run := railSite(t, nodes)
			return testing.AllocsPerRun(3, func() {
				if of == "collective" {
					if got := (&collective{bouts: &bouts{rec: run}, list: list}).ends(); len(got) != 8*nodes || got[0].fabric != "" {
						t.Fatalf("%d ports, the first on fabric %q", len(got), got[0].fabric)
					}
					return
				}
				if got, _, err := (&pairTest{transfers: &transfers{rec: run}, nodeOf: list, g: group{v: &inventory.Validation{}}}).ends(); err != nil || len(got) != 8 {
					t.Fatalf("%d rails, %v", len(got), err)
				}
			})
		}
		if few, many := took(64), took(256); many > 6*few {
			t.Errorf("%s: %.0f allocations for 64 nodes, %.0f for 256", of, few, many)
		}
	}
}
