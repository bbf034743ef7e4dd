// SPDX-License-Identifier: Apache-2.0

package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/statetest"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/pdu"
)

// fakeBMC is the BMC of one node.
type fakeBMC struct {
	mu      sync.Mutex
	power   bmc.PowerState
	serial  string
	deaf    bool          // its system does not shut down
	gone    error         // it does not answer
	lost    error         // commands arrive, and their answers do not
	did     []string      // commands
	asked   func()        // is called when its system is asked to shut down; nil: it is not
	entered chan struct{} // is given a token when a command arrives; nil: it is not
	goOn    chan struct{} // a command waits for it; nil: it does not
}

func (b *fakeBMC) PowerState(context.Context) (bmc.PowerState, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.power, b.gone
}

func (b *fakeBMC) Identity(context.Context) (bmc.Identity, error) {
	return bmc.Identity{ProductSerial: b.serial}, b.gone
}

func (b *fakeBMC) SetPower(ctx context.Context, a bmc.PowerAction) (bmc.Outcome, error) {
	if b.entered != nil {
		b.entered <- struct{}{}
	}
	if b.goOn != nil {
		select {
		case <-b.goOn:
		case <-ctx.Done():
			return bmc.Outcome{Sent: 1, Evidence: "off; left off"}, context.Cause(ctx)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.did = append(b.did, a.String())
	b.power = bmc.PowerOn
	if a == bmc.Off {
		b.power = bmc.PowerOff
	}
	if b.lost != nil {
		return bmc.Outcome{Sent: 1, Evidence: "no answer"}, b.lost
	}
	if a == bmc.Reset {
		return bmc.Outcome{Sent: 1, Evidence: "the reset was accepted"}, nil
	}
	return bmc.Outcome{Sent: 1, Verdict: bmc.Verified, Evidence: "power reads " + string(b.power)}, nil
}

func (b *fakeBMC) SetBoot(_ context.Context, x bmc.Boot) (bmc.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.did = append(b.did, fmt.Sprintf("boot %s once=%t uefi=%t", x.Device, x.Once, x.UEFI))
	return bmc.Outcome{Sent: 1, Verdict: bmc.Verified, Evidence: "boot flags read so", Persistent: b.deaf}, nil
}

func (b *fakeBMC) Locate(_ context.Context, l bmc.Light) (bmc.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.did = append(b.did, "light "+string(l))
	return bmc.Outcome{Sent: 1, Verdict: bmc.Verified, Evidence: "it reads " + string(l)}, nil
}

func (b *fakeBMC) ShutDown(context.Context) (bmc.Outcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.did = append(b.did, "soft")
	if b.asked != nil {
		b.asked()
	}
	if !b.deaf {
		b.power = bmc.PowerOff
	}
	return bmc.Outcome{Sent: 1, Evidence: "the shutdown was asked for"}, nil
}

// fast is a clock whose waits take no time.
type fast struct {
	mu  sync.Mutex
	now time.Time
}

func (f *fast) Now() time.Time { f.mu.Lock(); defer f.mu.Unlock(); return f.now }

func (f *fast) Sleep(ctx context.Context, d time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	return context.Cause(ctx)
}

func (f *fast) WithTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

// room is a rack with nodes n1 to n4, of which two may be switched on at a time.
type room struct {
	t     *testing.T
	bmcs  map[string]*fakeBMC
	jobs  map[string]error // by node; a job where it is nil
	store state.Store
	fence state.Fence
	inv   *inventory.Inventory
	cfg   Config
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{t: t, bmcs: map[string]*fakeBMC{}, jobs: map[string]error{}, store: state.NewMemory()}
	var err error
	if r.fence, err = r.store.Claim(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	rack := &inventory.Rack{Name: "r01"}
	r.inv = &inventory.Inventory{Racks: []*inventory.Rack{rack}}
	for i := range 4 {
		n := fmt.Sprintf("n%d", i+1)
		r.inv.Nodes = append(r.inv.Nodes, &inventory.Node{Name: n, Rack: rack, Unit: i + 1, Serial: "S" + n})
		r.bmcs[n] = &fakeBMC{power: bmc.PowerOn, serial: "S" + n}
	}
	r.cfg = Config{Inv: r.inv, Store: r.store, Fence: r.fence, Capacity: map[string]int{"inrush/": 2}, Clock: &fast{now: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)},
		BMC: func(n string) (BMC, error) { return r.bmcs[n], nil },
		Jobs: func(_ context.Context, n string) ([]handover.Job, error) {
			err, busy := r.jobs[n]
			if !busy || err != nil {
				return nil, err
			}
			return []handover.Job{{ID: "17", User: "ann", State: "RUNNING"}}, nil
		}}
	return r
}

// lend gives the room's writer a lease that can be ended.
func (r *room) lend() *statetest.LeasedStore {
	s := statetest.NewLeasedStore(r.store)
	r.store, r.cfg.Store = s, s
	return s
}

// do plans and does it, and returns how it ended, by node.
func (r *room) do(d *Desk, q control.DirectRequest) (control.DirectPlan, map[string]control.DirectResult) {
	r.t.Helper()
	q.By = "ann"
	p, err := d.Plan(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	out := map[string]control.DirectResult{}
	if err := d.Do(r.t.Context(), p.ID, func(x control.DirectResult) { out[x.Node] = x }); err != nil {
		r.t.Fatal(err)
	}
	return p, out
}

// TestRules: what stands against a node is found before anything is done to it, and the others
// go on.
func TestRules(t *testing.T) {
	t.Parallel()
	cycle := control.DirectRequest{Verb: control.DirectCycle, Nodes: []string{"n1", "n2"}}
	for name, c := range map[string]struct {
		change func(*room)
		q      control.DirectRequest
		cause  string // of the refusal of n1; "": it is done
	}{
		"nothing": {func(*room) {}, cycle, ""},
		"hold": {func(r *room) {
			if err := state.HoldNode(t.Context(), r.store, r.fence, "n1", state.Hold{By: "bob", Reason: "riser"}); err != nil {
				t.Error(err)
			}
		}, cycle, "it is on hold since"},
		"protected":    {func(r *room) { r.inv.Nodes[0].Protect = true }, cycle, "it is protected"},
		"protected on": {func(r *room) { r.inv.Nodes[0].Protect = true; r.bmcs["n1"].power = bmc.PowerOff }, control.DirectRequest{Verb: control.DirectOn, Nodes: []string{"n1", "n2"}}, ""},
		"a run": {func(r *room) {
			r.cfg.NextStep = func(n string) plan.StepID { return map[string]plan.StepID{"n1": "n1/install.write"}[n] }
		}, cycle, "the running apply has work for it: n1/install.write"},
		"another node": {func(r *room) { r.bmcs["n1"].serial = "Sn2" }, cycle, "this is the BMC of another node: the BMC at invalid IP says that it sits in serial \"Sn2\"; the inventory says \"Sn1\" (that serial is n2's)"},
		"silent":       {func(r *room) { r.bmcs["n1"].gone = errkind.New(errkind.Timeout, "no answer") }, cycle, "the BMC stopped answering: no answer"},
		"jobs":         {func(r *room) { r.jobs["n1"] = nil }, cycle, "1 jobs run on it: 17 of ann (running)"},
		"kill jobs":    {func(r *room) { r.jobs["n1"] = nil }, control.DirectRequest{Verb: control.DirectCycle, Nodes: cycle.Nodes, KillJobs: true}, ""},
		"no scheduler": {func(r *room) { r.jobs["n1"] = errors.New("slurmctld is down") }, cycle, "whether jobs run on it is not known: slurmctld is down"},
		"no jobs, says the operator": {func(r *room) { r.jobs["n1"] = errors.New("slurmctld is down") },
			control.DirectRequest{Verb: control.DirectCycle, Nodes: cycle.Nodes, JobsUnknown: true}, ""},
		"in doubt": {func(r *room) {
			r.record(state.Direct{Node: "n1", Verb: "power cycle", By: "bob", State: state.EffectIntended})
		}, cycle, "nobody knows whether the last power cycle, by bob at"},
		"in doubt, again": {func(r *room) {
			r.record(state.Direct{Node: "n1", Verb: "power cycle", By: "bob", State: state.EffectInDoubt})
		}, control.DirectRequest{Verb: control.DirectCycle, Nodes: cycle.Nodes, Again: true}, ""},
		"left off by one that was killed": {func(r *room) {
			r.record(state.Direct{Node: "n1", Verb: "power cycle", By: "bob", State: state.EffectIntended})
			r.bmcs["n1"].power = bmc.PowerOff
		}, cycle, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			c.change(r)
			p, done := r.do(NewDesk(r.cfg), c.q)
			if c.cause == "" {
				if done["n1"].State != control.DirectDone || len(p.Refused) > 0 {
					t.Errorf("%+v, %+v", done, p.Refused)
				}
				return
			}
			if len(p.Refused) != 1 || p.Refused[0].Node != "n1" || !strings.HasPrefix(p.Refused[0].Cause, c.cause) || p.Refused[0].Action == "" {
				t.Errorf("refused: %+v", p.Refused)
			}
			if len(r.bmcs["n1"].did) > 0 {
				t.Errorf("done to n1 all the same: %q", r.bmcs["n1"].did)
			}
			if done["n2"].State != control.DirectDone || len(r.bmcs["n2"].did) != 1 {
				t.Errorf("n2: %+v", done["n2"])
			}
		})
	}
}

func (r *room) record(d state.Direct) {
	r.t.Helper()
	if err := state.RecordDirect(r.t.Context(), r.store, r.fence, d); err != nil {
		r.t.Fatal(err)
	}
}

// TestRulesOnceMore: what was shown is looked at once more before it is done.
func TestRulesOnceMore(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	d := NewDesk(r.cfg)
	p, err := d.Plan(t.Context(), control.DirectRequest{Verb: control.DirectCycle, Nodes: []string{"n1", "n2"}, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	r.jobs["n1"] = nil
	if err := state.HoldNode(t.Context(), r.store, r.fence, "n2", state.Hold{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := d.Do(t.Context(), p.ID, func(x control.DirectResult) { got = append(got, x.Node+" "+string(x.State)+" "+x.Text) }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if len(got) != 2 || !strings.HasPrefix(got[0], "n1 failed nothing was done: 1 jobs run on it") || !strings.HasPrefix(got[1], "n2 failed nothing was done: it is on hold") {
		t.Errorf("%q", got)
	}
	if err := d.Do(t.Context(), p.ID, func(control.DirectResult) {}); errkind.Of(err) != errkind.Refused {
		t.Errorf("a plan done twice: %v", err)
	}
}

// TestChangedSinceShown: a node that was off when it was shown, and would only have been switched on, is
// not switched off hard when it reads on by then.
func TestChangedSinceShown(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		r := newRoom(t)
		r.bmcs["n1"].power = bmc.PowerOff
		d := NewDesk(r.cfg)
		p, err := d.Plan(t.Context(), control.DirectRequest{Verb: control.DirectCycle, Nodes: []string{"n1"}, By: "ann", Again: again})
		if err != nil || len(p.Steps) != 1 || p.Steps[0].Does != "switch it on" {
			t.Fatalf("%+v, %v", p, err)
		}
		r.bmcs["n1"].power = bmc.PowerOn
		var got control.DirectResult
		if err := d.Do(t.Context(), p.ID, func(x control.DirectResult) { got = x }); err != nil {
			t.Fatal(err)
		}
		if len(r.bmcs["n1"].did) > 0 || got.State != control.DirectFailed || !strings.HasPrefix(got.Text, "nothing was done: it read off when this was shown, and reads on now") || got.Action == "" {
			t.Errorf("%+v; did %q", got, r.bmcs["n1"].did)
		}
	}
}

// TestDoubtStays: a shutdown that did nothing does not settle what became of an earlier cycle; a node that
// was switched off does.
func TestDoubtStays(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{true, false} {
		r := newRoom(t)
		b := r.bmcs["n1"]
		b.deaf = deaf
		r.record(state.Direct{Node: "n1", Verb: "power cycle", By: "bob", State: state.EffectIntended})
		d := NewDesk(r.cfg)
		r.do(d, control.DirectRequest{Verb: control.DirectOff, Nodes: []string{"n1"}, Wait: time.Minute})
		r.do(d, control.DirectRequest{Verb: control.DirectOff, Nodes: []string{"n1"}, Wait: time.Minute})
		b.power = bmc.PowerOn
		p, err := d.Plan(t.Context(), control.DirectRequest{Verb: control.DirectReset, Nodes: []string{"n1"}, By: "ann"})
		if err != nil || len(p.Refused) > 0 != deaf || deaf && !strings.HasPrefix(p.Refused[0].Cause, "nobody knows whether the last power cycle, by bob") {
			t.Errorf("deaf %t: %+v, %v", deaf, p, err)
		}
	}
}

// TestJobsDuringShutdown: a job that began while the system had time to shut down is not killed.
func TestJobsDuringShutdown(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.bmcs["n1"]
	b.deaf, b.asked = true, func() { r.jobs["n1"] = nil }
	_, done := r.do(NewDesk(r.cfg), control.DirectRequest{Verb: control.DirectOff, Nodes: []string{"n1"}, Wait: time.Minute, Force: true})
	if did, x := strings.Join(b.did, ", "), done["n1"]; did != "soft" || x.State != control.DirectFailed || !strings.Contains(x.Text, "it was not switched off hard: 1 jobs run on it") {
		t.Errorf("did %s: %+v", did, x)
	}
}

// TestLeaseDuringShutdown: a system that did not shut down is not switched off hard once the lease has ended:
// the node may be another controller's.
func TestLeaseDuringShutdown(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.bmcs["n1"]
	b.deaf, b.asked = true, r.lend().EndLease
	_, done := r.do(NewDesk(r.cfg), control.DirectRequest{Verb: control.DirectOff, Nodes: []string{"n1"}, Wait: time.Minute, Force: true})
	if did, x := strings.Join(b.did, ", "), done["n1"]; did != "soft" || x.State != control.DirectUnknown || !strings.Contains(x.Text, state.ErrLeaseEnded.Error()) {
		t.Errorf("did %s: %+v", did, x)
	}
}

// TestLeaseStops: the end of the lease ends what is under way.
func TestLeaseStops(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.bmcs["n1"]
	b.entered, b.goOn = make(chan struct{}, 1), make(chan struct{})
	leased := r.lend()
	go func() {
		<-b.entered
		leased.EndLease()
		time.AfterFunc(5*time.Second, func() { close(b.goOn) })
	}()
	_, out := r.do(NewDesk(r.cfg), control.DirectRequest{Verb: control.DirectCycle, Nodes: []string{"n1"}})
	if x := out["n1"]; len(b.did) > 0 || !strings.Contains(x.Text, "off; left off: "+state.ErrLeaseEnded.Error()) {
		t.Errorf("did %q: %+v", b.did, x)
	}
}

// TestManyJobs: the scheduler is asked once for many nodes, again when its answer is old, and a node that
// has a job by then is left alone.
func TestManyJobs(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.inv.Nodes = nil
	q := control.DirectRequest{Verb: control.DirectReset, By: "ann"}
	for i := range fewNodes + 1 {
		n := fmt.Sprintf("m%03d", i)
		r.inv.Nodes = append(r.inv.Nodes, &inventory.Node{Name: n, Rack: r.inv.Racks[0], Unit: i + 1, Serial: "S" + n})
		r.bmcs[n] = &fakeBMC{power: bmc.PowerOn, serial: "S" + n}
		q.Nodes = append(q.Nodes, n)
	}
	asked, one := 0, r.cfg.Jobs
	r.cfg.Jobs = nil // nobody is to ask for one
	r.cfg.JobsOf = func(_ context.Context, nodes []string) func(context.Context, string) ([]handover.Job, error) {
		if asked++; len(nodes) != len(q.Nodes) {
			t.Errorf("asked for %q", nodes)
		}
		return one
	}
	d := NewDesk(r.cfg)
	p, err := d.Plan(t.Context(), q)
	if err != nil || asked != 1 || len(p.Refused) > 0 {
		t.Fatalf("asked %d times: %+v, %v", asked, p.Refused, err)
	}
	r.jobs["m003"] = nil
	if err := r.cfg.Clock.Sleep(t.Context(), jobsFresh+time.Second); err != nil {
		t.Fatal(err)
	}
	failed := ""
	if err := d.Do(t.Context(), p.ID, func(x control.DirectResult) {
		if x.State != control.DirectDone {
			failed += x.Node + " " + x.Text
		}
	}); err != nil {
		t.Fatal(err)
	}
	if asked < 2 || failed != "m003 nothing was done: 1 jobs run on it: 17 of ann (running)" {
		t.Errorf("asked %d times; %s", asked, failed)
	}
}

// TestManyShutDown: nodes that have time to shut down do not keep others from being asked.
func TestManyShutDown(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.inv.Nodes = nil
	asked := make(chan string, 2*parallel)
	q := control.DirectRequest{Verb: control.DirectOff, Wait: time.Hour, By: "ann"}
	for i := range 2 * parallel {
		n := fmt.Sprintf("m%03d", i)
		r.inv.Nodes = append(r.inv.Nodes, &inventory.Node{Name: n, Rack: r.inv.Racks[0], Unit: i + 1, Serial: "S" + n})
		r.bmcs[n] = &fakeBMC{power: bmc.PowerOn, serial: "S" + n, deaf: true, asked: func() { asked <- n }}
		q.Nodes = append(q.Nodes, n)
	}
	r.cfg.Clock = clock.Wall{} // every wait is one of seconds
	ctx, cancel := context.WithCancel(t.Context())
	d := NewDesk(r.cfg)
	p, err := d.Plan(ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Do(ctx, p.ID, func(control.DirectResult) {}) }()
	for range 2 * parallel {
		<-asked
	}
	cancel()
	for _, n := range q.Nodes {
		d.Stop(n)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestPowerOff: the system is asked first, and what stays on is switched off hard only where that is
// asked for.
func TestPowerOff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deaf, force bool
		wait        time.Duration
		did         string
		state       control.DirectState
		text        string
	}{
		"soft":           {false, false, time.Minute, "soft", control.DirectDone, "it shut down within 3s"},
		"deaf":           {true, false, time.Minute, "soft", control.DirectFailed, "power still reads on 1m0s after its system was asked to shut down"},
		"deaf and force": {true, true, time.Minute, "soft, off", control.DirectDone, "its system did not shut down within 1m0s; hard: power reads off"},
		"hard at once":   {false, true, 0, "off", control.DirectDone, "power reads off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			r.bmcs["n1"].deaf = c.deaf
			_, done := r.do(NewDesk(r.cfg), control.DirectRequest{Verb: control.DirectOff, Nodes: []string{"n1"}, Wait: c.wait, Force: c.force})
			if did := strings.Join(r.bmcs["n1"].did, ", "); did != c.did || done["n1"].State != c.state || done["n1"].Text != c.text {
				t.Errorf("%s: %+v", did, done["n1"])
			}
			last, ok, err := state.ReadDirect(t.Context(), r.store, "n1", "power off")
			if err != nil || !ok || last.InDoubt() || last.Detail != c.text {
				t.Errorf("%+v, %v, %v", last, ok, err)
			}
		})
	}
}

// TestBootAndLight: the boot device is set in the mode of the hardware block, a protected node keeps
// its own, and the light goes on at a node on hold, whose power verbs' doubts it leaves alone.
func TestBootAndLight(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.inv.Nodes[0].Hardware = &inventory.Hardware{Boot: "uefi"}
	r.inv.Nodes[1].Protect = true
	r.bmcs["n3"].deaf = true
	r.record(state.Direct{Node: "n4", Verb: "power cycle", By: "bob", State: state.EffectInDoubt})
	if err := state.HoldNode(t.Context(), r.store, r.fence, "n4", state.Hold{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	d, all := NewDesk(r.cfg), []string{"n1", "n2", "n3", "n4"}
	p, done := r.do(d, control.DirectRequest{Verb: control.DirectBoot, Nodes: all, Device: "pxe"})
	if len(p.Refused) != 2 || p.Refused[0].Node != "n2" || p.Refused[1].Node != "n4" || p.Steps[0].Does != "boot from pxe at the next boot, then by the firmware's own order" {
		t.Errorf("%+v", p)
	}
	if did := r.bmcs["n1"].did; !slices.Equal(did, []string{"boot pxe once=true uefi=true"}) || done["n1"].State != control.DirectDone {
		t.Errorf("%q", did)
	}
	if x := done["n3"]; !strings.HasSuffix(x.Text, "THIS BMC KEEPS IT FOR EVERY BOOT: `ironrail boot NODE none` takes it back") {
		t.Errorf("%+v", x)
	}
	r.do(d, control.DirectRequest{Verb: control.DirectBoot, Nodes: []string{"n1"}, Device: "none", Persistent: true})
	p, done = r.do(d, control.DirectRequest{Verb: control.DirectLight, Nodes: all, Light: "blink"})
	if did := r.bmcs["n1"].did; len(did) != 3 || did[1] != "boot none once=false uefi=true" || did[2] != "light Blinking" {
		t.Errorf("%q", did)
	}
	if len(p.Refused) > 0 || done["n4"].State != control.DirectDone {
		t.Errorf("%+v", p.Refused)
	}
	if last, _, err := state.ReadDirect(t.Context(), r.store, "n4", "power reset"); err != nil || !last.InDoubt() {
		t.Errorf("the doubt about the cycle: %+v, %v", last, err)
	}
	for _, q := range []control.DirectRequest{{Verb: control.DirectBoot, Device: "floppy"}, {Verb: control.DirectLight, Light: "red"}, {Verb: "melt"}} {
		q.Nodes = all
		if _, err := d.Plan(t.Context(), q); err == nil || errkind.Of(err) == errkind.Internal {
			t.Errorf("%+v: %v", q, err)
		}
	}
}

// TestInrush: two nodes at a time are switched on, and the next once those have settled.
func TestInrush(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.cfg.Clock = clock.Wall{} // so that nothing settles within this test
	entered, goOn := make(chan struct{}, 4), make(chan struct{})
	for _, b := range r.bmcs {
		b.power, b.entered, b.goOn = bmc.PowerOff, entered, goOn
	}
	d := NewDesk(r.cfg)
	p, err := d.Plan(t.Context(), control.DirectRequest{Verb: control.DirectOn, Nodes: []string{"n1", "n2", "n3", "n4"}, By: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	var batches []int
	for _, st := range p.Steps {
		batches = append(batches, st.Batch)
	}
	if !slices.Equal(batches, []int{1, 1, 2, 2}) || len(p.Notes) != 1 {
		t.Errorf("%v %q", batches, p.Notes)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	results := make(chan control.DirectResult, 4)
	ended := make(chan error, 1)
	go func() { ended <- d.Do(ctx, p.ID, func(x control.DirectResult) { results <- x }) }()
	<-entered
	<-entered
	close(goOn)
	for range 2 {
		if x := <-results; x.State != control.DirectDone || x.Node > "n2" {
			t.Errorf("%+v", x)
		}
	}
	select {
	case <-entered:
		t.Error("a third node is switched on before the others have settled")
	case <-time.After(50 * time.Millisecond):
	}
	stop() // Ctrl-C: those that wait are not begun
	for range 2 {
		if x := <-results; x.State != control.DirectSkipped || x.Node < "n3" {
			t.Errorf("%+v", x)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestJournal: the intent is durable before the command leaves, and a lost answer leaves a doubt.
func TestJournal(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.bmcs["n1"]
	b.entered, b.goOn, b.lost = make(chan struct{}, 1), make(chan struct{}), errkind.New(errkind.Timeout, "no answer")
	ended := make(chan map[string]control.DirectResult, 1)
	d := NewDesk(r.cfg)
	go func() {
		_, out := r.do(d, control.DirectRequest{Verb: control.DirectReset, Nodes: []string{"n1"}, Reason: "hangs"})
		ended <- out
	}()
	<-b.entered
	last, _, err := state.ReadDirect(t.Context(), r.store, "n1", "power off")
	if err != nil || last.State != state.EffectIntended || last.By != "ann" || last.Reason != "hangs" || last.Verb != "power reset" {
		t.Errorf("while it is done: %+v, %v", last, err)
	}
	if _, _, err := d.begin(t.Context(), "n1"); errkind.Of(err) != errkind.Refused {
		t.Errorf("a second command at the same time: %v", err)
	}
	close(b.goOn)
	if out := <-ended; out["n1"].State != control.DirectUnknown || out["n1"].Text != "no answer: no answer" {
		t.Errorf("%+v", out)
	}
	if last, _, _ := state.ReadDirect(t.Context(), r.store, "n1", "power off"); last.State != state.EffectInDoubt || !last.InDoubt() {
		t.Errorf("afterwards: %+v", last)
	}
	var kinds []state.RecordKind
	if err := r.store.Read(t.Context(), 0, func(x state.Record) error { kinds = append(kinds, x.Kind); return nil }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(kinds, []state.RecordKind{state.DirectIntent, state.DirectOutcome}) {
		t.Errorf("%q", kinds)
	}
}

// TestHoldStops: a hold ends what is under way, and the outcome says how far it came.
func TestHoldStops(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b := r.bmcs["n1"]
	b.entered, b.goOn = make(chan struct{}, 1), make(chan struct{})
	d := NewDesk(r.cfg)
	ended := make(chan map[string]control.DirectResult, 1)
	go func() {
		_, out := r.do(d, control.DirectRequest{Verb: control.DirectCycle, Nodes: []string{"n1"}})
		ended <- out
	}()
	<-b.entered
	if !d.IsActive("n1") || d.IsActive("n2") {
		t.Error("n1 alone is worked on")
	}
	d.Stop("n2")
	d.Stop("n1")
	if out := <-ended; out["n1"].State != control.DirectUnknown || out["n1"].Text != "off; left off: the node was put on hold" {
		t.Errorf("%+v", out)
	}
	d.Close()
	if err := d.Do(t.Context(), "x", func(control.DirectResult) {}); errkind.Of(err) != errkind.Interrupted {
		t.Errorf("after the end: %v", err)
	}
}

// TestConsole: who types is in the journal, a node that somebody else holds is refused, and so is the BMC
// of another node; reading stands under no rule.
func TestConsole(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	d := NewDesk(r.cfg)
	open := func(_ context.Context, keys <-chan string) error {
		if keys != nil {
			return errors.New("the line is broken")
		}
		return nil
	}
	if err := state.HoldNode(t.Context(), r.store, r.fence, "n1", state.Hold{By: "bob", Reason: "riser"}); err != nil {
		t.Fatal(err)
	}
	r.bmcs["n2"].serial = "other"
	keys := make(chan string)
	for q, want := range map[control.ConsoleRequest]string{
		{Node: "n1", By: "ann"}:             "",
		{Node: "n1", By: "ann", Type: true}: "it is on hold since",
		{Node: "n1", By: "bob", Type: true}: "the line is broken",
		{Node: "n2", By: "ann", Type: true}: "this is the BMC of another node",
		{Node: "n9", By: "ann", Type: true}: "n9 is not in the inventory",
	} {
		if err := d.Console(t.Context(), q, control.Watcher{Keys: keys}, open); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v", q, err)
		}
	}
	last, ok, err := state.ReadDirect(t.Context(), r.store, "n1", "console")
	if err != nil || !ok || last.By != "bob" || last.State != state.EffectNotDone || last.Detail != "open to type at for 0s: the line is broken" {
		t.Errorf("%+v, %v", last, err)
	}
	if _, ok, _ := state.ReadDirect(t.Context(), r.store, "n2", "console"); ok {
		t.Error("what was refused is in the journal")
	}
}

// typing is a console that is typed at.
type typing struct {
	keys  chan string
	notes chan string
	typed chan string // what came through to the node
	ended chan error
	stop  context.CancelFunc
}

// typeAt opens the console of n1 for ann.
func typeAt(t *testing.T, d *Desk, since time.Time) *typing {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	x := &typing{make(chan string), make(chan string, 1), make(chan string), make(chan error, 1), stop}
	open := func(ctx context.Context, keys <-chan string) error {
		for {
			select {
			case k := <-keys:
				x.typed <- k
			case <-ctx.Done():
				return nil
			}
		}
	}
	go func() {
		x.ended <- d.Console(ctx, control.ConsoleRequest{Node: "n1", By: "ann", Type: true, Since: since}, control.Watcher{Keys: x.keys, Note: func(text string) { x.notes <- text }}, open)
	}()
	return x
}

// TestHoldEndsTyping: a hold of somebody else's ends typing and not reading, for good, and the record says so.
func TestHoldEndsTyping(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	d := NewDesk(r.cfg)
	x := typeAt(t, d, time.Time{})
	x.keys <- "a"
	if got := <-x.typed; got != "a" {
		t.Errorf("typed %q", got)
	}
	if err := state.HoldNode(t.Context(), r.store, r.fence, "n1", state.Hold{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	x.keys <- "b"
	if got := <-x.typed; got != "b" {
		t.Errorf("typed %q by who holds it", got)
	}
	if err := state.HoldNode(t.Context(), r.store, r.fence, "n1", state.Hold{By: "bob", Reason: "riser"}); err != nil {
		t.Fatal(err)
	}
	x.keys <- "c"
	if note := <-x.notes; !strings.HasPrefix(note, "nothing is typed any more: it is on hold since") || !strings.Contains(note, "(bob: riser)") || !strings.HasSuffix(note, "; reading goes on") {
		t.Errorf("%q", note)
	}
	if err := state.ReleaseNode(t.Context(), r.store, r.fence, "n1", state.Hold{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	x.keys <- "d"
	x.keys <- "e"
	select {
	case got := <-x.typed:
		t.Errorf("%q reached the node", got)
	case err := <-x.ended:
		t.Errorf("reading has ended: %v", err)
	default:
	}
	x.stop()
	if err := <-x.ended; err != nil {
		t.Error(err)
	}
	last, _, err := state.ReadDirect(t.Context(), r.store, "n1", "console")
	if err != nil || last.By != "ann" || last.State != state.EffectIsDone || !strings.HasPrefix(last.Detail, "open to type at for 0s: it is on hold since") {
		t.Errorf("%+v, %v", last, err)
	}
}

// TestTypingGoesOn: who began to type before there was an owner has one record; a hold that came in between
// makes a reader of them; and the end of the desk ends typing with its record.
func TestTypingGoesOn(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	d := NewDesk(r.cfg)
	began := r.cfg.Clock.Now().Add(-time.Minute).UTC()
	if err := state.HoldNode(t.Context(), r.store, r.fence, "n1", state.Hold{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	x := typeAt(t, d, began)
	if note := <-x.notes; !strings.HasPrefix(note, "nothing is typed any more: it is on hold since") {
		t.Errorf("%q", note)
	}
	x.stop()
	if err := <-x.ended; err != nil {
		t.Error(err)
	}
	if err := state.ReleaseNode(t.Context(), r.store, r.fence, "n1", state.Hold{By: "bob"}); err != nil {
		t.Fatal(err)
	}
	y := typeAt(t, d, began)
	y.keys <- "a"
	<-y.typed
	d.Close()
	if err := <-y.ended; err != nil {
		t.Error(err)
	}
	last, _, err := state.ReadDirect(t.Context(), r.store, "n1", "console")
	if err != nil || !last.At.Equal(began) || last.State != state.EffectIsDone || last.Detail != "open to type at for 1m0s" {
		t.Errorf("%+v, %v", last, err)
	}
	z := typeAt(t, d, time.Time{})
	if err := <-z.ended; errkind.Of(err) != errkind.Interrupted {
		t.Errorf("after the end: %v", err)
	}
}

// outletBoard is a PDU of tests.
type outletBoard struct {
	mu    sync.Mutex
	state map[int]pdu.State
	stuck map[int]error // of an outlet that does not go off
	did   *[]string
	name  string
}

func (b *outletBoard) Outlet(_ context.Context, n int) (pdu.State, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.state[n]; ok {
		return s, nil
	}
	return pdu.On, nil
}

func (b *outletBoard) Switch(_ context.Context, n int, to pdu.State) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.did = append(*b.did, fmt.Sprintf("%s %d %s", b.name, n, to))
	if to == pdu.Off && b.stuck[n] != nil {
		return b.stuck[n]
	}
	b.state[n] = to
	return nil
}

// TestOutlets: all outlets of a node go off before any goes on, only those of nobody else, and what does
// not go off is no loss of power.
func TestOutlets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(r *room, a, b *outletBoard)
		q      control.DirectRequest
		cause  string // of the refusal
		did    string
		state  control.DirectState
		text   string
	}{
		"a dead BMC": {func(r *room, _, _ *outletBoard) { r.bmcs["n1"].gone = errkind.New(errkind.Timeout, "no answer") }, control.DirectRequest{}, "",
			"a 1 off, b 1 off, a 1 on, b 1 on", control.DirectDone, "all were off for 30s; outlets read on: r01/a 1 (psu1), r01/b 1 (psu2); whether the node starts is its BMC's policy (`ironrail power status`)"},
		"a BMC that answers": {func(*room, *outletBoard, *outletBoard) {}, control.DirectRequest{}, "", "a 1 off, b 1 off, a 1 on, b 1 on", control.DirectDone, ""},
		"left off before":    {func(_ *room, a, _ *outletBoard) { a.state[1] = pdu.Off }, control.DirectRequest{}, "", "a 1 on, b 1 on", control.DirectDone, ""},
		"one is stuck": {func(_ *room, _, b *outletBoard) { b.stuck[1] = errors.New("the relay sticks") }, control.DirectRequest{}, "",
			"a 1 off, b 1 off, a 1 on, b 1 on", control.DirectUnknown, "outlet r01/b 1 (psu2) does not go off, so that the node has kept its power: the relay sticks"},
		"the BMC of another": {func(r *room, _, _ *outletBoard) { r.bmcs["n1"].serial = "other" }, control.DirectRequest{}, "this is the BMC of another node", "", "", ""},
		"shared with a node": {func(r *room, _, _ *outletBoard) { r.inv.Nodes[1].Feeds[0].Outlet = 1 }, control.DirectRequest{}, "outlet 1 of PDU r01/a may feed n2 as well", "", "", ""},
		"another has none":   {func(r *room, _, _ *outletBoard) { r.inv.Nodes[1].Feeds[1].Outlet = 0 }, control.DirectRequest{}, "outlet 1 of PDU r01/b may feed n2 as well", "", "", ""},
		"shared with a switch": {func(r *room, _, _ *outletBoard) {
			r.inv.Switches = append(r.inv.Switches, &inventory.Switch{Name: "leaf1", Feeds: r.inv.Nodes[0].Feeds[1:]})
		}, control.DirectRequest{}, "outlet 1 of PDU r01/b may feed leaf1 as well", "", "", ""},
		"shared with a power shelf": {func(r *room, _, _ *outletBoard) {
			r.inv.Racks[0].Shelves = []*inventory.Shelf{{Name: "r01/power", Feeds: []inventory.Feed{{Supply: "psu1", PDU: r.inv.Racks[0].PDUs[0]}}}}
		}, control.DirectRequest{}, "outlet 1 of PDU r01/a may feed power shelf r01/power as well", "", "", ""},
		"no control":   {func(r *room, _, _ *outletBoard) { r.inv.Nodes[0].Feeds[1].PDU.Control = nil }, control.DirectRequest{}, "supply psu2 hangs on what cannot be switched", "", "", ""},
		"no number":    {func(r *room, _, _ *outletBoard) { r.inv.Nodes[0].Feeds[1].Outlet = 0 }, control.DirectRequest{}, "the files do not say which outlet of PDU r01/b feeds psu2", "", "", ""},
		"shelves":      {func(r *room, _, _ *outletBoard) { r.inv.Nodes[0].Feeds = nil }, control.DirectRequest{}, "the files name no outlets", "", "", ""},
		"only metered": {func(_ *room, a, _ *outletBoard) { a.state[1] = pdu.Unknown }, control.DirectRequest{}, "pdu r01/a: outlet 1 cannot be switched", "", "", ""},
		"jobs":         {func(r *room, _, _ *outletBoard) { r.jobs["n1"] = nil }, control.DirectRequest{}, "1 jobs run on it", "", "", ""},
		"in doubt": {func(r *room, _, _ *outletBoard) {
			r.record(state.Direct{Node: "n1", Verb: "power cycle --outlets", By: "bob", State: state.EffectIntended})
		}, control.DirectRequest{}, "nobody knows whether the last power cycle --outlets", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			var did []string
			rack := r.inv.Racks[0]
			boards := map[string]*outletBoard{}
			for _, n := range []string{"a", "b"} {
				boards["r01/"+n] = &outletBoard{state: map[int]pdu.State{}, stuck: map[int]error{}, did: &did, name: n}
				rack.PDUs = append(rack.PDUs, &inventory.PDU{Name: "r01/" + n, Rack: rack, Control: &inventory.PDUControl{}})
			}
			for i, n := range r.inv.Nodes {
				n.Feeds = []inventory.Feed{{Supply: "psu1", PDU: rack.PDUs[0], Outlet: i + 1}, {Supply: "psu2", PDU: rack.PDUs[1], Outlet: i + 1}}
			}
			r.cfg.Outlets = func(p *inventory.PDU) (pdu.Outlets, error) { return boards[p.Name], nil }
			c.change(r, boards["r01/a"], boards["r01/b"])
			c.q.Verb, c.q.Nodes = control.DirectMains, []string{"n1"}
			p, done := r.do(NewDesk(r.cfg), c.q)
			if c.cause != "" {
				if len(p.Refused) != 1 || !strings.HasPrefix(p.Refused[0].Cause, c.cause) || p.Refused[0].Action == "" || len(did) > 0 {
					t.Errorf("%+v; did %q", p.Refused, did)
				}
				return
			}
			if x := done["n1"]; strings.Join(did, ", ") != c.did || x.State != c.state || c.text != "" && x.Text != c.text {
				t.Errorf("did %q: %+v; %+v", did, x, p.Refused)
			}
			if len(p.Steps) != 1 || p.Steps[0].Batch != 1 || !strings.Contains(p.Steps[0].Does, "r01/a 1 (psu1), r01/b 1 (psu2)") {
				t.Errorf("%+v", p.Steps)
			}
		})
	}
}
