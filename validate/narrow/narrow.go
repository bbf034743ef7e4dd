// SPDX-License-Identifier: Apache-2.0

// Package narrow looks for further evidence where transfers alone leave several suspects.
package narrow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/transfer"
)

// loopbackShare is how much slower than the best suspect a node's traffic to
// itself must be to count against it: loopback shares one CPU between both
// sides, and is noisy.
const loopbackShare = 0.5

// Evidence is what is known of ports beside what they carried.
type Evidence struct {
	Ends          map[string][]rail.End // by fabric and rail
	Before, After map[string]rail.PortCounters
	Runner        *transfer.Runner // of transfers of a node with itself
}

// Decide asks for further evidence where the transfers alone leave several
// explanations: the speed that the ports negotiated, the errors that they
// counted, and traffic of a node with itself over its own rail. Each piece
// decides only when it speaks against one node and for the others. Without a
// decision all stay suspects, and the notes say what was looked at.
func (x Evidence) Decide(ctx context.Context, parts []isolate.Part) ([]isolate.Part, []string) {
	var nodes []string
	for _, p := range parts {
		if p.Node != "" && p.Scope != isolate.Leaf && !slices.Contains(nodes, p.Node) {
			nodes = append(nodes, p.Node)
		}
	}
	var notes []string
	for _, look := range []func(context.Context, []isolate.Part, []string) (string, string){x.bySpeed, x.byErrors, x.byLoopback} {
		node, note := look(ctx, parts, nodes)
		if note != "" {
			notes = append(notes, note)
		}
		if node != "" {
			kept := slices.DeleteFunc(slices.Clone(parts), func(p isolate.Part) bool { return p.Node != node })
			return kept, notes
		}
	}
	return parts, notes
}

// EndsOf returns the ports that belong to a part.
func (x Evidence) EndsOf(p isolate.Part) []rail.End {
	var out []rail.End
	for _, list := range x.Ends {
		for _, e := range list {
			if e.Node.Name == p.Node && (p.Scope == isolate.WholeNode || e.Port.Rail == p.Rail && e.Fabric == p.Fabric) {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b rail.End) int {
		return cmp.Or(strings.Compare(a.Fabric, b.Fabric), a.Port.Rail-b.Port.Rail)
	})
	return out
}

// bySpeed finds the one suspect whose port runs slower than the others'.
func (x Evidence) bySpeed(_ context.Context, parts []isolate.Part, nodes []string) (string, string) {
	speed := map[string]int64{}
	for _, p := range parts {
		for _, e := range x.EndsOf(p) {
			s := x.After[e.Key()]["speed"]
			if was, ok := speed[p.Node]; s > 0 && (!ok || s < was) {
				speed[p.Node] = s
			}
		}
	}
	if len(speed) < len(nodes) || len(nodes) < 2 {
		return "", "the drivers do not say at which speed the ports run"
	}
	slow, fast := "", int64(0)
	for _, s := range speed {
		fast = max(fast, s)
	}
	for _, n := range nodes {
		if speed[n] == fast {
			continue
		}
		if slow != "" {
			return "", ""
		}
		slow = n
	}
	if slow == "" {
		return "", fmt.Sprintf("all ports run at %d Mb/s", fast)
	}
	return slow, fmt.Sprintf("the port of %s runs at %d Mb/s, the others at %d Mb/s", slow, speed[slow], fast)
}

// byErrors finds the one suspect whose ports counted errors.
func (x Evidence) byErrors(_ context.Context, parts []isolate.Part, _ []string) (string, string) {
	with := map[string]string{}
	for _, p := range parts {
		for _, e := range x.EndsOf(p) {
			key := e.Key()
			if g := rail.GrownCounters(x.Before[key], x.After[key]); len(g) > 0 {
				with[p.Node] = strings.Join(g, ", ")
			}
		}
	}
	if len(with) == 0 {
		return "", "no suspect counted an error during the test"
	}
	if len(with) > 1 {
		return "", "several suspects counted errors"
	}
	for n, g := range with {
		return n, fmt.Sprintf("only %s counted errors: %s", n, g)
	}
	return "", ""
}

// byLoopback measures each suspect against itself over the rail in question.
func (x Evidence) byLoopback(ctx context.Context, parts []isolate.Part, nodes []string) (string, string) {
	first := map[string]*transfer.Transfer{} // of each node
	var g errgroup.Group                     // different nodes, at once
	g.SetLimit(rounds.CommandsAtOnce / 2)
	for _, p := range parts {
		for _, e := range x.EndsOf(p) {
			if first[p.Node] != nil {
				continue
			}
			x.Runner.Rec.Emit(event.Event{Type: event.StepProgress, Text: "loopback of " + p.Node})
			t := withItself(e)
			first[p.Node] = t
			g.Go(func() error { x.Runner.Run(ctx, t); return nil })
		}
	}
	_ = g.Wait() // none of them fails
	got, least := map[string]float64{}, 0.0
	for node, t := range first {
		got[node], least = t.Bw, max(least, t.Need().Least)
	}
	best, text := 0.0, []string{}
	for _, n := range nodes {
		best = max(best, got[n])
		text = append(text, fmt.Sprintf("%s %s", n, result.FormatRate(got[n])))
	}
	note := "each with itself over the rail: " + strings.Join(text, ", ")
	bad := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return got[n] >= loopbackShare*best })
	if len(bad) == 1 && got[bad[0]] < max(least, 1) && best >= least && best > 0 {
		return bad[0], note + "; only " + bad[0] + " is bad even without the cable"
	}
	return "", note
}

// Where is on which side of a NIC's plug what is slow lies.
type Where uint8

// The sides.
const (
	NotKnown  Where = iota // what was measured speaks for neither
	InNIC                  // the NIC, its PCIe link or the host's memory: it is slow without its cable as well
	BeyondNIC              // the cable, the transceivers or the switch port: without them it is fast
)

// Shares of loopback, which does not leave the NIC: of another port's, and of what was bad. Belief:
// azurehpc-health-checks asks as much of a NIC's loopback as of its link (380 of 400 Gb/s), and two
// runs over the same NIC lie a few percent apart.
const (
	alike   = 0.95 // at least as much of the reference: the NIC is well
	clearly = 0.9  // less than that much of the reference: it is not
	asSlow  = 1.1  // at most so many times what it carried to others: the same thing is slow
)

// Loopback is a suspected port with itself, and one beside it that nothing speaks against.
type Loopback struct {
	Where Where
	Note  string // what was measured, in words; empty: nothing was
}

// Explain adds to a finding about one rail of one node what loopback says of it.
func (l Loopback) Explain(f *stage.Finding) {
	if l.Note != "" {
		f.Evidence = append(f.Evidence, l.Note)
	}
	switch l.Where {
	case InNIC:
		f.Cause += "; the NIC is slow even with itself"
		f.Action = "The cable is not the cause: look at the NIC's PCIe link (slot, riser, ACS, relaxed ordering), its firmware and settings, and seat it anew; have the NIC replaced if it stays slow."
	case BeyondNIC:
		f.Action = "The NIC is fast with itself, so the fault lies beyond it: check the cable, the transceiver and the switch port of the rail; try the cable of a rail that is good."
	}
}

// Loopbacks lets the ports of parts that are one rail of one node write to themselves, and one
// other port of each node beside them: one that nobody suspects. carried is what a part carried
// to others at worst, bytes per second.
func (x Evidence) Loopbacks(ctx context.Context, parts []isolate.Part, carried func(isolate.Part) float64) map[isolate.Part]Loopback {
	found := make([]Loopback, len(parts))
	byNode := map[string][]int{} // one after another on a node, whose memory both would load
	for i, p := range parts {
		if p.Scope == isolate.Rail || p.Scope == isolate.Send || p.Scope == isolate.Receive {
			byNode[p.Node] = append(byNode[p.Node], i)
		}
	}
	var g errgroup.Group
	g.SetLimit(rounds.CommandsAtOnce / 2)
	for node, list := range byNode {
		g.Go(func() error {
			for _, i := range list {
				if ctx.Err() == nil && carried(parts[i]) > 0 {
					x.Runner.Rec.Emit(event.Event{Type: event.StepProgress, Text: "loopback of " + node})
					found[i] = x.loopback(ctx, parts[i], parts, carried(parts[i]))
				}
			}
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	all := make(map[isolate.Part]Loopback, len(parts))
	for i, p := range parts {
		all[p] = found[i]
	}
	return all
}

// loopback measures the port of one part and a reference.
func (x Evidence) loopback(ctx context.Context, part isolate.Part, suspects []isolate.Part, carried float64) Loopback {
	ends := x.EndsOf(part)
	if len(ends) == 0 {
		return Loopback{}
	}
	return Measure(ctx, x.Runner, ends[0], x.reference(part, suspects), carried)
}

// withItself is a transfer of a port into its own node's memory.
func withItself(e rail.End) *transfer.Transfer { return &transfer.Transfer{From: e, To: e} }

// Measure lets a port write to itself, and a reference after it, and judges what it carried to
// others, bytes per second. Without a reference nothing is judged.
func Measure(ctx context.Context, r *transfer.Runner, port rail.End, reference *rail.End, carried float64) Loopback {
	own := withItself(port)
	r.Run(ctx, own)
	note := fmt.Sprintf("%s with itself, which does not leave the NIC: %s", port.Rail(), own.Outcome())
	if reference == nil || own.Bw <= 0 {
		return Loopback{Note: note}
	}
	ref := withItself(*reference)
	r.Run(ctx, ref)
	note += fmt.Sprintf("; %s of %s: %s", reference.Rail(), reference.Node.Name, ref.Outcome())
	return Loopback{Where: side(own.Bw, ref.Bw, carried), Note: note}
}

// side judges a port's loopback by that of another one, and by what it carried to others.
func side(own, reference, carried float64) Where {
	switch {
	case own < clearly*reference && own <= asSlow*carried:
		return InNIC
	case own >= alike*reference && own > asSlow*carried:
		return BeyondNIC
	}
	return NotKnown
}

// reference is another port of the part's node on the same fabric that nothing speaks against;
// where there is none, such a port of the same rail on a node with the same hardware.
func (x Evidence) reference(part isolate.Part, suspects []isolate.Part) *rail.End {
	all := x.EndsOf(part)
	hardware := all[0].Node.Hardware
	all = x.EndsOf(isolate.Part{Node: part.Node, Scope: isolate.WholeNode})
	for _, list := range x.Ends {
		for _, e := range list {
			if e.Node.Name != part.Node && e.Port.Rail == part.Rail && e.Node.Hardware == hardware {
				all = append(all, e)
			}
		}
	}
	i := slices.IndexFunc(all, func(e rail.End) bool {
		return e.Fabric == part.Fabric && !slices.ContainsFunc(suspects, func(s isolate.Part) bool {
			return s.Node == e.Node.Name && (s.Scope == isolate.WholeNode || s.Fabric == e.Fabric && s.Rail == e.Port.Rail)
		})
	})
	if i < 0 {
		return nil
	}
	return &all[i]
}
