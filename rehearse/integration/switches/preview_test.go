// SPDX-License-Identifier: Apache-2.0

package switches_test

import (
	"context"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/looks"
	"github.com/ironrail/ironrail/provision/status"
	virtual "github.com/ironrail/ironrail/rehearse/virtual/sonic"
)

var updateSwitches = flag.Bool("update-switches", false, "write the golden plan of switches")

var planned = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

const password = "not-a-secret-1"

// secrets are secrets by reference.
type secrets map[secret.Ref]string

func (s secrets) Resolve(r secret.Ref) (secret.Value, error) { return secret.NewValue(s[r]), nil }

// fabricRoom is the RoCE example with one node and a login for five of its switches,
// which are virtual ones as delivered, in memory.
type fabricRoom struct {
	site  *provision.Site
	board *network.Memory
	dir   string
}

func newFabricRoom(t *testing.T) *fabricRoom {
	t.Helper()
	r := &fabricRoom{dir: t.TempDir(), board: network.NewMemory()}
	list, err := os.ReadFile("../../../examples/mi300x-roce/manifest.csv")
	if err != nil {
		t.Fatal(err)
	}
	row := strings.Join(strings.SplitAfterN(string(list), "\n", 3)[:2], "")
	if err := os.WriteFile(filepath.Join(r.dir, "manifest.csv"), []byte(row), 0o600); err != nil {
		t.Fatal(err)
	}
	r.open(t)
	for _, n := range r.site.Inv.Nodes {
		r.board.At(n.Address) // it is there, and refuses SSH at once
	}
	var wg sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(func() { stop(); wg.Wait() })
	for _, s := range r.switches() {
		var ports []virtual.Port
		for i, p := range s.Ports {
			ports = append(ports, virtual.Port{Name: p.Name, Alias: fmt.Sprintf("etp%d", i+1), Index: i + 1, Lanes: 8, Speed: 400_000})
		}
		sw := virtual.New(virtual.Config{Name: s.Switch.Name, SKU: s.Switch.Model, User: "admin", Password: password, Ports: ports, Seed: 7, Clock: quick{}})
		ln, err := r.board.At(s.Switch.Address).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", s.Switch.Address, s.Switch.Login.Port))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if err := sw.Serve(ctx, ln); err != nil {
				t.Error(err)
			}
		})
	}
	return r
}

// quick is the clock of switches that answer at once.
type quick struct{ clock.Wall }

func (quick) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// open loads the site, with the words of pairs exchanged.
func (r *fabricRoom) open(t *testing.T, pairs ...string) {
	t.Helper()
	text, err := os.ReadFile("../../../examples/mi300x-roce/site.hcl")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.dir, "site.hcl"), []byte(strings.NewReplacer(append(pairs, `kernel   = "linux-image-amd64"`, `digest = "sha256:`+strings.Repeat("1", 64)+`"`)...).Replace(string(text))), 0o600)
	}
	inv, diags, _ := provision.Load(r.dir, inventory.Options{Now: planned})
	if diags.HasErrors() || err != nil {
		t.Fatal(diags, err)
	}
	for _, s := range inv.Switches {
		if !slices.Contains([]string{"net/leaf-1", "net/leaf-2", "net/leaf-8", "net/spine-2", "net/spine-3"}, s.Name) {
			s.Login = nil
		}
	}
	r.site, err = provision.Open(inv, provision.Options{Network: r.board.At(netip.MustParseAddr("10.20.0.2")), Secrets: secrets{"env:SONIC_PASSWORD": password}, State: filepath.Join(r.dir, "state")})
	if err != nil {
		t.Fatal(err)
	}
}

// switches are those with a login.
func (r *fabricRoom) switches() []*sonic.Switch {
	links := roce.Addresses(r.site.Inv)
	return slices.DeleteFunc(sonic.Switches(r.site.Inv, r.site.Inv.Fabrics[0], links[0]), func(s *sonic.Switch) bool { return s.Switch.Login == nil })
}

// called is the switch of a name.
func (r *fabricRoom) called(name string) *inventory.Switch {
	return r.site.Inv.Switches[slices.IndexFunc(r.site.Inv.Switches, func(s *inventory.Switch) bool { return s.Name == name })]
}

// plan plans, and returns the steps of switches with their reasons, and the warnings.
func (r *fabricRoom) plan(t *testing.T, from state.Reader, o provision.PlanOptions) (*plan.Plan, string) {
	t.Helper()
	o.Now = planned
	p, diags, err := r.site.Plan(t.Context(), from, o)
	if err != nil || diags.HasErrors() {
		t.Fatal(diags, err)
	}
	var b strings.Builder
	for _, s := range p.Steps {
		if s.Subject.Kind == subject.Switch {
			fmt.Fprintf(&b, "%s %s\n  %s\n", s.Action, s.ID, strings.Join(s.Why, "\n  "))
		}
	}
	for _, w := range p.Warnings {
		if strings.Contains(w, "read") {
			fmt.Fprintf(&b, "Warning: %s\n", w)
		}
	}
	return p, b.String()
}

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *updateSwitches {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || got != string(want) {
		t.Errorf("%s differs (%v); run with -update-switches and look at the difference. Got:\n%s", path, err, got)
	}
}

// TestFirstPlanOfSwitches: of a fabric whose switches were never read a plan says so
// and how to see more; with --refresh all of them are read, and what each lacks is
// shown, also where only some nodes are planned for. One that does not answer, or
// shows another key than the site has, is a warning.
func TestFirstPlanOfSwitches(t *testing.T) {
	t.Parallel()
	r := newFabricRoom(t)
	empty := state.NewMemory()
	p, text := r.plan(t, empty, provision.PlanOptions{Trust: time.Hour})
	if n := strings.Count(text, "not done yet: the switch was never read; `ironrail plan --refresh` reads it and shows what would change\n"); n != 5 || len(p.Operations) > 0 || strings.Contains(text, "Warning") {
		t.Errorf("%d switches, %d with operations:\n%s", n, len(p.Operations), text)
	}

	r.board.Detach(r.called("net/spine-2").Address)
	r.board.Detach(r.called("net/spine-3").Address)
	r.called("net/leaf-8").HostKey = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	var shown []looks.Look
	p, text = r.plan(t, empty, provision.PlanOptions{Refresh: true, Looked: func(l []looks.Look) { shown = l }})
	golden(t, "plan-switches", text)
	if len(p.Operations) != 2 || len(shown) != 5 {
		t.Errorf("operations of %d switches, %d looks", len(p.Operations), len(shown))
	}
	leaf := r.switches()[slices.IndexFunc(r.switches(), func(s *sonic.Switch) bool { return s.Switch.Name == "net/leaf-1" })]
	ops := p.Operations[switchos.StepID(leaf.Switch, leaf.Fabric)]
	want := plan.Operation{Do: plan.Changes, Table: "DEVICE_METADATA", Key: "localhost", Field: "hostname", From: "sonic", To: "net-leaf-1"}
	if !slices.Contains(ops, want) || len(ops) < 200 {
		t.Errorf("%d operations, and %+v is not among them", len(ops), want)
	}
	if _, few := r.plan(t, empty, provision.PlanOptions{Refresh: true, Targets: []string{r.site.Inv.Nodes[0].Name}}); few != text {
		t.Errorf("with a target:\n%s", few)
	}
}

// TestLookWithoutState: a site that has no state folder has no key of its own either;
// what is missing is said once for all switches.
func TestLookWithoutState(t *testing.T) {
	t.Parallel()
	r := newFabricRoom(t)
	site, err := provision.Open(r.site.Inv, provision.Options{Network: r.board.At(netip.MustParseAddr("10.20.0.2")), Secrets: secrets{"env:SONIC_PASSWORD": password}, State: filepath.Join(r.dir, "none"), Look: true})
	if err != nil {
		t.Fatal(err)
	}
	r.site = site
	p, text := r.plan(t, state.NewMemory(), provision.PlanOptions{Refresh: true})
	if len(p.Operations) != 5 || strings.Contains(text, "Warning") {
		t.Errorf("operations of %d switches:\n%s", len(p.Operations), text)
	}
	login := *r.switches()[0].Switch.Login
	login.Password = ""
	for _, s := range r.switches() {
		s.Switch.Login = &login
	}
	const want = "\nWarning: net/leaf-1, net/leaf-2, net/leaf-8, net/spine-2, net/spine-3 could not be read, and what would change there is not known: login \"sonic\" of switch net/leaf-1 has no secret, and this controller has no key yet"
	if _, text = r.plan(t, state.NewMemory(), provision.PlanOptions{Refresh: true}); !strings.Contains(text, want) || strings.Count(text, "Warning") != 1 {
		t.Errorf("without a secret:\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a state folder was made: %v", err)
	}
}

// TestPlanOfKnownSwitch: what was read of a switch shows what an edit of the site would
// write, without asking it; a look says more; and who showed a key once is known.
func TestPlanOfKnownSwitch(t *testing.T) {
	t.Parallel()
	r := newFabricRoom(t)
	store := state.NewMemory()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	configured(t, r, store, fence)
	for _, o := range []provision.PlanOptions{{}, {Trust: time.Second}} {
		if _, text := r.plan(t, store, o); text != "" {
			t.Errorf("nothing changed, and planned:\n%s", text)
		}
	}

	r.open(t, "mtu        = 9000", "mtu        = 9200")
	p, text := r.plan(t, store, provision.PlanOptions{})
	for _, want := range []string{"change net/leaf-1/fabric.compute.switch\n  mtu 9000 -> 9200 (site.hcl:", "\n  as read last, at 2026-11-21 03:00:00 UTC: ", " operations: ", "change: PORT|Ethernet0 mtu 9100 -> 9200, "} {
		if !strings.Contains(strings.Replace(text, string(plan.Change)+" net", "change net", 1), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "sha256:") || len(p.Operations) != 5 {
		t.Errorf("digests, or operations of %d switches:\n%s", len(p.Operations), text)
	}

	// The switches are as delivered: what was read last is not how they are.
	var shown []looks.Look
	_, text = r.plan(t, store, provision.PlanOptions{Refresh: true, Looked: func(l []looks.Look) { shown = l }})
	if !strings.Contains(text, "\n  read now for the first time, host key ssh-ed25519 SHA256:") || !strings.Contains(text, "DEVICE_METADATA|localhost hostname sonic -> net-leaf-1") || strings.Contains(text, "as read last") {
		t.Errorf("after a look:\n%s", text)
	}
	if err := looks.Record(t.Context(), store, fence, shown); err != nil {
		t.Fatal(err)
	}
	if _, text = r.plan(t, store, provision.PlanOptions{Refresh: true}); !strings.Contains(text, "\n  read now: ") || strings.Contains(text, "first time") {
		t.Errorf("the key is not known:\n%s", text)
	}
	known, err := status.ReadSwitch(t.Context(), r.site.Inv, store, "leaf-1")
	if err != nil || known.Seen == nil || known.Seen.State != stage.Differs || !strings.Contains(known.Seen.Evidence, "sonic -> net-leaf-1") {
		t.Errorf("%+v, %v", known.Seen, err)
	}
}

// configured stores that all switches were brought to what the site says.
func configured(t *testing.T, r *fabricRoom, store state.Store, fence state.Fence) {
	t.Helper()
	at := time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)
	b := state.Batch{}
	put := func(p state.Put, err error) {
		if err != nil {
			t.Fatal(err)
		}
		b.Puts = append(b.Puts, p)
	}
	first, _ := r.plan(t, state.NewMemory(), provision.PlanOptions{})
	for _, st := range first.Steps {
		if st.Subject.Kind == subject.Switch && st.Stage == fabric.StageName {
			put(state.PutOf(state.StepKey(st.ID), state.Step{ID: st.ID, State: state.StepIsDone, Version: st.Version, Inputs: st.Inputs, Started: at, Ended: at, Observed: true}))
		}
	}
	links := roce.Addresses(r.site.Inv)
	kind := switchos.New(roce.New(nil, links...), r.site.Inv, asWanted{r}, links)
	for _, s := range r.switches() {
		st := plan.Step{ID: switchos.StepID(s.Switch, s.Fabric), Subject: switchos.Of(s.Switch)}
		seen := &observer{Run: onnodetest.NewRun(st.Subject), at: at.Add(-time.Hour)}
		o, err := kind.ObserveStep(t.Context(), seen, s.Fabric, st)
		if err != nil || o.State != stage.Conforms {
			t.Fatalf("%+v, %v", o, err)
		}
		for _, f := range seen.facts {
			put(state.PutOf(state.FactKey(f.Key), f))
		}
	}
	if _, err := store.Append(t.Context(), fence, b); err != nil {
		t.Fatal(err)
	}
}

// observer is a stage.Run that keeps what was learned, as seen at one time.
type observer struct {
	*onnodetest.Run
	at    time.Time
	facts []fact.Fact
}

// Learn implements stage.Run.
func (o *observer) Learn(_ context.Context, fs ...fact.Fact) error {
	for _, f := range fs {
		f.Observed = o.at
		o.facts = append(o.facts, f)
	}
	return nil
}

// asWanted are switches that have what the site says. It implements switchos.Switches.
type asWanted struct{ r *fabricRoom }

func (a asWanted) Run(_ context.Context, name string, _ onnode.Command) (onnode.Output, error) {
	for _, s := range a.r.switches() {
		if s.Switch.Name == name {
			return onnode.Output{Stdout: s.Render().JSON()}, nil
		}
	}
	return onnode.Output{}, fmt.Errorf("no switch %s", name)
}

func (asWanted) HostKey(string) string { return "" }
