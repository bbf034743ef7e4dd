// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/rail"
	"github.com/ironrail/ironrail/validate/rail/railtest"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/transfer"
)

// Bounds of the test of 1,024 nodes: rounds, those once more included, and time.
const (
	mostRounds = 7
	mostTime   = 300 * time.Second
)

const perLeaf = 32

// fleet is nodes that run ib_write_bw, of which each takes what the real one does. No node
// runs more commands at once than sshd lets it.
type fleet struct {
	at   map[string]int // by address
	rate func(from, to, rail, try int) float64

	mu      sync.Mutex
	slots   map[string]chan struct{}
	servers map[string]chan struct{} // by address and TCP port: closed when the client is done
	tries   map[[3]int]int
	running int
	atOnce  int // most commands
	refused int // clients before their server
}

func (f *fleet) Run(ctx context.Context, node string, c onnode.Command) (onnode.Output, error) {
	f.mu.Lock()
	slot := f.slots[node]
	if slot == nil {
		slot = make(chan struct{}, 10)
		f.slots[node] = slot
	}
	f.mu.Unlock()
	slot <- struct{}{}
	defer func() { <-slot }()
	argv := c.Argv
	if argv[0] != "timeout" {
		return onnode.Output{Exit: 127}, nil // no counters
	}
	f.count(1)
	defer f.count(-1)
	port := argv[slices.Index(argv, "-p")+1]
	if server := argv[len(argv)-1]; server != "-F" {
		return f.client(node, server, port, argv), nil
	}
	return f.server(ctx, node, port), nil
}

func (f *fleet) count(by int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running += by
	f.atOnce = max(f.atOnce, f.running)
}

func (f *fleet) server(ctx context.Context, node, port string) onnode.Output {
	time.Sleep(90 * time.Millisecond)
	done := make(chan struct{})
	f.mu.Lock()
	f.servers[node+":"+port] = done
	f.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
	return onnode.Output{}
}

func (f *fleet) client(node, server, port string, argv []string) onnode.Output {
	time.Sleep(140 * time.Millisecond)
	to := f.at[server]
	at := fmt.Sprintf("n%04d:%s", to, port)
	f.mu.Lock()
	done := f.servers[at]
	if done == nil {
		f.refused++
	}
	f.mu.Unlock()
	if done == nil {
		time.Sleep(500 * time.Millisecond) // the pause is the caller's, whose clock does not wait
		return onnode.Output{Exit: 1, Stderr: []byte("Couldn't connect to " + server)}
	}
	var from, port8 int
	_, _ = fmt.Sscanf(node, "n%d", &from)
	_, _ = fmt.Sscanf(argv[slices.Index(argv, "-d")+1], "mlx5_%d", &port8)
	f.mu.Lock()
	flow := [3]int{from, to, port8}
	f.tries[flow]++
	rate := f.rate(from, to, port8, f.tries[flow])
	f.mu.Unlock()
	size, writes := 0.0, 0.0
	_, _ = fmt.Sscan(argv[slices.Index(argv, "-s")+1], &size)
	_, _ = fmt.Sscan(argv[slices.Index(argv, "-n")+1], &writes)
	time.Sleep(time.Second + time.Duration(size*writes/(rate*(1<<20))*float64(time.Second)))
	close(done)
	return onnode.Output{Stdout: fmt.Appendf(nil, " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 1048576    139810           %.2f            %.2f\t\t   0.046\n", rate, rate)}
}

// siteOf is so many nodes on leaves of 32 with eight rails each, and its test.
func siteOf(t *testing.T, nodes int, rate func(from, to, rail, try int) float64) (*pairTest, *fleet) {
	list, run := railtest.Site(t, nodes)
	f := &fleet{at: map[string]int{}, rate: rate, slots: map[string]chan struct{}{}, servers: map[string]chan struct{}{}, tries: map[[3]int]int{}}
	nic := &list[0].Hardware.NICs[0]
	nic.Speed = 400e9
	for r := range 8 {
		nic.Ports = append(nic.Ports, inventory.NICPort{Rail: r})
	}
	inv := &inventory.Inventory{Nodes: list}
	for i, n := range list {
		n.Address = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		f.at[n.Address.String()] = i
		for r := range 8 {
			leaf := &inventory.Switch{Name: fmt.Sprintf("leaf-%d-%d", i/perLeaf, r)}
			inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Node: n, NIC: nic, Port: r}, To: inventory.CableEnd{Switch: leaf, Port: i%perLeaf + 1}})
		}
	}
	p := &pairTest{Runner: &transfer.Runner{Nodes: f, Rec: run, Test: &inventory.PairTest{}}, nodeOf: list, leaves: rail.LeavesOf(inv), inv: inv,
		g: target.Group{Validation: &inventory.Validation{Pair: &inventory.PairTest{}}}}
	p.rounds = rounds.ByLeaf(p.leavesOfNodes())
	return p, f
}

// countRounds counts rounds of pairs by what was told of them.
func countRounds(events []event.Event) (n int) {
	for _, e := range events {
		if e.Type == event.StepProgress && (strings.HasPrefix(e.Text, "round ") || strings.HasPrefix(e.Text, "once more")) {
			n++
		}
	}
	return n
}

// TestLarge: 1,024 nodes are tested in few rounds, of which each has all of its pairs at
// once, however many of them are bad, and each bad part is named for itself: 14 rails, two
// nodes with all of their rails, one that sends badly, what goes over three leaves, and
// crossings that are slow by chance, once.
func TestLarge(t *testing.T) {
	t.Parallel()
	const nodes, good, slow = 1024, 46_600, 11_700 // MiB/s: a link of 400G, and one with a lane of four
	bad := func(i, rail int) bool { return i%70 == 9 && rail == i%8 || i == 333 || i == 700 }
	badLeaf := func(i, rail int) bool { return i/perLeaf == 5 && rail == 3 || i/perLeaf == 20 && rail < 2 }
	rate := func(from, to, rail, try int) float64 {
		crosses := from/perLeaf != to/perLeaf
		switch {
		case bad(from, rail) || bad(to, rail), from == 512 && rail == 6, crosses && (badLeaf(from, rail) || badLeaf(to, rail)),
			crosses && try == 1 && (from*31+to*17+rail)%40 == 0:
			return slow
		}
		return good * (1 - 0.004*float64((from*7+to*3+rail)%4))
	}
	synctest.Test(t, func(t *testing.T) {
		p, f := siteOf(t, nodes, rate)
		ends, _, err := p.ends()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := p.measure(t.Context(), ends); err != nil {
			t.Fatal(err)
		}
		v := verdict{p: p, ends: ends}
		rep, err := v.evaluate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		took, run := time.Since(began), p.Rec.(*onnodetest.Run)
		n := countRounds(run.Events)
		t.Logf("%d rounds in %s, %d commands at once at most, %d clients before their servers", n, took, f.atOnce, f.refused)
		if n > mostRounds || took > mostTime {
			t.Errorf("%d rounds in %s, want %d in %s at most", n, took, mostRounds, mostTime)
		}
		var want []string
		for i := range nodes {
			switch {
			case i%70 == 9:
				want = append(want, fmt.Sprintf("node/n%04d rail %d", i, i%8))
			case i == 333 || i == 700:
				want = append(want, fmt.Sprintf("node/n%04d all rails", i))
			case i == 512:
				want = append(want, "node/n0512 rail 6, sending")
			}
		}
		out := len(want) // nodes
		want = append(want, "switch/leaf-20-0 uplinks", "switch/leaf-20-1 uplinks", "switch/leaf-5-3 uplinks")
		var got []string
		for _, x := range run.Findings {
			if len(x.Suspects) != 1 {
				t.Errorf("%s", x.Cause)
			}
			got = append(got, x.Suspects[0].Subject.String()+" "+x.Suspects[0].Part)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) || len(rep.Suspects) != out {
			t.Errorf("%d nodes are out; found\n%s\nwant\n%s", len(rep.Suspects), strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}
