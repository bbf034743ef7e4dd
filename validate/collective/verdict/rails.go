// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/narrow"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/transfer"
)

// railShare is the part of the others' median below which a rail by itself is to
// be named.
const railShare = CohortShare

// SuspectRails blames a node that is bad with every partner. Over all rails at once
// the slowest one decides, so each is run by itself with a good partner: when some
// are slow and others are not, these are named.
func (c *Test) SuspectRails(ctx context.Context, b *grouprun.Run, node string, healthy []*inventory.Node, how string) {
	i := slices.IndexFunc(c.Members, func(n *inventory.Node) bool { return n.Name == node })
	j := slices.IndexFunc(healthy, func(n *inventory.Node) bool { return n.Name != node })
	if i < 0 || j < 0 {
		c.SuspectNode(b, node, how)
		return
	}
	speeds, text := c.railByRail(ctx, c.Members[i], healthy[j])
	if len(speeds) < 2 {
		c.SuspectNode(b, node, how)
		return
	}
	sorted := slices.Clone(speeds)
	slices.SortFunc(sorted, func(a, b railSpeed) int { return cmp.Compare(a.busbw, b.busbw) })
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
	known := len(c.Findings)
	c.suspectParts(b, node, parts, how, "one rail at a time with "+healthy[j].Name+": "+text)
	if len(parts) == 1 && len(c.Findings) > known {
		c.loopback(ctx, c.Members[i], sorted[0], sorted[len(sorted)-1]).Explain(&c.Findings[known])
	}
}

// loopback lets the slowest rail of a node write to itself, and the fastest beside it.
func (c *Test) loopback(ctx context.Context, n *inventory.Node, slow, fast railSpeed) narrow.Loopback {
	if slow.busbw <= 0 || ctx.Err() != nil {
		return narrow.Loopback{}
	}
	r := &transfer.Runner{Nodes: c.Nodes, Rec: c.Rec, Test: &inventory.PairTest{}}
	reference := rail.End{Node: n, Port: fast.port}
	return narrow.Measure(ctx, r, rail.End{Node: n, Port: slow.port}, &reference, slow.busbw)
}

// railSpeed is the bus bandwidth over one rail; 0 when the run failed.
type railSpeed struct {
	rail  int
	port  fabric.Port
	busbw float64
}

// railByRail runs a pair over each of its rails by itself, and says what each gave.
func (c *Test) railByRail(ctx context.Context, n, partner *inventory.Node) ([]railSpeed, string) {
	var speeds []railSpeed
	var notes []string
	for _, p := range c.Ports(n) {
		if ctx.Err() != nil {
			return nil, ""
		}
		b := &grouprun.Run{Scope: "pair", Nodes: []*inventory.Node{n, partner}, Rail: p.Rail + 1}
		c.Try(ctx, b)
		s := railSpeed{rail: p.Rail, port: p, busbw: b.Got.BusBW}
		text := fmt.Sprintf("rail %d %s", p.Rail, result.FormatRate(s.busbw))
		if b.Err != nil {
			s.busbw, text = 0, fmt.Sprintf("rail %d fails", p.Rail)
		}
		speeds, notes = append(speeds, s), append(notes, text)
	}
	return speeds, strings.Join(notes, ", ")
}
