// SPDX-License-Identifier: Apache-2.0

package grouprun

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestElsewhere: mpirun finds its daemons on other nodes at its own place alone.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	tools := []*inventory.Driver{{Block: inventory.Block{Kind: "inbox", Name: "own"}, Packages: []string{"openmpi-bin", "openmpi"}}}
	node := func(name, kind string, drivers []*inventory.Driver) *inventory.Node {
		return &inventory.Node{Name: name, Image: &inventory.Image{Block: inventory.Block{Kind: kind, Name: kind}, Release: "9"}, Drivers: drivers}
	}
	deb, el, own := node("deb", "debian", tools), node("el", "rhel", tools), node("own", "rhel", nil)
	for name, c := range map[string]struct {
		nodes []*inventory.Node
		want  *inventory.Node
	}{
		"alike":                  {[]*inventory.Node{el, el}, nil},
		"Debian first":           {[]*inventory.Node{deb, el}, el},
		"RHEL first":             {[]*inventory.Node{el, el, deb}, deb},
		"programs of their own":  {[]*inventory.Node{deb, own}, nil},
		"the first has its own":  {[]*inventory.Node{own, el}, nil},
		"Debian beside Ubuntu's": {[]*inventory.Node{deb, node("u", "ubuntu", tools)}, nil},
	} {
		start, _ := placeOfMPI(c.nodes[0])
		if got := elsewhere(c.nodes, start); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
