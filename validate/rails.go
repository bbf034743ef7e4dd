package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/floor"
)

// railShare is the part of the others' median below which a rail by itself is to
// be named.
const railShare = cohortShare

// suspectRails blames a node that is bad with every partner. Over all rails at once
// the slowest one decides, so each is run by itself with a good partner: when some
// are slow and others are not, these are named.
func (c *collective) suspectRails(ctx context.Context, b *bout, node string, healthy []*inventory.Node, how string) {
	i := slices.IndexFunc(c.list, func(n *inventory.Node) bool { return n.Name == node })
	j := slices.IndexFunc(healthy, func(n *inventory.Node) bool { return n.Name != node })
	if i < 0 || j < 0 {
		c.suspect(b, node, how)
		return
	}
	speeds, said := c.railByRail(ctx, c.list[i], healthy[j])
	if len(speeds) < 2 {
		c.suspect(b, node, how)
		return
	}
	sorted := slices.Clone(speeds)
	slices.SortFunc(sorted, func(a, b railSpeed) int { return int(a.busbw/1e6) - int(b.busbw/1e6) })
	median := sorted[len(sorted)/2].busbw
	var parts []string
	for _, s := range speeds {
		if s.busbw < railShare*median {
			parts = append(parts, fmt.Sprintf("rail %d", s.rail))
		}
	}
	if 2*len(parts) >= len(speeds) { // what is slow is no single rail
		parts = nil
	}
	c.suspectParts(b, node, parts, how, "one rail at a time with "+healthy[j].Name+": "+said)
}

// gpuFabrics are the fabrics over which GPUs of different nodes speak: the one with
// the highest line rate, or all of them where that is not known. Storage on a
// slower fabric would hold all rails back.
func gpuFabrics(n *inventory.Node) []*inventory.Fabric {
	if f := floor.Main(n.Hardware); f != nil {
		return []*inventory.Fabric{f}
	}
	return fabric.Of(n)
}

// railFabric is the word that tells rails of a fabric from those of others: its name.
// It is empty for the fabric that the GPUs of all nodes speak over, whose rails are
// meant by a number alone, and where all nodes are on no other.
func railFabric(nodes []*inventory.Node, f *inventory.Fabric) string {
	alone, main := true, true
	for _, n := range nodes {
		alone = alone && !slices.ContainsFunc(fabric.Of(n), func(g *inventory.Fabric) bool { return g != f })
		main = main && floor.Main(n.Hardware) == f
	}
	if alone || main {
		return ""
	}
	return f.Name
}

// railFabrics gives railFabric of the fabrics of nodes, each found once: it looks at all
// nodes, and every port of every node asks.
func railFabrics(nodes []*inventory.Node) func(*inventory.Fabric) string {
	found := map[*inventory.Fabric]string{}
	return func(f *inventory.Fabric) string {
		word, ok := found[f]
		if !ok {
			word = railFabric(nodes, f)
			found[f] = word
		}
		return word
	}
}

// ports are those that the GPUs of a node speak over, as its fabrics found them.
func (c *collective) ports(n *inventory.Node) (list []fabric.Port) {
	for _, f := range gpuFabrics(n) {
		of, _ := read(c.rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
		list = append(list, of...)
	}
	return list
}

// railSpeed is the bus bandwidth over one rail; 0 when the run failed.
type railSpeed struct {
	rail  int
	busbw float64
}

// railByRail runs a pair over each of its rails by itself, and says what each gave.
func (c *collective) railByRail(ctx context.Context, n, partner *inventory.Node) ([]railSpeed, string) {
	var speeds []railSpeed
	var said []string
	for _, p := range c.ports(n) {
		if ctx.Err() != nil {
			return nil, ""
		}
		b := &bout{scope: "pair", nodes: []*inventory.Node{n, partner}, rail: p.Rail + 1}
		c.try(ctx, b)
		s := railSpeed{rail: p.Rail, busbw: b.m.BusBW}
		text := fmt.Sprintf("rail %d %s", p.Rail, rate(s.busbw))
		if b.err != nil {
			s.busbw, text = 0, fmt.Sprintf("rail %d fails", p.Rail)
		}
		speeds, said = append(speeds, s), append(said, text)
	}
	return speeds, strings.Join(said, ", ")
}
