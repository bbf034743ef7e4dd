// SPDX-License-Identifier: Apache-2.0

package validate_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/result"
)

func line(n int) hcl.Range {
	return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: n, Column: 3}}
}

func floor(text string) *unit.Quantity {
	q, err := unit.ParseAny(text)
	if err != nil {
		panic(err)
	}
	return &q
}

// site has n nodes with the given number of rails on one RoCE fabric.
func site(n, rails int) *inventory.Inventory {
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "rail"}, Rails: rails, CIDR: netip.MustParsePrefix("10.77.16.0/20")}
	boot := &inventory.Network{Name: "boot", CIDR: netip.MustParsePrefix("10.77.0.0/24")}
	v := &inventory.Validation{Name: "lab", Decl: line(40), Pair: &inventory.PairTest{Engine: "perftest", Size: 64 << 10, Decl: line(42)},
		AllReduce: &inventory.CollectiveTest{Engine: "mpi", Scope: []string{"all"}, Sizes: []unit.Bytes{4 << 10, 1 << 20}, Decl: line(46)},
		Limits: []inventory.MeasureLimit{{Name: "all_reduce.busbw", AtLeast: floor("1MB/s"), Decl: line(54)},
			{Name: "rdma.write_bw", AtLeast: floor("3MB/s"), Decl: line(51)}}}
	hw := &inventory.Hardware{Name: "lab", NICs: []inventory.NIC{{Name: "rail", Fabric: f}}}
	for r := range rails {
		hw.NICs[0].Ports = append(hw.NICs[0].Ports, inventory.NICPort{Rail: r, PCI: fmt.Sprintf("0000:00:%02x.0", 4+r)})
	}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}
	for i := range n {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Address: netip.AddrFrom4([4]byte{10, 77, 0, byte(11 + i)}),
			BootNetwork: boot, Hardware: hw, Validation: v, Decl: line(60)})
	}
	slices.SortFunc(inv.Nodes, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	return inv
}

// world is nodes whose rails carry traffic as the test says.
type world struct {
	onnodetest.Nodes
	inv *inventory.Inventory
	// speed is the rate of one transfer in MiB/s, for its tryth measurement; 0
	// fails it. The default is 12.
	speed func(from, to string, rail, try int) float64
	// reduce is what mpirun over these nodes answers; the default is good.
	reduce func(nodes []string) onnode.Output
	gone   string  // a node that does not answer
	gather float64 // GB/s that all_gather_perf shows
	stats  func(node string, after bool) string

	mu        sync.Mutex
	listening map[string]chan struct{} // address:port of a server
	tries     map[string]int
	stated    map[string]bool
	loaded    map[string]int // nodes under load now, by pair
	overload  []string
}

func newWorld(inv *inventory.Inventory) *world {
	w := &world{inv: inv, listening: map[string]chan struct{}{}, tries: map[string]int{}, stated: map[string]bool{}, loaded: map[string]int{}}
	w.Rules = []onnodetest.Rule{w.answer}
	return w
}

func (w *world) answer(ctx context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
	switch {
	case c.Node == w.gone:
		return onnode.Output{}, errkind.New(errkind.Unreachable, "dial: no route to host"), true
	case slices.Contains(c.Argv, "ib_write_bw"):
		out, err := w.writeBW(ctx, c)
		return out, err, true
	case slices.Contains(c.Argv, "mpirun"):
		return w.mpirun(c), nil, true
	case strings.Contains(c.Line(), "carrier_changes"):
		w.mu.Lock()
		defer w.mu.Unlock()
		after := w.stated[c.Node]
		w.stated[c.Node] = true
		if w.stats == nil {
			return onnode.Output{Stdout: []byte("speed:-1\ncarrier_changes:2\n")}, nil, true
		}
		return onnode.Output{Stdout: []byte(w.stats(c.Node, after))}, nil, true
	case c.Argv[0] == "install", c.Argv[0] == "rm", strings.Contains(c.Line(), "authorized_keys2"):
		return onnode.Output{}, nil, true
	}
	return onnode.Output{}, nil, false
}

func option(argv []string, name string) string { return argv[slices.Index(argv, name)+1] }

// hosts are the addresses of a run's members, from the file that it names.
func (w *world) hosts(c onnodetest.Call) (list []string) {
	b, _ := w.File(c.Node, option(c.Argv, "--hostfile"))
	for line := range strings.Lines(string(b)) {
		host, _, _ := strings.Cut(line, " ")
		list = append(list, host)
	}
	return list
}

func (w *world) byAddress(a string) string {
	for _, n := range w.inv.Nodes {
		if n.Address.String() == a {
			return n.Name
		}
	}
	return ""
}

// writeBW is both sides of ib_write_bw.
func (w *world) writeBW(ctx context.Context, c onnodetest.Call) (onnode.Output, error) {
	port := option(c.Argv, "-p")
	last := c.Argv[len(c.Argv)-1]
	if last == "-F" {
		ch := make(chan struct{})
		w.mu.Lock()
		w.listening[c.Node+":"+port] = ch
		w.mu.Unlock()
		select {
		case <-ch:
			return onnode.Output{Stdout: []byte("server done\n")}, nil
		case <-ctx.Done():
			return onnode.Output{}, ctx.Err()
		}
	}
	to := w.byAddress(last)
	w.mu.Lock()
	for wait := 0; w.listening[to+":"+port] == nil && wait < 5; wait++ {
		w.mu.Unlock()
		time.Sleep(time.Millisecond)
		w.mu.Lock()
	}
	ch := w.listening[to+":"+port]
	if ch == nil {
		w.mu.Unlock()
		return onnode.Output{Exit: 1, Stderr: []byte("Couldn't connect to " + last + ":" + port + "\n")}, nil
	}
	delete(w.listening, to+":"+port)
	var rail int
	fmt.Sscanf(option(c.Argv, "-d"), "rxe%d", &rail)
	key := fmt.Sprintf("%s>%s/%d", c.Node, to, rail)
	w.tries[key]++
	try := w.tries[key]
	w.load(c.Node, to, 1)
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.load(c.Node, to, -1)
		w.mu.Unlock()
	}()
	close(ch)
	rate := 12.0
	if w.speed != nil {
		rate = w.speed(c.Node, to, rail, try)
	}
	if rate == 0 {
		return onnode.Output{Exit: 1, Stdout: []byte(" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n")}, nil
	}
	return onnode.Output{Stdout: fmt.Appendf(nil, " Link type : Ethernet\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 65536      200   0.00    %.2f   0.000\n", rate)}, nil
}

// load notes which pair loads a node, and whether two pairs do. w.mu is held.
func (w *world) load(a, b string, by int) {
	if a == b {
		return
	}
	pair := min(a, b) + "-" + max(a, b)
	w.loaded[pair] += by
	for other, n := range w.loaded {
		if n > 0 && other != pair && w.loaded[pair] > 0 && (strings.Contains(other+"-", a+"-") || strings.HasSuffix(other, "-"+b) || strings.HasPrefix(other, b+"-") || strings.HasSuffix(other, "-"+a)) {
			w.overload = append(w.overload, pair+" with "+other)
		}
	}
}

func reduced(nodes []string, usAt1MiB float64, wrong ...int) string {
	n := len(nodes)
	for len(wrong) < n {
		wrong = append(wrong, 0)
	}
	sum := 0
	by := make([]string, n)
	for i := range n {
		sum += wrong[i]
		by[i] = fmt.Sprint(wrong[i])
	}
	text := fmt.Sprintf(`{"ranks": %d, "hosts": ["%s"], "mpi": "Open MPI v4.1.4"}`+"\n", n, strings.Join(nodes, `", "`))
	for _, size := range []float64{4096, 1 << 20} {
		us := usAt1MiB * size / (1 << 20)
		alg := size / us * 1e6
		text += fmt.Sprintf(`{"size": %.0f, "ranks": %d, "iterations": 10, "time_us": {"min": 1, "avg": %g, "max": 1e9}, "algbw": %g, "busbw": %g, "wrong": %d, "wrong_by_rank": [%s]}`+"\n",
			size, n, us, alg, alg*2*float64(n-1)/float64(n), sum, strings.Join(by, ","))
	}
	return text
}

func (w *world) mpirun(c onnodetest.Call) onnode.Output {
	var nodes []string
	for _, h := range w.hosts(c) {
		nodes = append(nodes, w.byAddress(h))
	}
	if w.reduce != nil {
		return w.reduce(nodes)
	}
	return onnode.Output{Stdout: []byte(reduced(nodes, 50_000))}
}

// newRun has learned what earlier stages learn of every node, and has all as
// members.
func newRun(t *testing.T, inv *inventory.Inventory) *onnodetest.Run {
	t.Helper()
	run := onnodetest.NewRun()
	for _, n := range inv.Nodes {
		me := subject.OfNode(n.Name)
		run.Subjects = append(run.Subjects, me)
		var ports []fabric.Port
		for r := range inv.Fabrics[0].Rails {
			ports = append(ports, fabric.Port{Rail: r, Netdev: fmt.Sprintf("rail%d", r), Device: fmt.Sprintf("rxe%d", r), GIDIndex: 1,
				Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 77, byte(16 + r), n.Address.As4()[3]}), 24)})
		}
		a, err := fabric.Ports("rail").New(me, ports, "")
		if err != nil {
			t.Fatal(err)
		}
		b, err := fact.Name[string]("ssh.host_key").New(me, "ssh-ed25519 AAAA"+n.Name, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := run.Learn(t.Context(), a, b); err != nil {
			t.Fatal(err)
		}
	}
	return run
}

func steps(t *testing.T, inv *inventory.Inventory) map[plan.StepID]plan.Step {
	t.Helper()
	list, diags := validate.New(inv, nil).Plan(onnodetest.NewRun())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	out := map[plan.StepID]plan.Step{}
	for _, s := range list {
		out[s.ID] = s
	}
	return out
}

func report(t *testing.T, run *onnodetest.Run, name fact.Name[result.Report], set string) result.Report {
	t.Helper()
	f, ok := run.Fact(name.Of(result.OfGroup(set)))
	if !ok {
		t.Fatalf("no %s", name)
	}
	r, err := name.Get(f)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
