package validate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
)

// railOf is one rail of one node.
type railOf struct {
	node, fabric string
	rail         int
}

// leavesOf says which switch each rail of each node ends on, by the cables of the
// site; of a port that is split over several planes the first. It reads the cables
// once, and is pure.
func leavesOf(inv *inventory.Inventory) map[railOf]string {
	leaves := map[railOf]string{}
	for _, c := range inv.Cables {
		at, far := &c.From, &c.To
		if at.Node == nil {
			at, far = far, at
		}
		if at.Node == nil || at.NIC == nil || at.NIC.Fabric == nil || far.Switch == nil || at.Port >= len(at.NIC.Ports) {
			continue
		}
		key := railOf{at.Node.Name, at.NIC.Fabric.Name, at.NIC.Ports[at.Port].Rail}
		if _, known := leaves[key]; !known {
			leaves[key] = far.Switch.Name
		}
	}
	return leaves
}

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
		f := floor.Main(n.Hardware)
		for _, p := range c.ports(n) {
			if f == nil || c.leaves[railOf{n.Name, f.Name, p.Rail}] == "" {
				return nil
			}
			i.rails = append(i.rails, p.Rail)
			i.leaves[p.Rail] = c.leaves[railOf{n.Name, f.Name, p.Rail}]
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
func (i *island) within(g group) [][]*inventory.Node { return g.sets("pair", i.nodes) }

func (i *island) between(j *island) (sets [][]*inventory.Node) {
	for k := range min(len(i.nodes), len(j.nodes)) {
		sets = append(sets, []*inventory.Node{i.nodes[k], j.nodes[k]})
	}
	return sets
}

// suspectLeaf is a suspect that is no node: what leaf passes beyond itself.
func suspectLeaf(name string) stage.Suspect {
	return stage.Suspect{Subject: subject.ID{Kind: subject.Switch, Name: name}, Part: "uplinks"}
}

// doUplinks is what to do about a leaf.
func doUplinks(leaves []string) string {
	return fmt.Sprintf("Look at the links from %s to the spines: which are up, at which speed and width, with which errors, and how flows are spread over them (adaptive routing, ECMP); then at the switch itself. No node was taken out. Then run `ironrail validate`.", strings.Join(leaves, " and "))
}
