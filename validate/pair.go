package validate

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/isolate"
)

// paired reports whether a group is tested so: it takes two nodes at least.
func paired(t Target) bool { return t.Group.v.Pair != nil && len(t.Group.nodes) >= 2 }

// planPair tests every two nodes of a group, or a sample of them.
func planPair(r Request) plan.Step {
	g := r.Group
	p := g.v.Pair
	st := r.groupStep(fmt.Sprintf("RDMA writes between %d nodes, pair by pair", len(g.nodes)), p.Decl)
	st.Inputs = append(g.inputs(WriteBandwidth), plan.Input{Name: "pair", Value: "perftest " + size(p).String(), Decl: stage.Source(p.Decl)})
	st.Yields = []fact.Key{PairReport.Of(OfGroup(g.set))}
	turns := time.Duration(len(tournament(len(g.nodes))) * batches(len(g.nodes)/2) * 2) // each way
	st.Deadline = plan.Budget{Expected: turns * 10 * time.Second, Limit: turns*g.longestTransfer() + 20*time.Minute}
	return st
}

// runPair runs the test.
func runPair(ctx context.Context, j *Job) error {
	return j.together(ctx, PairReport, func() error { return newPairTest(j).run(ctx) })
}

// pairsAtOnce is how many pairs run side by side.
const pairsAtOnce = 64

// pairTest is one run of the pair test.
type pairTest struct {
	*transfers
	g      group
	st     plan.Step
	nodeOf []*inventory.Node
	rounds [][][2]int // of pairs of nodeOf
	leaves leafTable
	leafOf map[end]string // of the ports that are tested

	mu   sync.Mutex // guards what follows
	done []*transfer
}

func newPairTest(j *Job) *pairTest {
	p := &pairTest{transfers: &transfers{nodes: j.Nodes, rec: j.Run, test: j.Group.v.Pair}, g: *j.Group, st: j.Step, nodeOf: members(j.Inv, j.Run), leaves: leavesOf(j.Inv)}
	if focus, with := inFocus(j.Step, p.nodeOf); len(with) > 0 {
		p.nodeOf, p.rounds = slices.Concat(focus, with), focused(focus, with)
	} else {
		p.rounds = tournament(len(p.nodeOf))
	}
	return p
}

// run does the test within one journaled effect, judges it and names suspects.
func (p *pairTest) run(ctx context.Context) error {
	ends, skipped, err := p.ends()
	if err != nil {
		return err
	}
	before, began := p.counters(ctx, ends), p.rec.Clock().Now()
	err = p.rec.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", p.st.ID, p.rec.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("load the rails between %d nodes with RDMA writes", len(p.nodeOf)),
		Do:   func(ctx context.Context) error { return p.measure(ctx, ends) },
	})
	if err != nil {
		return err
	}
	for _, t := range p.done {
		if t.cut != nil { // it speaks against no node: the test has no result
			return fmt.Errorf("the pair test, %s: %w", t.name(), t.cut)
		}
	}
	v := verdict{p: p, before: before, ends: ends}
	v.after, v.took = p.counters(ctx, ends), p.rec.Clock().Now().Sub(began)
	rep, err := v.judge(ctx)
	if err != nil {
		return err
	}
	rep.NotJudged = append(rep.NotJudged, skipped...)
	return learn(ctx, p.rec, PairReport, reportOf(p.st, PairReport, p.g.set), rep)
}

// ends returns the ports of every member by fabric and rail, in the order of the
// members, and says which members have none.
func (p *pairTest) ends() (map[string][]end, []string, error) {
	ends := map[string][]end{}
	p.leafOf = map[end]string{}
	var skipped []string
	word := railFabrics(p.nodeOf)
	for _, n := range p.nodeOf {
		found := false
		for _, f := range fabric.Of(n) {
			ports, ok := read(p.rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
			if !ok {
				continue
			}
			need := p.g.writeNeed(n, f)
			for _, port := range ports {
				found = true
				key := fmt.Sprintf("%s/%d", f.Name, port.Rail)
				e := end{node: n, port: port, fabric: word(f), need: need}
				ends[key] = append(ends[key], e)
				p.leafOf[e] = p.leaves.of(n.Name, f.Name, port.Rail)
			}
		}
		if !found {
			skipped = append(skipped, n.Name+" has no RDMA port on a fabric")
		}
	}
	for key, list := range ends {
		if len(list) < 2 {
			skipped = append(skipped, fmt.Sprintf("%s is alone on %s", list[0].node.Name, key))
			delete(ends, key)
		}
	}
	slices.Sort(skipped)
	if len(ends) == 0 {
		return nil, nil, errkind.New(errkind.Refused, "no two of %s have an RDMA port on the same fabric", strings.Join(names(p.nodeOf), ", ")).
			Do("Give the hardware a nic or hca with `fabric`, or take the pair test out of the validation.")
	}
	return ends, skipped, nil
}

// byNode returns of each rail the first port of every node.
func byNode(ends map[string][]end) []map[*inventory.Node]end {
	var rails []map[*inventory.Node]end
	for _, list := range ends {
		of := make(map[*inventory.Node]end, len(list))
		for _, e := range list {
			if _, has := of[e.node]; !has {
				of[e.node] = e
			}
		}
		rails = append(rails, of)
	}
	return rails
}

// measure runs the rounds and then every bad transfer once more, alone.
func (p *pairTest) measure(ctx context.Context, ends map[string][]end) error {
	p.mu.Lock()
	p.done = nil
	p.mu.Unlock()
	rounds, rails := p.rounds, byNode(ends)
	for i, pairs := range rounds {
		p.rec.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("round %d of %d: %d pairs", i+1, len(rounds), len(pairs)), Done: int64(i), Total: int64(len(rounds))})
		if err := p.round(ctx, pairs, rails); err != nil {
			return err
		}
		if err := p.attach(fmt.Sprintf("ib_write_bw.round-%d.txt", i+1)); err != nil {
			return err
		}
	}
	for _, t := range p.done {
		if t.bad() && t.lost == "" {
			p.rec.Emit(event.Event{Type: event.StepProgress, Text: "once more, alone: " + t.name()})
			p.transfers.run(ctx, t)
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

// attach stores what the transfers printed that are not stored yet, and forgets it
// but for the bad ones: all rounds of thousands of nodes are a lot of text.
func (p *pairTest) attach(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all [][]byte
	for _, t := range p.done {
		if t.ref == "" {
			all = append(all, t.text)
		}
	}
	ref, err := p.rec.Attach(name, bytes.Join(all, []byte("\n")))
	if err != nil {
		return err
	}
	for _, t := range p.done {
		if t.ref == "" {
			t.ref = ref
			if !t.bad() {
				t.text = nil
			}
		}
	}
	return nil
}

// batches is how often as many pairs as run side by side are needed for a round.
func batches(pairs int) int { return (pairs + pairsAtOnce - 1) / pairsAtOnce }

// round runs its pairs side by side; a pair runs all its rails at once, one way
// and then the other.
func (p *pairTest) round(ctx context.Context, pairs [][2]int, ends []map[*inventory.Node]end) error {
	slots := make(chan struct{}, pairsAtOnce)
	var wg sync.WaitGroup
	for _, pair := range pairs {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a, b := p.nodeOf[pair[0]], p.nodeOf[pair[1]]
			p.oneWay(ctx, a, b, ends)
			p.oneWay(ctx, b, a, ends)
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	slices.SortFunc(p.done, func(a, b *transfer) int {
		return cmp.Or(cmp.Compare(a.from.fabric, b.from.fabric), cmp.Compare(a.from.port.Rail, b.from.port.Rail), cmp.Compare(a.from.node.Name, b.from.node.Name), cmp.Compare(a.to.node.Name, b.to.node.Name))
	})
	return nil
}

func (p *pairTest) oneWay(ctx context.Context, from, to *inventory.Node, ends []map[*inventory.Node]end) {
	var wg sync.WaitGroup
	for _, on := range ends {
		a, aok := on[from]
		b, bok := on[to]
		if !aok || !bok || ctx.Err() != nil {
			continue
		}
		wg.Go(func() {
			t := &transfer{from: a, to: b, fromLeaf: p.leafOf[a], toLeaf: p.leafOf[b]}
			p.transfers.run(ctx, t)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.done = append(p.done, t)
		})
	}
	wg.Wait()
}

// measurements turns transfers into what the decoder reads.
func (p *pairTest) measurements() []isolate.Measurement {
	var ms []isolate.Measurement
	for _, t := range p.done {
		if t.lost == "" {
			ms = append(ms, isolate.Measurement{Fabric: t.from.fabric, Rail: t.from.port.Rail, From: t.from.node.Name, To: t.to.node.Name, FromLeaf: t.fromLeaf, ToLeaf: t.toLeaf, Bad: t.bad()})
		}
	}
	return ms
}

// counters reads the counters of every port that is tested.
func (p *pairTest) counters(ctx context.Context, ends map[string][]end) map[string]portCounters {
	return countersOf(ctx, p.nodes, slices.Concat(slices.Collect(maps.Values(ends))...))
}
