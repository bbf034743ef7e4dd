// SPDX-License-Identifier: Apache-2.0

package collective

import (
	"slices"
	"strings"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/target"
)

// island is the nodes whose rails end on the same leaves: what they send one another
// crosses none.
type island struct {
	name   string
	nodes  []*inventory.Node
	rails  []int          // in their order
	leaves map[int]string // by rail
}

// islands splits nodes by their leaves on the fabric that their GPUs speak over, in
// the order of the nodes. It is nil where the site does not say where a rail ends.
func (c *collective) islands(list []*inventory.Node) []*island {
	var all []*island
	at := map[string]*island{}
	for _, n := range list {
		i := &island{leaves: map[int]string{}}
		f := floor.MainFabric(n.Hardware)
		for _, p := range c.Ports(n) {
			if f == nil || c.leaves.Of(n.Name, f.Name, p.Rail) == "" {
				return nil
			}
			i.rails = append(i.rails, p.Rail)
			i.leaves[p.Rail] = c.leaves.Of(n.Name, f.Name, p.Rail)
		}
		i.name = strings.Join(i.switches(), " ")
		if at[i.name] == nil {
			at[i.name] = i
			all = append(all, i)
		}
		at[i.name].nodes = append(at[i.name].nodes, n)
	}
	return all
}

// switches are the leaves of an island, each once, in the order of its rails.
func (i *island) switches() (list []string) {
	for _, r := range i.rails {
		if !slices.Contains(list, i.leaves[r]) {
			list = append(list, i.leaves[r])
		}
	}
	return list
}

// within are pairs of nodes of an island, and between pairs of nodes of two: the first
// with the first, as far as there are two.
func (i *island) within(g target.Group) [][]*inventory.Node { return g.Sets("pair", i.nodes) }

func (i *island) between(j *island) (sets [][]*inventory.Node) {
	for k := range min(len(i.nodes), len(j.nodes)) {
		sets = append(sets, []*inventory.Node{i.nodes[k], j.nodes[k]})
	}
	return sets
}
