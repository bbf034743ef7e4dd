// SPDX-License-Identifier: Apache-2.0

// Package transfer runs RDMA writes from one node into the memory of another, and says
// how many good hardware carries.
package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/floor"
	"github.com/ironrail/ironrail/validate/isolate"
	"github.com/ironrail/ironrail/validate/perftest"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/target"
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
	serverPatience  = 5 * time.Second
	firstPort       = 20000
	portsInRotation = 10000
)

// MessageSize returns that of a message.
func MessageSize(p *inventory.PairTest) unit.Bytes {
	if p.Size <= 0 {
		return defaultSize
	}
	return p.Size
}

// CountWrites returns how many messages a transfer has: as many as keep a link at its
// floor busy for measureSeconds.
func CountWrites(p *inventory.PairTest, floor float64) int {
	if floor <= 0 {
		return writesWithout
	}
	return min(max(int(floor*measureSeconds/float64(MessageSize(p))), fewestWrites), mostWrites)
}

// shortest is the least of what a transfer that is expected to be slow writes, as a share of
// what one at its floor does: half a second, where it turns out to be good.
const shortest = 1.0 / 6

// countWrites returns how many messages this transfer has: as many as keep it busy for
// measureSeconds at the pace that is expected of it.
func (t *Transfer) countWrites(p *inventory.PairTest) int {
	floor := t.Need().Least
	if floor > 0 && t.Pace > 0 && t.Pace < floor {
		floor = max(t.Pace, shortest*floor)
	}
	return CountWrites(p, floor)
}

// transferLimit ends a transfer that hangs: ten times what it takes at the floor.
func transferLimit(p *inventory.PairTest, floor float64) time.Duration {
	if floor <= 0 {
		return limitWithout
	}
	seconds := float64(CountWrites(p, floor)) * float64(MessageSize(p)) / floor
	return time.Duration(10*seconds)*time.Second + transferGrace
}

// LongestTransfer is the longest that a transfer over any fabric may take.
func LongestTransfer(g target.Group) (most time.Duration) {
	seen := map[*inventory.Hardware]bool{}
	for _, n := range g.Nodes {
		if seen[n.Hardware] {
			continue
		}
		seen[n.Hardware] = true
		for _, f := range fabric.Of(n) {
			most = max(most, transferLimit(g.Validation.Pair, WriteNeed(g, n, f).Least))
		}
	}
	return max(most, transferGrace)
}

// WriteNeed is what RDMA writes have to carry on the rails of a node on a fabric: the
// site's limit, or what their links carry where it gives none. A limit is meant for
// the fabric of the GPUs: of links elsewhere no more is asked than they can do.
func WriteNeed(g target.Group, n *inventory.Node, f *inventory.Fabric) rail.Need {
	given, limit := g.Floor(result.WriteBandwidth)
	least, source := floor.OfRail(n.Hardware, f)
	if least > 0 && (given == 0 || given > least && floor.MainFabric(n.Hardware) != f) {
		return rail.Need{Least: least, Limit: fmt.Sprintf(">= %s (%s)", unit.ByteRate(least), source)}
	}
	return rail.Need{Least: given, Limit: limit}
}

// Transfer is one measurement: from writes into the memory of to.
type Transfer struct {
	From, To rail.End
	Bw       float64 // bytes per second; 0 when it failed
	Why      string  // of a failure
	Tries    int
	Text     []byte // what both sides printed; not kept of a good one
	Ref      string // where that is stored
	FromLeaf string // switch that the rail of the sender ends on; "": not known
	ToLeaf   string
	Cut      error  // its output could not be read whole
	Lost     string // node that could not be reached over the boot network

	// Pace is what it is expected to carry, bytes per second: a slow one writes less, so that
	// it takes no longer than others. 0: not known.
	Pace   float64
	Writes int // messages of the last try

	// Usual is what its like carry, set once enough of them were measured.
	Usual rail.Need
}

func (t *Transfer) Name() string {
	return fmt.Sprintf("%s -> %s %s", t.From.Node.Name, t.To.Node.Name, t.From.Rail())
}

// Measurement is the transfer as the decoder reads it.
func (t *Transfer) Measurement() isolate.Measurement {
	return isolate.Measurement{Fabric: t.From.Fabric, Rail: t.From.Port.Rail, From: t.From.Node.Name, To: t.To.Node.Name, FromLeaf: t.FromLeaf, ToLeaf: t.ToLeaf, Bad: t.Bad()}
}

// Outcome is what it carried, or why it failed, in words.
func (t *Transfer) Outcome() string {
	if t.Bw <= 0 {
		return t.Why
	}
	return result.FormatRate(t.Bw)
}

// Need is what the weaker of its two ends has to carry, or what its like carry, if that is
// more.
func (t *Transfer) Need() rail.Need {
	need := t.From.Need
	if t.To.Need.Least < need.Least {
		need = t.To.Need
	}
	if t.Usual.Least > need.Least {
		return t.Usual
	}
	return need
}

// Runner runs transfers, any number of them side by side.
type Runner struct {
	Nodes onnode.Nodes
	Rec   stage.Run
	Test  *inventory.PairTest
	ports atomic.Int32 // rises, so that a server left over is never met
}

// Run runs ib_write_bw on both ends and fills in t; on a second try the
// better answer stays. The two sides find each other over the boot network, so
// that what fails is the rail.
func (p *Runner) Run(ctx context.Context, t *Transfer) {
	floor := t.Need().Least
	limit := transferLimit(p.Test, floor)
	t.Writes = t.countWrites(p.Test)
	w := perftest.WriteBW{Size: int64(MessageSize(p.Test)), Iterations: t.Writes, Port: firstPort + int(p.ports.Add(1))%portsInRotation}
	ctx, cancel := context.WithTimeout(ctx, limit+transferGrace)
	defer cancel()
	server := make(chan answer, 1)
	go func() {
		out, err := p.Nodes.Run(ctx, t.To.Node.Name, onnode.Command{Argv: boundCommand(limit, withPort(w, t.To.Port).Argv(""))})
		server <- answer{out, err}
	}()
	got := p.client(ctx, t, withPort(w, t.From.Port), limit, server)
	if got.err != nil || got.out.Exit != 0 {
		cancel() // nobody speaks to the server any more
	}
	s := lastAnswer(server, cancel)
	bw, why := readOutcome(got, s)
	t.Tries++
	t.Text = bytes.Join([][]byte{t.Text, fmt.Appendf(nil, "== %s, try %d, client on %s", t.Name(), t.Tries, t.From.Node.Name), got.out.Stdout, got.out.Stderr,
		[]byte("-- server on " + t.To.Node.Name), s.out.Stdout, s.out.Stderr}, []byte("\n"))
	if bw > t.Bw || t.Tries == 1 {
		t.Bw, t.Why = bw, why
	}
	t.Lost = lostNode(t, got.err, s.err)
	if err := errors.Join(got.err, s.err); errors.Is(err, onnode.ErrCut) {
		t.Cut = err
	}
}

// lastAnswer returns how the server ended. After its client it ends by itself; one
// that does not is stopped.
func lastAnswer(server chan answer, stop context.CancelFunc) answer {
	patience := time.NewTimer(serverPatience)
	defer patience.Stop()
	select {
	case s := <-server:
		return s
	case <-patience.C:
	}
	stop()
	return <-server
}

// answer is how a command on a node ended.
type answer struct {
	out onnode.Output
	err error
}

func withPort(w perftest.WriteBW, port fabric.Port) perftest.WriteBW {
	w.Device, w.GIDIndex = port.Device, port.GIDIndex
	return w
}

// boundCommand ends the command on the node itself, also when the connection is cut.
func boundCommand(limit time.Duration, argv []string) []string {
	return append([]string{"timeout", "-k", "5", fmt.Sprint(int(limit.Seconds()))}, argv...)
}

// client runs the client until the server listens. A server that has ended is
// not waited for.
func (p *Runner) client(ctx context.Context, t *Transfer, w perftest.WriteBW, limit time.Duration, server chan answer) answer {
	argv := boundCommand(limit, w.Argv(t.To.Node.Address.String()))
	for try := 1; ; try++ {
		out, err := p.Nodes.Run(ctx, t.From.Node.Name, onnode.Command{Argv: argv})
		a := answer{out, err}
		if !isRefused(a) || try == connectTries {
			return a
		}
		select {
		case s := <-server:
			server <- s
			return a
		default:
		}
		if err := p.Rec.Clock().Sleep(ctx, connectPause); err != nil {
			return answer{out, err}
		}
	}
}

// readOutcome reads what the client said, and the server where the client says only
// that there was none.
func readOutcome(client, server answer) (float64, string) {
	r, err := perftest.Parse(client.out.Stdout)
	row, ok := r.Largest()
	switch exit := client.out.Exit; {
	case client.err != nil:
		return 0, client.err.Error()
	case exit == 124 || exit == 137: // timeout(1)
		return 0, "it hung and was ended"
	case exit != 0 && isRefused(client) && server.err != nil && !errors.Is(server.err, context.Canceled):
		return 0, "there was no server: " + server.err.Error()
	case exit != 0 && isRefused(client):
		return 0, fmt.Sprintf("there was no server: it ended with status %d%s", server.out.Exit, firstComplaint(server))
	case exit != 0:
		return 0, fmt.Sprintf("ib_write_bw ended with status %d%s", exit, firstComplaint(client))
	case err != nil:
		return 0, err.Error()
	case !ok || row.Average <= 0:
		return 0, "ib_write_bw measured nothing"
	}
	return row.Average, ""
}

// isRefused reports whether a client found no server; the words are perftest's.
func isRefused(a answer) bool {
	return a.err == nil && a.out.Exit != 0 && bytes.Contains(append(slices.Clone(a.out.Stderr), a.out.Stdout...), []byte("Couldn't connect to"))
}

// firstComplaint returns ": " and the first complaint of a program, or nothing.
func firstComplaint(a answer) string {
	r, _ := perftest.Parse(append(append(slices.Clone(a.out.Stderr), '\n'), a.out.Stdout...))
	if len(r.Notes) == 0 {
		return ""
	}
	return ": " + r.Notes[0]
}

// lostNode names the node that could not be reached at all, whatever its rail does.
func lostNode(t *Transfer, client, server error) string {
	unreachable := func(err error) bool {
		return err != nil && !errors.Is(err, context.Canceled) && errkind.Of(err) == errkind.Unreachable
	}
	switch {
	case unreachable(client):
		return t.From.Node.Name
	case unreachable(server):
		return t.To.Node.Name
	}
	return ""
}

// Bad reports whether a transfer failed or carries less than it has to.
func (t *Transfer) Bad() bool { return t.Bw <= 0 || t.Bw < t.Need().Least }
