// SPDX-License-Identifier: Apache-2.0

// Package railtest makes nodes with rails, for tests of what goes over them.
package railtest

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// Site is so many nodes with eight rails on a fabric.
func Site(t *testing.T, nodes int) ([]*inventory.Node, *onnodetest.Run) {
	t.Helper()
	f := &inventory.Fabric{Block: inventory.Block{Name: "compute"}}
	h := &inventory.Hardware{Name: "gpu", NICs: []inventory.NIC{{Name: "rail", Fabric: f}}}
	run := onnodetest.NewRun()
	var list []*inventory.Node
	for i := range nodes {
		n := &inventory.Node{Name: fmt.Sprintf("n%04d", i), Hardware: h}
		var ports []fabric.Port
		for rail := range 8 {
			ports = append(ports, fabric.Port{Rail: rail, Device: fmt.Sprintf("mlx5_%d", rail)})
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
