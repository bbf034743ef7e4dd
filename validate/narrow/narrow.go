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
			t := &transfer.Transfer{From: e, To: e}
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
