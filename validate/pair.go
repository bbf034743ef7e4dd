package validate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/onnode"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/subject"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/perftest"
)

const (
	defaultSize     = 1 << 20 // bytes of a message, when the site does not say
	measureSeconds  = 3       // of a link at its floor
	fewestWrites    = 200
	mostWrites      = 200_000
	writesWithout   = 1000 // when there is no floor
	transferGrace   = 30 * time.Second
	limitWithout    = 2 * time.Minute
	connectTries    = 40
	connectPause    = 500 * time.Millisecond
	pairsAtOnce     = 64
	firstPort       = 20000
	portsInRotation = 10000
)

func size(p *inventory.PairTest) unit.Bytes {
	if p.Size <= 0 {
		return defaultSize
	}
	return p.Size
}

// writes is how many messages a transfer has: as many as keep a link at its
// floor busy for measureSeconds.
func (g group) writes() int {
	floor, _ := g.floor(WriteBandwidth)
	if floor <= 0 {
		return writesWithout
	}
	return min(max(int(floor*measureSeconds/float64(size(g.v.Pair))), fewestWrites), mostWrites)
}

// transferLimit ends a transfer that hangs: ten times what it takes at the floor.
func (g group) transferLimit() time.Duration {
	floor, _ := g.floor(WriteBandwidth)
	if floor <= 0 {
		return limitWithout
	}
	seconds := float64(g.writes()) * float64(size(g.v.Pair)) / floor
	return time.Duration(10*seconds)*time.Second + transferGrace
}

// end is one node's port on a rail.
type end struct {
	node *inventory.Node
	port fabric.Port
}

// transfer is one measurement: from writes into the memory of to.
type transfer struct {
	from, to end
	bw       float64 // bytes per second; 0 when it failed
	why      string  // of a failure
	tries    int
	text     []byte // what both sides printed
	lost     string // node that could not be reached over the boot network
}

func (t *transfer) rail() int { return t.from.port.Rail }

func (t *transfer) name() string {
	return fmt.Sprintf("%s -> %s rail %d", t.from.node.Name, t.to.node.Name, t.rail())
}

// pairTest is one run of the pair test.
type pairTest struct {
	nodes  onnode.Nodes
	g      group
	st     plan.Step
	rec    stage.Run
	nodeOf []*inventory.Node
	floor  float64
	ports  atomic.Int32 // rises, so that a server left over is never met

	mu   sync.Mutex // guards what follows
	done []*transfer
}

func newPairTest(s *Stage, g group, run stage.Run, st plan.Step) *pairTest {
	floor, _ := g.floor(WriteBandwidth)
	return &pairTest{nodes: s.nodes, g: g, st: st, rec: run, nodeOf: members(s.inv, run), floor: floor}
}

// run does the test within one journaled effect, judges it and names suspects.
func (p *pairTest) run(ctx context.Context) error {
	ends, skipped, err := p.ends()
	if err != nil {
		return err
	}
	before := p.counters(ctx, ends)
	err = p.rec.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/run-%d", p.st.ID, p.rec.Clock().Now().UnixNano()),
		Kind: plan.Load, Repeatable: true,
		Does: fmt.Sprintf("load the rails between %d nodes with RDMA writes", len(p.nodeOf)),
		Do:   func(ctx context.Context) error { return p.measure(ctx, ends) },
	})
	if err != nil {
		return err
	}
	v := verdict{p: p, before: before, after: p.counters(ctx, ends), ends: ends}
	rep, err := v.judge(ctx)
	if err != nil {
		return err
	}
	rep.NotJudged = append(rep.NotJudged, skipped...)
	return learn(ctx, p.rec, PairReport, OfGroup(p.g.set), rep)
}

// ends returns the ports of every member by fabric and rail, in the order of the
// members, and says which members have none.
func (p *pairTest) ends() (map[string][]end, []string, error) {
	ends := map[string][]end{}
	var skipped []string
	for _, n := range p.nodeOf {
		found := false
		for _, f := range fabric.Of(n) {
			ports, ok := read(p.rec, fabric.Ports(f.Name), subject.OfNode(n.Name))
			if !ok {
				continue
			}
			for _, port := range ports {
				found = true
				key := fmt.Sprintf("%s/%d", f.Name, port.Rail)
				ends[key] = append(ends[key], end{n, port})
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

// measure runs the rounds and then every bad transfer once more, alone.
func (p *pairTest) measure(ctx context.Context, ends map[string][]end) error {
	p.mu.Lock()
	p.done = nil
	p.mu.Unlock()
	rounds := tournament(len(p.nodeOf))
	for i, pairs := range rounds {
		p.rec.Emit(event.Event{Type: event.StepProgress, Text: fmt.Sprintf("round %d of %d: %d pairs", i+1, len(rounds), len(pairs)), Done: int64(i), Total: int64(len(rounds))})
		if err := p.round(ctx, pairs, ends); err != nil {
			return err
		}
	}
	for _, t := range p.done {
		if p.bad(t) && t.lost == "" {
			p.rec.Emit(event.Event{Type: event.StepProgress, Text: "once more, alone: " + t.name()})
			p.transfer(ctx, t)
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
		}
	}
	return nil
}

func (p *pairTest) bad(t *transfer) bool { return t.bw <= 0 || t.bw < p.floor }

// round runs its pairs side by side; a pair runs all its rails at once, one way
// and then the other.
func (p *pairTest) round(ctx context.Context, pairs [][2]int, ends map[string][]end) error {
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
		return cmp.Or(cmp.Compare(a.rail(), b.rail()), cmp.Compare(a.from.node.Name, b.from.node.Name), cmp.Compare(a.to.node.Name, b.to.node.Name))
	})
	return nil
}

func (p *pairTest) oneWay(ctx context.Context, from, to *inventory.Node, ends map[string][]end) {
	var wg sync.WaitGroup
	for _, list := range ends {
		i := slices.IndexFunc(list, func(e end) bool { return e.node == from })
		j := slices.IndexFunc(list, func(e end) bool { return e.node == to })
		if i < 0 || j < 0 || ctx.Err() != nil {
			continue
		}
		wg.Go(func() {
			t := &transfer{from: list[i], to: list[j]}
			p.transfer(ctx, t)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.done = append(p.done, t)
		})
	}
	wg.Wait()
}

// transfer runs ib_write_bw on both ends and fills in t; on a second try the
// better answer stays. The two sides find each other over the boot network, so
// that what fails is the rail.
func (p *pairTest) transfer(ctx context.Context, t *transfer) {
	limit := p.g.transferLimit()
	w := perftest.WriteBW{Size: int64(size(p.g.v.Pair)), Iterations: p.g.writes(), Port: firstPort + int(p.ports.Add(1))%portsInRotation}
	ctx, cancel := context.WithTimeout(ctx, limit+transferGrace)
	defer cancel()
	server := make(chan answer, 1)
	go func() {
		out, err := p.nodes.Run(ctx, t.to.node.Name, onnode.Command{Argv: bounded(limit, side(w, t.to.port).Argv(""))})
		server <- answer{out, err}
	}()
	got := p.client(ctx, t, side(w, t.from.port), limit, server)
	cancel()
	s := <-server
	bw, why := outcome(got, s)
	t.tries++
	t.text = bytes.Join([][]byte{t.text, fmt.Appendf(nil, "== %s, try %d, client on %s", t.name(), t.tries, t.from.node.Name), got.out.Stdout, got.out.Stderr,
		[]byte("-- server on " + t.to.node.Name), s.out.Stdout, s.out.Stderr}, []byte("\n"))
	if bw > t.bw || t.tries == 1 {
		t.bw, t.why = bw, why
	}
	t.lost = lost(t, got.err, s.err)
}

// answer is how a command on a node ended.
type answer struct {
	out onnode.Output
	err error
}

func side(w perftest.WriteBW, port fabric.Port) perftest.WriteBW {
	w.Device, w.GIDIndex = port.Device, port.GIDIndex
	return w
}

// bounded ends the command on the node itself, also when the connection is cut.
func bounded(limit time.Duration, argv []string) []string {
	return append([]string{"timeout", "-k", "5", fmt.Sprint(int(limit.Seconds()))}, argv...)
}

// client runs the client until the server listens. A server that has ended is
// not waited for.
func (p *pairTest) client(ctx context.Context, t *transfer, w perftest.WriteBW, limit time.Duration, server chan answer) answer {
	argv := bounded(limit, w.Argv(t.to.node.Address.String()))
	for try := 1; ; try++ {
		out, err := p.nodes.Run(ctx, t.from.node.Name, onnode.Command{Argv: argv})
		a := answer{out, err}
		if !refused(a) || try == connectTries {
			return a
		}
		select {
		case s := <-server:
			server <- s
			return a
		default:
		}
		if err := p.rec.Clock().Sleep(ctx, connectPause); err != nil {
			return answer{out, err}
		}
	}
}

// outcome reads what the client said, and the server where the client says only
// that there was none.
func outcome(client, server answer) (float64, string) {
	r, err := perftest.Parse(client.out.Stdout)
	row, ok := r.Largest()
	switch exit := client.out.Exit; {
	case client.err != nil:
		return 0, client.err.Error()
	case exit == 124 || exit == 137: // timeout(1)
		return 0, "it hung and was ended"
	case exit != 0 && refused(client) && server.err != nil && !errors.Is(server.err, context.Canceled):
		return 0, "there was no server: " + server.err.Error()
	case exit != 0 && refused(client):
		return 0, fmt.Sprintf("there was no server: it ended with status %d%s", server.out.Exit, complaint(server))
	case exit != 0:
		return 0, fmt.Sprintf("ib_write_bw ended with status %d%s", exit, complaint(client))
	case err != nil:
		return 0, err.Error()
	case !ok || row.Average <= 0:
		return 0, "ib_write_bw measured nothing"
	}
	return row.Average, ""
}

// refused reports whether a client found no server; the words are perftest's.
func refused(a answer) bool {
	return a.err == nil && a.out.Exit != 0 && bytes.Contains(append(slices.Clone(a.out.Stderr), a.out.Stdout...), []byte("Couldn't connect to"))
}

// complaint returns ": " and the first complaint of a program, or nothing.
func complaint(a answer) string {
	r, _ := perftest.Parse(append(append(slices.Clone(a.out.Stderr), '\n'), a.out.Stdout...))
	if len(r.Notes) == 0 {
		return ""
	}
	return ": " + r.Notes[0]
}

// lost names the node that could not be reached at all, whatever its rail does.
func lost(t *transfer, client, server error) string {
	unreachable := func(err error) bool {
		return err != nil && !errors.Is(err, context.Canceled) && errkind.Of(err) == errkind.Unreachable
	}
	switch {
	case unreachable(client):
		return t.from.node.Name
	case unreachable(server):
		return t.to.node.Name
	}
	return ""
}

// measurements turns transfers into what the decoder reads.
func (p *pairTest) measurements() []isolate.Measurement {
	var ms []isolate.Measurement
	for _, t := range p.done {
		if t.lost == "" {
			ms = append(ms, isolate.Measurement{Rail: t.rail(), From: t.from.node.Name, To: t.to.node.Name, Bad: p.bad(t)})
		}
	}
	return ms
}
