// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
)

// backend answers from fixed data and refuses the node "n9".
type backend struct{ bus *event.Bus }

func refused(node string) error {
	if node == "n9" {
		return errkind.New(errkind.Refused, "node n9 is busy").Do("Wait.")
	}
	return nil
}

func (b backend) Status(context.Context) (control.Status, error) {
	return control.Status{Owner: control.Identity{PID: 7, Command: "apply"}, Nodes: []state.Node{{Name: "n1", Accepted: true}}}, nil
}
func (b backend) Why(_ context.Context, n string) (control.Why, error) {
	return control.Why{Node: state.Node{Name: n}}, refused(n)
}
func (b backend) Look(_ context.Context, n string) (control.Look, error) {
	return control.Look{Power: "on"}, refused(n)
}
func (b backend) Hold(_ context.Context, n string, h control.HoldRequest) error {
	b.bus.Emit(event.Event{Type: event.Held, Node: n, Text: h.By + ": " + h.Reason})
	return refused(n)
}
func (b backend) Release(_ context.Context, n string, _ control.HoldRequest) error { return refused(n) }
func (b backend) AskBMCs(_ context.Context, _ control.BMCQuestion, nodes []string, tell func(control.BMCAnswer)) ([]control.BMCAnswer, error) {
	if slices.Contains(nodes, "n9") {
		return nil, refused("n9")
	}
	all := []control.BMCAnswer{{Node: "n1", State: "on"}, {Node: "n2", Error: "no answer"}}
	for _, p := range slices.Backward(all) {
		tell(p)
	}
	return all, nil
}
func (b backend) Drain(context.Context) error            { return nil }
func (b backend) Events(from uint64) *event.Subscription { return b.bus.Subscribe(from) }

// serve owns a folder and answers in it until the test ends.
func serve(t *testing.T, dir string) backend {
	t.Helper()
	o, err := control.AcquireFolder(dir, "apply", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := o.Listen()
	if err != nil {
		t.Fatal(err)
	}
	b := backend{event.NewBus(100)}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, ln, b, "1.2.3") }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-served, o.Release()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestCalls(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-folder-name/", 10), ".ironrail")
	serve(t, dir)
	c, ctx := control.NewClient(dir), t.Context()
	if v, err := c.Version(ctx); err != nil || v.Version != "1.2.3" || v.API != control.API {
		t.Errorf("version: %v %v", v, err)
	}
	if s, err := c.Status(ctx); err != nil || s.Owner.PID != 7 || len(s.Nodes) != 1 || !s.Nodes[0].Accepted {
		t.Errorf("status: %v %v", s, err)
	}
	if w, err := c.Why(ctx, "r01/n 1"); err != nil || w.Node.Name != "r01/n 1" {
		t.Errorf("why: %v %v", w, err)
	}
	if l, err := c.Look(ctx, "n1"); err != nil || l.Power != "on" {
		t.Errorf("look: %v %v", l, err)
	}
	var told []control.BMCAnswer
	if err := c.AskBMCs(ctx, control.BMCQuestion{For: control.AskPower}, nil, func(p control.BMCAnswer) { told = append(told, p) }); err != nil || len(told) != 2 || told[0].Error != "no answer" || told[1].State != "on" {
		t.Errorf("power: %v %v", told, err)
	}
	if err := c.AskBMCs(ctx, control.BMCQuestion{For: control.AskPower}, []string{"n1", "n9"}, func(control.BMCAnswer) { t.Error("told") }); errkind.Of(err) != errkind.Refused || err.Error() != "node n9 is busy" {
		t.Errorf("refused power: %v", err)
	}
	by := control.HoldRequest{By: "ann"}
	if err := errors.Join(c.Hold(ctx, "n1", by), c.Release(ctx, "n1", by), c.Drain(ctx)); err != nil {
		t.Error(err)
	}
	if err := c.Hold(ctx, "n9", by); errkind.Of(err) != errkind.Refused || errkind.Action(err) != "Wait." || err.Error() != "node n9 is busy" {
		t.Errorf("refused hold: %v (%v, %q)", err, errkind.Of(err), errkind.Action(err))
	}
	if err := c.Hold(ctx, "n1", control.HoldRequest{}); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("hold by nobody: %v", err)
	}
	if st, err := os.Stat(filepath.Join(dir, "control.sock")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", st, err)
	}
}

func TestEventsFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := serve(t, dir)
	b.bus.Emit(event.Event{Type: event.Note, Text: "one"})
	b.bus.Emit(event.Event{Type: event.Note, Text: "two"})
	c := control.NewClient(dir)
	var got []string
	if err := c.Events(t.Context(), 2, false, func(e event.Event) error { got = append(got, e.Text); return nil }); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, ",") != "two" {
		t.Errorf("kept from 2: %q", got)
	}
	got = nil
	stop := errors.New("enough")
	err := c.Events(t.Context(), 0, true, func(e event.Event) error {
		if got = append(got, e.Text); e.Text == "two" {
			return c.Hold(t.Context(), "n1", control.HoldRequest{By: "ann", Reason: "smoke"})
		}
		if e.Type == event.Held {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || strings.Join(got, ",") != "one,two,ann: smoke" {
		t.Errorf("followed %q: %v", got, err)
	}
}

func TestOneOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), ".ironrail")
	if _, owned, err := control.FindOwner(dir); owned || err != nil {
		t.Errorf("no folder: owned %v, %v", owned, err)
	}
	if _, err := control.NewClient(dir).Status(t.Context()); errkind.Of(err) != errkind.Unreachable {
		t.Errorf("status without an owner: %v", err)
	}
	o, err := control.AcquireFolder(dir, "apply", time.Unix(1e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	_, err = control.AcquireFolder(dir, "apply", time.Now())
	if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), "apply (pid ") || errkind.Action(err) == "" {
		t.Errorf("second owner: %v", err)
	}
	if i, owned, err := control.FindOwner(dir); !owned || err != nil || i.PID != os.Getpid() {
		t.Errorf("find: %v %v %v", i, owned, err)
	}
	if err := errors.Join(o.Release(), o.Release()); err != nil {
		t.Error(err)
	}
	if _, owned, _ := control.FindOwner(dir); owned {
		t.Error("owned after release")
	}
}

// TestDeadOwner kills a process that owns the folder and takes over from it.
func TestDeadOwner(t *testing.T) {
	if dir := os.Getenv("IRONRAIL_TEST_OWN"); dir != "" {
		if _, err := control.AcquireFolder(dir, "apply", time.Now()); err != nil {
			t.Fatal(err)
		}
		_, _ = os.Stdout.WriteString("owned\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestDeadOwner$")
	cmd.Env = append(os.Environ(), "IRONRAIL_TEST_OWN="+dir)
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := io.ReadFull(out, make([]byte, len("owned\n"))); err != nil {
		t.Fatal(err)
	}
	if _, err := control.AcquireFolder(dir, "serve", time.Now()); errkind.Of(err) != errkind.Refused {
		t.Errorf("beside a living owner: %v", err)
	}
	_ = os.WriteFile(filepath.Join(dir, "control.sock"), nil, 0o600) // as it leaves one behind
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	o, err := control.AcquireFolder(dir, "serve", time.Now())
	if err != nil {
		t.Fatalf("after the owner was killed: %v", err)
	}
	ln, err := o.Listen()
	if err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(ln.Close(), o.Release())
}

func FuzzRequest(f *testing.F) {
	f.Add("GET", "/status", "")
	f.Add("POST", "/hold/n1", `{"by":"ann"}`)
	f.Add("POST", "/hold/%2e%2e%2f", `{"by":1}`)
	f.Add("GET", "/events?from=-1", "")
	f.Add("GET", "/events?from=18446744073709551615", "")
	f.Add("POST", "/release/n9", `{"by":"a","reason":"\u0000"}`)
	bus := event.NewBus(4)
	bus.Emit(event.Event{Type: event.Note})
	h := control.Handler(backend{bus}, "1")
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r, err := http.NewRequest(method, "http://ironrail/"+strings.TrimPrefix(target, "/"), strings.NewReader(body))
		if err != nil || r.FormValue("follow") == "1" {
			t.Skip()
		}
		r.Body = io.NopCloser(strings.NewReader(body))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
	})
}

func TestExplain(t *testing.T) {
	t.Parallel()
	s := state.NewMemory()
	if _, err := control.ReadWhy(t.Context(), s, "n1"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("unknown node: %v", err)
	}
	f, err := s.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := state.HoldNode(t.Context(), s, f, "n1", state.Hold{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	w, err := control.ReadWhy(t.Context(), s, "n1")
	if err != nil || w.Node.Hold == nil || w.Node.Hold.By != "ann" {
		t.Errorf("held node: %+v %v", w, err)
	}
}
