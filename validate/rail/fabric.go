// SPDX-License-Identifier: Apache-2.0

package rail

import (
	"slices"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
)

// GPUFabrics are the fabrics over which GPUs of different nodes speak: the one with
// the highest line rate, or all of them where that is not known. Storage on a
// slower fabric would hold all rails back.
func GPUFabrics(n *inventory.Node) []*inventory.Fabric {
	if f := floor.MainFabric(n.Hardware); f != nil {
		return []*inventory.Fabric{f}
	}
	return fabric.Of(n)
}

// FabricName is the word that tells rails of a fabric from those of others: its name.
// It is empty for the fabric that the GPUs of all nodes speak over, whose rails are
// meant by a number alone, and where all nodes are on no other.
func FabricName(nodes []*inventory.Node, f *inventory.Fabric) string {
	alone, main := true, true
	for _, n := range nodes {
		alone = alone && !slices.ContainsFunc(fabric.Of(n), func(g *inventory.Fabric) bool { return g != f })
		main = main && floor.MainFabric(n.Hardware) == f
	}
	if alone || main {
		return ""
	}
	return f.Name
}

// FabricNames gives FabricName of the fabrics of nodes, each found once: it looks at all
// nodes, and every port of every node asks.
func FabricNames(nodes []*inventory.Node) func(*inventory.Fabric) string {
	found := map[*inventory.Fabric]string{}
	return func(f *inventory.Fabric) string {
		word, ok := found[f]
		if !ok {
			word = FabricName(nodes, f)
			found[f] = word
		}
		return word
	}
}
