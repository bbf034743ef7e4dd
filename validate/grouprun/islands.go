// SPDX-License-Identifier: Apache-2.0

package grouprun

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/target"
)

// Island is the nodes whose rails end on the same leaves: what they send one another
// crosses none.
type Island struct {
	Name   string
	Nodes  []*inventory.Node
	Rails  []int          // in their order
	Leaves map[int]string // by rail
}

// Islands splits nodes by their leaves on the fabric that their GPUs speak over, in
// the order of the nodes. It is nil where the site does not say where a rail ends.
func (c *Runner) Islands(at rail.Leaves, list []*inventory.Node) []*Island {
	var all []*Island
	known := map[string]*Island{}
	for _, n := range list {
		i := &Island{Leaves: map[int]string{}}
		f := floor.MainFabric(n.Hardware)
		for _, p := range c.Ports(n) {
			if f == nil || at.Of(n.Name, f.Name, p.Rail) == "" {
				return nil
			}
			i.Rails = append(i.Rails, p.Rail)
			i.Leaves[p.Rail] = at.Of(n.Name, f.Name, p.Rail)
		}
		i.Name = strings.Join(i.Switches(), " ")
		if known[i.Name] == nil {
			known[i.Name] = i
			all = append(all, i)
		}
		known[i.Name].Nodes = append(known[i.Name].Nodes, n)
	}
	return all
}

// Switches are the leaves of an island, each once, in the order of its rails.
func (i *Island) Switches() (list []string) {
	for _, r := range i.Rails {
		if !slices.Contains(list, i.Leaves[r]) {
			list = append(list, i.Leaves[r])
		}
	}
	return list
}

// Within are pairs of nodes of an island.
func (i *Island) Within(g target.Group) [][]*inventory.Node { return g.Sets("pair", i.Nodes) }

// Between are pairs of nodes of two islands: the first with the first, as far as there
// are two.
func (i *Island) Between(j *Island) (sets [][]*inventory.Node) {
	for k := range min(len(i.Nodes), len(j.Nodes)) {
		sets = append(sets, []*inventory.Node{i.Nodes[k], j.Nodes[k]})
	}
	return sets
}

// Has reports whether one of the nodes is of the island.
func (i *Island) Has(nodes []*inventory.Node) bool {
	return slices.ContainsFunc(nodes, func(n *inventory.Node) bool { return slices.Contains(i.Nodes, n) })
}

// Neighbours are the pairs of nodes that follow one another in a run and are of
// different islands: a ring goes over their leaves.
func Neighbours(islands []*Island, nodes []*inventory.Node) (sets [][]*inventory.Node) {
	of := map[*inventory.Node]*Island{}
	for _, i := range islands {
		for _, n := range i.Nodes {
			of[n] = i
		}
	}
	for k, n := range nodes {
		if next := nodes[(k+1)%len(nodes)]; of[n] != of[next] {
			sets = append(sets, []*inventory.Node{n, next})
		}
	}
	return sets
}
