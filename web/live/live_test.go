// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/onrecord"
	"github.com/ironrail/ironrail/web/view"
	"github.com/ironrail/ironrail/web/webtest"
)

// serve streams the changes of a fresh site until the test ends.
func serve(t *testing.T) (url, folder string) {
	t.Helper()
	dir := t.TempDir()
	if err := webtest.Copy(dir, "../../examples/"+webtest.Site); err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(dir, provision.StateFolder)
	h := New(&view.Keeper{Dir: dir, State: folder, Now: time.Now, Load: func() (*inventory.Inventory, error) { return webtest.Load(dir) }})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { h.Run(ctx) })
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close(); cancel(); wg.Wait() })
	return s.URL, folder
}

// follow gives the changes of a stream.
func follow(t *testing.T, url string) <-chan view.Change {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%v, %v", resp, err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "retry: ") {
		t.Fatalf("%q", lines.Text())
	}
	changes := make(chan view.Change, 100)
	go func() {
		defer close(changes)
		for lines.Scan() {
			var c view.Change
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(text), &c) == nil {
				changes <- c
			}
		}
	}()
	return changes
}

// waitFor waits for a change of a node into a state.
func waitFor(t *testing.T, changes <-chan view.Change, node, want string) {
	t.Helper()
	for {
		select {
		case c, more := <-changes:
			for _, n := range c.Nodes {
				if n.Name == node && string(n.State) == want {
					return
				}
			}
			if !more {
				t.Fatal("the stream has ended")
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s never was %s", node, want)
		}
	}
}

// TestChanges: what another process writes into the state reaches all who look.
func TestChanges(t *testing.T) {
	t.Parallel()
	url, folder := serve(t)
	first, second := follow(t, url), follow(t, url)
	m := onrecord.Marker{Place: onrecord.Place{Folder: folder}, Command: "test", Now: time.Now}
	for end := time.Now().Add(time.Minute); ; { // until the first reading is made, from which changes are reported
		if err := m.Hold(t.Context(), webtest.Healthy, "ann", "riser"); err != nil {
			t.Fatal(err)
		}
		select {
		case c := <-first:
			if len(c.Nodes) == 1 && c.Nodes[0].Name == webtest.Healthy {
				waitFor(t, second, webtest.Healthy, string(c.Nodes[0].State))
				return
			}
		case <-time.After(2500 * time.Millisecond):
		}
		if err := m.Release(t.Context(), webtest.Healthy, "ann"); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(end) {
			t.Fatal("no change was reported")
		}
	}
}

// run is an owner whose run goes on, as far as the status says.
type run struct {
	control.Backend
	mu   sync.Mutex
	done bool
}

func (r *run) Status(context.Context) (control.Status, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := state.Node{Name: webtest.Healthy, Run: "run-1"}
	s := control.Status{Run: &apply.Status{Run: "run-1", Nodes: []apply.NodeStatus{{NodeResult: apply.NodeResult{Name: n.Name, Outcome: apply.NodeActive}, Total: 3}},
		Active: []apply.StepStatus{{ID: plan.StepID(n.Name + "/install.write"), Stage: "install", Node: n.Name, State: "running", Text: "writes", Since: time.Now()}}}}
	if r.done {
		n.Accepted, n.AcceptedAt, s.Run.Active = true, time.Now(), nil
		s.Run.Nodes[0].Outcome = apply.NodeDone
	}
	s.Nodes = []state.Node{n}
	for _, name := range []string{webtest.BadGPU, "r01-u17", "r01-u25"} {
		s.Nodes = append(s.Nodes, state.Node{Name: name})
	}
	return s, nil
}

func (r *run) Events(uint64) *event.Subscription { return (*event.Bus)(nil).Subscribe(0) }

// TestOwner: while a run is active, its owner is asked.
func TestOwner(t *testing.T) {
	t.Parallel()
	url, folder := serve(t)
	o, err := control.AcquireFolder(folder, "apply", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ln, err := o.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &run{}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := control.Serve(ctx, ln, b, "test"); err != nil {
			t.Error(err)
		}
	})
	defer func() { cancel(); wg.Wait(); _ = o.Release() }()
	changes := follow(t, url)
	waitFor(t, changes, webtest.Healthy, "working")
	b.mu.Lock()
	b.done = true
	b.mu.Unlock()
	waitFor(t, changes, webtest.Healthy, "accepted")
}

// TestShares: one address has a share of the streams, and all of them have a limit.
func TestShares(t *testing.T) {
	t.Parallel()
	h := New(nil)
	for i := range maxClients {
		if h.add(fmt.Sprint("192.0.2.", i/maxPerAddress)) == nil {
			t.Fatalf("client %d is refused", i)
		}
	}
	if h.add("192.0.2.99") != nil {
		t.Error("there is no limit for all")
	}
	h = New(nil)
	var last *client
	for range maxPerAddress {
		last = h.add("192.0.2.1")
	}
	if h.add("192.0.2.1") != nil {
		t.Error("there is no limit for one address")
	}
	h.mu.Lock()
	h.remove(last)
	h.remove(last)
	h.mu.Unlock()
	if h.add("192.0.2.1") == nil {
		t.Error("a place that is free is not given")
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/api/v1/live", nil)
	r.RemoteAddr = net.JoinHostPort("192.0.2.1", "1000")
	h.ServeHTTP(w, r)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// deadlines is a connection that knows until when it may be written to.
type deadlines struct {
	*httptest.ResponseRecorder
	write time.Time
}

func (d *deadlines) SetReadDeadline(time.Time) error { return nil }

func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = t; return nil }

// TestNoDeadlineAtRest: while nothing is written no deadline stands. HTTP/2, which browsers
// speak over TLS, resets a stream when its deadline passes, whether it is written to or not.
func TestNoDeadlineAtRest(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	New(nil).ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/live", nil).WithContext(ctx))
	if !strings.HasPrefix(w.Body.String(), "retry: ") || !w.write.IsZero() {
		t.Errorf("after %q the stream may be written to until %v", w.Body, w.write)
	}
}

// TestGreeting: each client learns from which reading on it is sent changes, so that none between
// its page and its stream is lost.
func TestGreeting(t *testing.T) {
	t.Parallel()
	h := New(nil)
	first := h.add("192.0.2.1")
	h.follow(&view.Snapshot{Generation: 5})
	h.follow(&view.Snapshot{Generation: 6})
	second := h.add("192.0.2.2")
	for _, c := range []struct {
		of   *client
		want string
	}{
		{first, "event: reading\nid: 5\ndata: {\"generation\":5}\n\n"}, {first, "event: change\nid: 6\ndata: {\"generation\":6}\n\n"}, {second, "event: reading\nid: 6\ndata: {\"generation\":6}\n\n"},
	} {
		if got := string(<-c.of.messages); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestStreamsEnd: a stream ends by itself, so that a session that is over does not read on.
func TestStreamsEnd(t *testing.T) {
	t.Parallel()
	h := New(nil)
	if h.life != streamTime {
		t.Errorf("streams last %v", h.life)
	}
	h.life = time.Millisecond
	h.ServeHTTP(&deadlines{ResponseRecorder: httptest.NewRecorder()}, httptest.NewRequest("GET", "/api/v1/live", nil))
	if h.count() != 0 {
		t.Error("its client is left")
	}
}

// TestSlowClients: who does not read is disconnected, and holds nobody up.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	h := New(nil)
	slow, quick := h.add("192.0.2.1"), h.add("192.0.2.2")
	for i := range waiting + 1 {
		h.mu.Lock()
		h.send(view.Change{Generation: uint64(i)})
		h.mu.Unlock()
		<-quick.messages
	}
	n := 0
	for range slow.messages {
		n++
	}
	if n != waiting || h.count() != 1 {
		t.Errorf("the slow one was given %d messages, and %d clients are left", n, h.count())
	}
}
