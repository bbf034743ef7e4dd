// SPDX-License-Identifier: Apache-2.0

package control_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/internal/errkind"
)

// directs is an owner that does direct work; control.Backend is nil where it is not used.
type directs struct {
	control.Backend
	asked *[]string
}

func (d directs) PlanDirect(_ context.Context, q control.DirectRequest) (control.DirectPlan, error) {
	*d.asked = append(*d.asked, string(q.Verb)+" of "+strings.Join(q.Nodes, " ")+" by "+q.By)
	if q.Nodes[0] == "n9" {
		return control.DirectPlan{}, errkind.New(errkind.Refused, "n9 is not here").Do("Look again.")
	}
	return control.DirectPlan{ID: "p 1", Verb: q.Verb, Steps: []control.DirectStep{{Node: "n1", Does: "switch it on"}}}, nil
}

func (d directs) DoDirect(_ context.Context, id string, report func(control.DirectResult)) error {
	*d.asked = append(*d.asked, "do "+id)
	if id != "p 1" {
		return errkind.New(errkind.Refused, "there is no plan %q", id)
	}
	report(control.DirectResult{Node: "n1", State: control.DirectDone})
	report(control.DirectResult{Node: "n2", State: control.DirectFailed})
	return nil
}

// TestDirect: requests reach the owner, and results come one by one.
func TestDirect(t *testing.T) {
	t.Parallel()
	var asked, got []string
	c := control.NewClient(ownedBy(t, control.Handler(directs{asked: &asked}, "1").ServeHTTP))
	p, err := c.PlanDirect(t.Context(), control.DirectRequest{Verb: control.DirectOn, Nodes: []string{"n1", "n2"}, By: "ann"})
	if err != nil || len(p.Steps) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := c.DoDirect(t.Context(), p.ID, func(x control.DirectResult) { got = append(got, x.Node+" "+string(x.State)) }); err != nil || !slices.Equal(got, []string{"n1 done", "n2 failed"}) {
		t.Errorf("%q, %v", got, err)
	}
	if want := []string{"power on of n1 n2 by ann", "do p 1"}; !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
	if err := c.DoDirect(t.Context(), "x", nil); errkind.Of(err) != errkind.Refused {
		t.Errorf("another plan: %v", err)
	}
	if _, err := c.PlanDirect(t.Context(), control.DirectRequest{Verb: control.DirectOn, Nodes: []string{"n9"}, By: "ann"}); errkind.Action(err) != "Look again." {
		t.Errorf("what the owner refuses: %v", err)
	}
	if _, err := c.PlanDirect(t.Context(), control.DirectRequest{Verb: control.DirectOn, By: "ann"}); errkind.Of(err) != errkind.Invalid {
		t.Errorf("no nodes: %v", err)
	}
	many := control.DirectRequest{Verb: control.DirectOn, Nodes: slices.Repeat([]string{"node-of-a-large-site"}, 20_000), By: "ann"}
	if _, err := c.PlanDirect(t.Context(), many); err != nil {
		t.Errorf("many nodes: %v", err)
	}
}

// TestDirectOfAnotherOwner: an owner that does no direct work says so.
func TestDirectOfAnotherOwner(t *testing.T) {
	t.Parallel()
	c := control.NewClient(ownedBy(t, control.Handler(struct{ control.Backend }{}, "1").ServeHTTP))
	_, err := c.PlanDirect(t.Context(), control.DirectRequest{Verb: control.DirectOn, Nodes: []string{"n1"}, By: "ann"})
	if errkind.Of(err) != errkind.Unsupported {
		t.Errorf("%v", err)
	}
	if err := c.DoDirect(t.Context(), "p", nil); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("%v", err)
	}
	old := control.NewClient(ownedBy(t, http.NotFound))
	if _, err := old.PlanDirect(t.Context(), control.DirectRequest{Verb: control.DirectOn, Nodes: []string{"n1"}, By: "ann"}); err == nil {
		t.Error("an older owner: no error")
	}
}

// consoles is an owner with one console, which prints what is typed.
type consoles struct{ control.Backend }

func (consoles) Console(ctx context.Context, q control.ConsoleRequest, w control.Watcher) error {
	if q.Node != "n1" {
		return errkind.New(errkind.Refused, "%s has no console", q.Node).Do("Ask another.")
	}
	w.Up()
	_, _ = fmt.Fprintf(w.To, "hello %s\xff ", q.By)
	w.Note("since " + q.Since.Format(time.RFC3339Nano))
	for {
		select {
		case k := <-w.Keys:
			_, _ = io.WriteString(w.To, "<"+k+">")
		case <-ctx.Done():
			return nil
		}
	}
}

// TestConsoleOfOwner: bytes go both ways as they are, while both ends are open.
func TestConsoleOfOwner(t *testing.T) {
	t.Parallel()
	c := control.NewClient(ownedBy(t, control.Handler(consoles{}, "1").ServeHTTP))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	keys, printed, done := make(chan string), make(chan string), make(chan error, 1)
	r, w := io.Pipe()
	go func() {
		b := make([]byte, 100)
		for {
			n, err := r.Read(b)
			if err != nil {
				return
			}
			printed <- string(b[:n])
		}
	}()
	ups, notes := 0, make(chan string, 1)
	go func() {
		q := control.ConsoleRequest{Node: "n1", By: "ann", Type: true, Since: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
		done <- c.Console(ctx, q, control.Watcher{To: w, Keys: keys, Up: func() { ups++ }, Note: func(text string) { notes <- text }})
	}()
	if text := <-printed; text != "hello ann\xff " {
		t.Errorf("%q", text)
	}
	for _, k := range []string{"a", "\xc3", "\x00break\x00"} {
		keys <- k
		if text := <-printed; text != "<"+k+">" {
			t.Errorf("%q came back as %q", k, text)
		}
	}
	if note := <-notes; note != "since 2026-01-02T03:04:05.000000006Z" {
		t.Errorf("%q", note)
	}
	cancel()
	if err := <-done; err != nil || ups != 1 {
		t.Errorf("%v, open %d times", err, ups)
	}
	if err := c.Console(t.Context(), control.ConsoleRequest{Node: "n2", By: "ann"}, control.Watcher{To: io.Discard}); errkind.Of(err) != errkind.Refused || errkind.Action(err) != "Ask another." {
		t.Errorf("what the owner refuses: %v", err)
	}
	without := control.NewClient(ownedBy(t, control.Handler(struct{ control.Backend }{}, "1").ServeHTTP))
	if err := without.Console(t.Context(), control.ConsoleRequest{Node: "n1", By: "ann"}, control.Watcher{To: io.Discard}); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("an owner without consoles: %v", err)
	}
}
