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
	parts := slowRails(speeds)
	known := len(c.Findings)
	c.suspectParts(b, node, parts, how, "one rail at a time with "+healthy[j].Name+": "+text)
	if len(parts) == 1 && len(c.Findings) > known {
		slow, fast := slices.MinFunc(speeds, bySpeed), slices.MaxFunc(speeds, bySpeed)
		c.loopback(ctx, c.Members[i], slow, fast).Explain(&c.Findings[known])
	}
}

func bySpeed(a, b railSpeed) int { return cmp.Compare(a.busbw, b.busbw) }

// slowRails names the rails that are slow beside the others of their node; none where half
// of them are, since what is slow is then no single rail.
func slowRails(speeds []railSpeed) (parts []string) {
	sorted := slices.SortedFunc(slices.Values(speeds), bySpeed)
	for _, s := range speeds {
		if s.busbw < railShare*sorted[len(sorted)/2].busbw {
			parts = append(parts, fmt.Sprintf("rail %d", s.rail))
		}
	}
	if 2*len(parts) >= len(speeds) {
		return nil
	}
	return parts
}

// Examined is what a pair of a node that is out and a good partner showed.
type Examined struct {
	b     *grouprun.Run
	parts []string // rails that are slow beside the others of the node
	text  string
}

// Examine runs a pair of a node that is out and a good partner, and where it is slow each of
// its rails by itself. It changes nothing of the test, so that pairs can be examined side by side.
func (c *Test) Examine(ctx context.Context, out, partner *inventory.Node) Examined {
	x := Examined{b: &grouprun.Run{Scope: "pair", Nodes: []*inventory.Node{out, partner}}}
	c.Try(ctx, x.b)
	c.JudgeAlone(x.b)
	c.JudgeCohort(x.b)
	if x.b.Why == "" || x.b.Err != nil || x.b.Got.Wrong > 0 || ctx.Err() != nil { // a run that fails is as well explained by what the node is out for
		return x
	}
	var speeds []railSpeed
	if speeds, x.text = c.railByRail(ctx, out, partner); len(speeds) > 1 {
		x.parts = slowRails(speeds)
	}
	return x
}

// SuspectExamined blames those rails of a node that is out which are slow beside its
// others. All of them alike are slow by its GPUs as well, which may be what it is out for.
func (c *Test) SuspectExamined(x Examined) {
	if len(x.parts) > 0 {
		c.blameParts(x.b, x.b.Nodes[0].Name, x.parts, "other findings speak of it already; this is of its rails alone", "one rail at a time with "+x.b.Nodes[1].Name+": "+x.text)
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
