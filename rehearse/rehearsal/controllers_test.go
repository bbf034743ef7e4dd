// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"bufio"
	"bytes"
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/peertest/etcdtest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual"
)

// partOf is the variable by which the test binary becomes a controller in a process of its
// own: a part in JSON.
const partOf = "IRONRAIL_TEST_CONTROLLER"

// takeoverLimit is within how much time a second controller owns the state: what an election
// takes, and the longest call to hardware.
const takeoverLimit = 15*time.Second + redfish.DefaultTimeout

// lostExit is the exit code of a controller whose lease has ended.
const lostExit = 11

// controllerPart is one of two controllers of a site. They have the same keys and images.
type controllerPart struct {
	Dir    string // of the site
	Folder string // of its own state
	Nodes  string
	Real   netip.Addr // where the controller's address is on this machine
	State  inventory.StateStore
}

// site loads the site, and puts the controller's address where the part has it.
func (c controllerPart) site(t *testing.T, board *network.Loopback) *inventory.Inventory {
	inv := load(t, c.Dir, map[string]string{"nodes": c.Nodes})
	inv.State = c.State
	board.Move(inv.Controllers[0].Address, c.Real)
	return inv
}

// run owns the state as soon as nobody else does, waits for a line on standard input, and
// then applies the site or continues with what another controller has begun.
func (c controllerPart) run(t *testing.T) error {
	ctx := context.Background()
	board := network.NewSharedLoopback(0)
	inv := c.site(t, board)
	w, err := rehearsal.NewRack(inv, killSeed, clock.NewFast(killSpeed), board) // never opened: it tells the addresses
	if err != nil {
		return err
	}
	site, err := rehearsal.OpenSite(ctx, inv, w, killSeed, c.Dir, false)
	if err != nil {
		return err
	}
	place := onrecord.Place{Folder: c.Folder, Etcd: func() (*etcd.Config, error) { return onrecord.EtcdOf(inv), nil }}
	var o onrecord.Owned
	for {
		o, err = place.Own(ctx, "apply", false, time.Now())
		if _, owned := errors.AsType[onrecord.OwnedError](err); !owned {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	fmt.Println("owner")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	return errors.Join(c.bringUp(ctx, inv, site, o), o.Close())
}

func (c controllerPart) bringUp(ctx context.Context, inv *inventory.Inventory, site *provision.Site, o onrecord.Owned) error {
	p, last, err := state.ReadUnfinishedPlan(ctx, o.Store)
	if err != nil || p == nil && last.ID != "" {
		return err // the other one came to the end
	}
	resume := p != nil
	if p == nil {
		if p, _, err = site.Plan(ctx, o.Store, provision.PlanOptions{Now: time.Now()}); err != nil {
			return err
		}
		p.Lineage = o.Store.Info().Lineage
	}
	run, err := site.Begin(ctx, provision.RunOptions{Plan: p, Store: o.Store, Fence: o.Fence, Bus: event.NewBus(1 << 12), Resume: resume, EraseApproved: len(inv.Nodes)})
	if err != nil {
		return err
	}
	_, err = run.Run(ctx)
	return err
}

// controllerProcess is a controller that runs.
type controllerProcess struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   bytes.Buffer  // its standard error; after ended
	owner chan struct{} // closed when it owns the state
	ended chan struct{}
}

func (c controllerPart) start(ctx context.Context, t *testing.T) *controllerProcess {
	t.Helper()
	text := must(json.Marshal(c))(t)
	p := &controllerProcess{cmd: exec.CommandContext(ctx, os.Args[0], "-test.run=^TestPeerControllersLost$"), owner: make(chan struct{}), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), partOf+"="+string(text))
	p.cmd.Stderr = &p.out
	p.in = must(p.cmd.StdinPipe())(t)
	out := must(p.cmd.StdoutPipe())(t)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	go func() {
		defer close(p.ended)
		for s := bufio.NewScanner(out); s.Scan(); {
			if s.Text() == "owner" {
				close(p.owner)
			}
		}
		_ = p.cmd.Wait()
	}()
	return p
}

// awaitOwner waits until the process owns the state.
func (p *controllerProcess) awaitOwner(t *testing.T) {
	t.Helper()
	select {
	case <-p.owner:
	case <-p.ended:
		t.Fatalf("the controller ended: %s", p.out.Bytes())
	}
}

// begin lets it work.
func (p *controllerProcess) begin(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(p.in, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// await waits for its end with an exit code; -1: it was killed.
func (p *controllerProcess) await(t *testing.T, code int) {
	t.Helper()
	<-p.ended
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("a controller ends with code %d, want %d: %s", got, code, p.out.Bytes())
	}
}

// loss is how the first of two controllers is lost.
type loss struct {
	name  string
	hit   func(*etcdtest.Route, *controllerProcess) error
	after func(*controllerProcess) error // once the second one works; nil: nothing
	code  int                            // of the first one's end
}

var lossKinds = []loss{
	{name: "killed", hit: func(_ *etcdtest.Route, p *controllerProcess) error { return p.cmd.Process.Kill() }, code: -1},
	{name: "stopped", hit: func(_ *etcdtest.Route, p *controllerProcess) error { return p.cmd.Process.Signal(syscall.SIGSTOP) },
		after: func(p *controllerProcess) error { return p.cmd.Process.Signal(syscall.SIGCONT) }, code: lostExit},
	{name: "cut off", hit: func(r *etcdtest.Route, _ *controllerProcess) error { r.Cut(true); return nil }, code: lostExit},
}

// twoControllers brings a site up on real sockets with a controller that is lost once so many
// records are written, and a second one that waits from the beginning and takes over. A zero
// loss: the first one comes to the end. It returns how it ended, how many records there are
// then, and the time until the second one was the owner.
func twoControllers(t *testing.T, cluster *etcdtest.Cluster, slot int, nodes string, l loss, after uint64) (e ending, last uint64, takeover time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), killLimit)
	defer cancel()
	dir := t.TempDir()
	apart(t, dir, slot)
	board := network.NewSharedLoopback(0)
	prefix := "/ironrail/" + crand.Text()
	ways := [2]*etcdtest.Route{cluster.Route(t), cluster.Route(t)}
	var parts [2]controllerPart
	for i := range parts {
		parts[i] = controllerPart{Dir: dir, Folder: filepath.Join(dir, fmt.Sprint("controller", i+1)), Nodes: nodes,
			Real:  netip.AddrFrom4([4]byte{127, byte(91 + 2*slot), 255, byte(101 + i)}),
			State: inventory.StateStore{Kind: "etcd", Endpoints: ways[i].Endpoints, Prefix: prefix, Authority: cluster.CA, Certificate: cluster.Cert, Key: cluster.Key}}
	}
	inv := parts[0].site(t, board)
	w := must(rehearsal.NewRack(inv, killSeed, clock.NewFast(killSpeed), board))(t)
	must(rehearsal.OpenSite(ctx, inv, w, killSeed, dir, true))(t)
	defer runRack(ctx, t, w)()
	a := parts[0].start(ctx, t)
	a.awaitOwner(t)
	b := parts[1].start(ctx, t)
	a.begin(t)
	if l.hit == nil {
		a.await(t, 0)
	} else {
		inv.State = parts[1].State
		awaitRecord(ctx, t, *onrecord.EtcdOf(inv), after)
		hit := time.Now()
		if err := l.hit(ways[0], a); err != nil {
			t.Fatal(err)
		}
		b.awaitOwner(t)
		takeover = time.Since(hit)
	}
	b.awaitOwner(t)
	board.Move(inv.Controllers[0].Address, parts[1].Real)
	b.begin(t)
	if l.after != nil {
		if err := l.after(a); err != nil {
			t.Fatal(err)
		}
	}
	if l.hit != nil {
		a.await(t, l.code)
	}
	b.await(t, 0)
	place := onrecord.Place{Folder: parts[1].Folder, Etcd: func() (*etcd.Config, error) { inv.State = parts[1].State; return onrecord.EtcdOf(inv), nil }}
	r, done, err := place.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	e.look(t, inv, w, r)
	err = r.Read(ctx, 0, func(x state.Record) error { last = x.Seq; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return e, last, takeover
}

// awaitRecord waits until the state in etcd has so many records.
func awaitRecord(ctx context.Context, t *testing.T, c etcd.Config, seq uint64) {
	t.Helper()
	s := must(etcd.OpenExisting(ctx, c))(t)
	defer s.Close()
	for found := false; !found; time.Sleep(20 * time.Millisecond) {
		err := s.Read(ctx, seq, func(state.Record) error { found = true; return io.EOF })
		if err != nil && err != io.EOF {
			t.Fatal(err)
		}
	}
}

// runRack plants the faults of the crash tests and runs the hardware until the function that
// it returns is called.
func runRack(ctx context.Context, t *testing.T, w *virtual.World) (end func()) {
	t.Helper()
	for _, f := range broken(t) {
		if err := w.Plant(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Open(ctx); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	up, down := context.WithCancel(ctx)
	wg.Go(func() {
		if err := w.Run(up); err != nil {
			t.Error(err)
		}
	})
	return func() { down(); wg.Wait() }
}

// TestPeerControllersLost: the controller that brings a site up, whose state is in three
// real etcd members, is killed, stopped for longer than its lease, or cut off from etcd. A
// second one takes over. The end is the same as without a loss, and nothing was done to a
// node twice. With -crash all there are 20 losses of 64 nodes.
func TestPeerControllersLost(t *testing.T) {
	if text := os.Getenv(partOf); text != "" {
		runPart(t, text)
		return
	}
	peertest.Need(t, "etcd")
	if testing.Short() {
		t.Skip("on wall time")
	}
	t.Parallel()
	alone(t)
	nodes, deaths, accepted := "16", len(lossKinds), 13
	if *crash == "all" {
		nodes, deaths, accepted = "64", 20, 61
	}
	cluster := etcdtest.Start(t)
	want, whole, _ := twoControllers(t, cluster, 0, nodes, loss{}, 0)
	if strings.Count(want.text, "accepted=true") != accepted || len(want.twice) > 0 {
		t.Fatalf("without a loss\n%s\n%v", want.text, want.twice)
	}
	t.Logf("%s nodes without a loss: %d records", nodes, whole)
	slots := make(chan int, mostAtOnce)
	for i := range 3 { // at a time: a busy machine is no reason to lose a lease
		slots <- i
	}
	t.Run("losses", func(t *testing.T) {
		for i := range deaths {
			l := lossKinds[i%len(lossKinds)]
			t.Run(fmt.Sprint(l.name, " ", i/len(lossKinds)+1), func(t *testing.T) {
				t.Parallel()
				slot := <-slots
				defer func() { slots <- slot }()
				share := 0.1 + 0.7*(float64(i/len(lossKinds))+rand.Float64())/float64((deaths+len(lossKinds)-1)/len(lossKinds))
				after := uint64(share * float64(whole))
				got, _, takeover := twoControllers(t, cluster, slot, nodes, l, after)
				if takeover > takeoverLimit && *crash == "all" { // a busy machine is no reason to fail
					t.Errorf("takeover after %v, more than %v", takeover, takeoverLimit)
				}
				if got.text != want.text {
					t.Errorf("%s after record %d: another end\n%s", l.name, after, difference(got.text, want.text))
				}
				for _, line := range got.twice {
					t.Errorf("%s after record %d: %s", l.name, after, line)
				}
				t.Logf("%s after record %d: takeover after %.1f s; %d power cycles, %d without a loss", l.name, after, takeover.Seconds(), got.cycles, want.cycles)
			})
		}
	})
}

// runPart is a controller in a process of its own.
func runPart(t *testing.T, text string) {
	var c controllerPart
	err := json.Unmarshal([]byte(text), &c)
	if err == nil {
		err = c.run(t)
	}
	code := 0
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if errors.Is(err, state.ErrLeaseEnded) || errors.Is(err, state.ErrFenced) {
		code = lostExit
	}
	os.Exit(code)
}
