// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/narrow"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/transfer"
	"github.com/ironrail/ironrail/validate/trunk"
)

// verdict judges the transfers of one pair test.
type verdict struct {
	p             *pairTest
	before, after map[string]rail.PortCounters
	took          time.Duration // between the two
	ends          map[string][]rail.End
	watches       trunk.Watches
	loads         trunk.Loads
	at            map[flow]int // the place of each transfer among those of the test
	alone         map[isolate.Part]narrow.Loopback
}

// flow tells transfers apart.
type flow struct {
	fabric   string
	rail     int
	from, to string
}

// evaluate turns transfers into results, and bad ones into findings about parts.
func (v verdict) evaluate(ctx context.Context) (result.Report, error) {
	p := v.p
	v.at = make(map[flow]int, len(p.done))
	for i, t := range slices.Backward(p.done) { // of several between the same ports the first
		v.at[flow{t.From.Fabric, t.From.Port.Rail, t.From.Node.Name, t.To.Node.Name}] = i
	}
	rep := result.Report{At: p.Rec.Clock().Now().UTC(), Members: target.NodeNames(p.nodeOf), NotJudged: append(v.untested(), v.loads.NotTested()...),
		Proves: "RDMA writes between pairs of nodes, one way at a time, in host memory. It does not prove the fabric under the load of all nodes at once."}
	again, err := v.attachAgain()
	if err != nil {
		return rep, err
	}
	for _, t := range p.done {
		rep.Results = append(rep.Results, v.result(t, again))
	}
	if err := v.blameLost(ctx, &rep); err != nil {
		return rep, err
	}
	blamed, between, err := v.blameParts(ctx, &rep)
	if err != nil {
		return rep, err
	}
	if between, err = v.blameDegraded(ctx, &rep, blamed, between); err != nil {
		return rep, err
	}
	if between, err = v.blameTrunks(ctx, &rep, between); err != nil {
		return rep, err
	}
	return rep, v.blamePaths(ctx, between)
}

// attachAgain stores what those transfers printed that were measured once more;
// "" when there are none.
func (v verdict) attachAgain() (string, error) {
	text := v.texts(func(t *transfer.Transfer) bool { return t.Tries > 1 })
	if len(text) == 0 {
		return "", nil
	}
	return v.p.Rec.Attach("ib_write_bw.again.txt", text)
}

func (v verdict) result(t *transfer.Transfer, again string) result.Result {
	asked := t.Need()
	r := result.Result{Check: result.WriteBandwidth, Nodes: []string{t.From.Node.Name, t.To.Node.Name}, Part: t.From.Rail(), Measured: t.Bw, Unit: "B/s",
		Limit: asked.Limit, Verdict: result.Pass, Transport: "RDMA over " + t.From.Port.Device, Evidence: []string{t.Ref},
		Params: fmt.Sprintf("ib_write_bw, %s messages, %d of them", transfer.MessageSize(v.p.g.Validation.Pair), t.Writes)}
	if t.Tries > 1 {
		r.Evidence = append(r.Evidence, again)
	}
	switch {
	case t.Lost != "":
		r.Verdict, r.Why = result.NotJudged, t.Lost+" could not be reached"
	case t.Bw <= 0:
		r.Verdict, r.Why = result.Fail, t.Why
	case t.Bad():
		r.Verdict, r.Why = result.Fail, "below the limit"
	case t.Tries > 1:
		r.Why = "passed when it was measured once more, alone"
	}
	return r
}

// untested says which pairs a sampled tournament left out.
func (v verdict) untested() []string {
	if focus, with := target.InFocus(v.p.st, v.p.nodeOf); len(with) > 0 {
		return []string{fmt.Sprintf("%s: tested with %s, in service, and with no other that is", result.NameSome(target.NodeNames(focus)), result.NameSome(target.NodeNames(with)))}
	}
	n := len(v.p.nodeOf)
	if n <= rounds.AllPairsUpTo {
		return nil
	}
	tested := 0
	for _, r := range v.p.rounds {
		tested += len(r)
	}
	return []string{fmt.Sprintf("%d of %d pairs were tested: each node with at most %d others, half of them on its own leaves where the site says which these are", tested, n*(n-1)/2, len(v.p.rounds))}
}

// blameLost names nodes that went away during the test.
func (v verdict) blameLost(ctx context.Context, rep *result.Report) error {
	first := map[string]*transfer.Transfer{} // in which each node was lost
	for _, t := range v.p.done {
		if first[t.Lost] == nil {
			first[t.Lost] = t
		}
	}
	for _, n := range v.p.nodeOf {
		t := first[n.Name]
		if t == nil {
			continue
		}
		rep.Suspects = append(rep.Suspects, n.Name)
		err := v.p.Rec.Blame(ctx, stage.Finding{
			Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name), Part: "boot network"}},
			Cause:    n.Name + " stopped answering over SSH during the pair test",
			Evidence: []string{t.Name() + ": " + t.Why},
			Action:   "Look at its console: it may have crashed or rebooted under load.",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// blameParts decodes the bad transfers and blames each part that is suspected,
// or all of them together when the evidence cannot tell them apart. It returns the
// parts, and the bad transfers that none explains.
func (v verdict) blameParts(ctx context.Context, rep *result.Report) ([]isolate.Part, []isolate.Measurement, error) {
	d := isolate.FindSuspects(v.p.measurements())
	if all, err := v.blameCrossings(ctx, rep, d.Suspects); all || err != nil {
		return nil, d.Between, err
	}
	v.alone = v.further().Loopbacks(ctx, certain(d.Groups), v.carried)
	var blamed []isolate.Part
	for _, g := range d.Groups {
		parts, err := v.blameGroup(ctx, rep, g)
		if err != nil {
			return nil, nil, err
		}
		blamed = append(blamed, parts...)
	}
	return blamed, d.Between, nil
}

// certain are the suspects that bad transfers alone lead to.
func certain(groups []isolate.Group) (parts []isolate.Part) {
	for _, g := range groups {
		if !g.Ambiguous {
			parts = append(parts, g.Suspects...)
		}
	}
	return parts
}

// carried is the slowest bad transfer over a part that did not fail, bytes per second; 0: there
// is none.
func (v verdict) carried(part isolate.Part) (least float64) {
	for _, t := range v.p.done {
		if t.Bw > 0 && t.Bad() && part.Explains(t.Measurement()) && (least == 0 || t.Bw < least) {
			least = t.Bw
		}
	}
	return least
}

// blameGroup blames the suspects of bad transfers that have nothing to do with others.
func (v verdict) blameGroup(ctx context.Context, rep *result.Report, g isolate.Group) ([]isolate.Part, error) {
	parts, notes := g.Suspects, []string(nil)
	if g.Ambiguous && !isolate.OnlyLeaves(parts) {
		parts, notes = v.further().Decide(ctx, parts)
	}
	if g.Ambiguous && len(parts) > 1 {
		return parts, v.reportParts(ctx, rep, parts, notes, true)
	}
	for _, part := range parts {
		if err := v.reportParts(ctx, rep, []isolate.Part{part}, notes, false); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func (v verdict) reportParts(ctx context.Context, rep *result.Report, parts []isolate.Part, notes []string, ambiguous bool) error {
	f := stage.Finding{Cause: v.cause(parts), Evidence: v.evidence(parts)}
	if ambiguous {
		f.Cause += "; the measurements cannot tell which of " + isolate.NameParts(parts) + " is at fault"
	}
	f.Evidence = append(f.Evidence, notes...)
	ref, err := v.p.Rec.Attach("bad-transfers.txt", v.texts(func(t *transfer.Transfer) bool { return t.Bad() && touchesParts(t, parts) }))
	if err != nil {
		return err
	}
	f.Evidence = append(f.Evidence, ref)
	f.Action = "Check the cable, the transceiver and the switch port of the rail; try the cable of a rail that is good."
	v.alone[parts[0]].Explain(&f) // ambiguous parts have none
	for _, part := range parts {
		s := stage.Suspect{Subject: subject.OfNode(part.Node), Part: part.String()}
		switch part.Scope {
		case isolate.Shared:
			s = stage.Suspect{Subject: v.fabricOf(part.Fabric), Part: part.String()}
			if !ambiguous {
				f.Action = "Every node is affected: check the switch of the rail, its settings and the limit, before any node."
			}
		case isolate.Everything:
			s = stage.Suspect{Subject: v.fabricOf(part.Fabric), Part: part.String()}
			if !ambiguous {
				f.Action = rail.DoFabric
			}
		case isolate.Leaf:
			s = rail.SuspectLeaf(part.Node)
			f.Action = rail.DoUplinks([]string{part.Node})
		case isolate.WholeNode:
			f.Action = "All rails of the node are affected: check what they share, such as its PCIe settings, memory, CPU clock and driver, before any cable."
		}
		if part.Node != "" && part.Scope != isolate.Leaf && !slices.Contains(rep.Suspects, part.Node) {
			rep.Suspects = append(rep.Suspects, part.Node)
		}
		f.Suspects = append(f.Suspects, s)
	}
	if isolate.OnlyLeaves(parts) {
		v.explain(rep, parts)
	}
	return v.p.Rec.Blame(ctx, f)
}

// further is what is known of the ports beside what they carried.
func (v verdict) further() narrow.Evidence {
	return narrow.Evidence{Ends: v.ends, Before: v.before, After: v.after, Runner: v.p.Runner}
}

// explain notes at bad results that leaves are at fault for them, and no node.
func (v verdict) explain(rep *result.Report, leaves []isolate.Part) {
	var of []string
	for _, p := range leaves {
		of = append(of, p.Node)
	}
	for i, t := range v.p.done {
		if t.Bad() && touchesParts(t, leaves) {
			rep.Results[i].Explain("switch " + strings.Join(of, " or "))
		}
	}
}

// fabricOf is the fabric whose rails have the given word.
func (v verdict) fabricOf(word string) subject.ID {
	for key, list := range v.ends {
		if name, _, _ := strings.Cut(key, "/"); list[0].Fabric == word {
			return subject.ID{Kind: subject.Fabric, Name: name}
		}
	}
	return result.OfGroup(v.p.g.Set)
}

// cause puts the worst of the bad transfers into words.
func (v verdict) cause(parts []isolate.Part) string {
	failed, slow, worst := 0, 0, (*transfer.Transfer)(nil)
	for _, t := range v.p.done {
		switch {
		case !t.Bad() || t.Lost != "" || !touchesParts(t, parts):
			continue
		case t.Bw <= 0:
			failed++
		default:
			slow++
		}
		if worst == nil || t.Bw < worst.Bw {
			worst = t
		}
	}
	what := isolate.NameParts(parts)
	switch {
	case worst == nil:
		return "RDMA writes are bad over " + what
	case failed > 0:
		return fmt.Sprintf("RDMA writes over %s fail (%d of %d bad transfers): %s: %s", what, failed, failed+slow, worst.Name(), worst.Why)
	default:
		return fmt.Sprintf("RDMA writes over %s are slow: %s carries %s, and the limit is %s", what, worst.Name(), result.FormatRate(worst.Bw), worst.Need().Limit)
	}
}

// evidence lists the figures that speak for a suspicion, and what the ports
// counted meanwhile.
func (v verdict) evidence(parts []isolate.Part) []string {
	var out []string
	for _, t := range v.p.done {
		if !touchesParts(t, parts) || len(out) >= 16 {
			continue
		}
		state := "good"
		if t.Bad() {
			state = "bad"
		}
		if t.Bw <= 0 {
			out = append(out, fmt.Sprintf("%s: failed: %s", t.Name(), t.Why))
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s (%s)", t.Name(), result.FormatRate(t.Bw), state))
	}
	reported := map[string]bool{}
	for _, part := range parts {
		for _, e := range v.further().EndsOf(part) {
			key := e.Key()
			if g := rail.GrownCounters(v.before[key], v.after[key]); len(g) > 0 {
				out = append(out, fmt.Sprintf("%s %s counted %s during the test", e.Node.Name, e.Port.Netdev, strings.Join(g, ", ")))
			}
			reported[e.Key()] = true
		}
	}
	for _, p := range v.degradedPorts() { // other rails of a node, or all nodes of a rail
		if isAmong(p, parts) && !reported[p.Key()] {
			out = append(out, p.Describe())
		}
	}
	return out
}

// blamePaths reports transfers that are bad between two nodes which are both
// good with others: no part of one node explains them.
func (v verdict) blamePaths(ctx context.Context, between []isolate.Measurement) error {
	for _, m := range between {
		t := v.transferOf(m)
		part := fmt.Sprintf("path between %s and %s, %s", m.From, m.To, isolate.RailName(m.Fabric, m.Rail))
		ref, err := v.p.Rec.Attach("bad-path.txt", t.Text)
		if err != nil {
			return err
		}
		err = v.p.Rec.Blame(ctx, stage.Finding{
			Suspects: []stage.Suspect{{Subject: v.fabricOf(m.Fabric), Part: part}},
			Cause:    fmt.Sprintf("the %s is bad (%s), while both nodes are good with others", part, t.Outcome()),
			Evidence: []string{ref},
			Action:   "Check the switches and links between the two; neither node was taken out, and neither is accepted until the pair is good.",
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// transferOf is the transfer that a measurement is of.
func (v verdict) transferOf(m isolate.Measurement) *transfer.Transfer { return v.p.done[v.indexOf(m)] }

// indexOf is the place of that transfer among those of the test.
func (v verdict) indexOf(m isolate.Measurement) int {
	return v.at[flow{m.Fabric, m.Rail, m.From, m.To}]
}

// texts joins the raw outputs of the transfers that match.
func (v verdict) texts(match func(*transfer.Transfer) bool) []byte {
	var all [][]byte
	for _, t := range v.p.done {
		if match(t) {
			all = append(all, t.Text)
		}
	}
	return bytes.TrimSpace(bytes.Join(all, []byte("\n")))
}

// touchesParts reports whether one of the parts carries the transfer.
func touchesParts(t *transfer.Transfer, parts []isolate.Part) bool {
	return slices.ContainsFunc(parts, func(p isolate.Part) bool { return p.Explains(t.Measurement()) })
}
