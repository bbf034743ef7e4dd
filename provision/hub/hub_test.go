// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// grants is a fixed set of tokens.
type grants map[string]Grant

func (g grants) Grant(token string) (Grant, bool) { v, ok := g[token]; return v, ok }

// Ended: the token "over" was n1's.
func (g grants) Ended(token string) (Grant, bool) {
	return Grant{Node: "n1", Attempt: "a0"}, token == "over"
}

// ByAddress: n1 and n2 have addresses of the loopback.
func (g grants) ByAddress(a netip.Addr) (boot.Client, bool) {
	node := map[string]string{"127.0.0.1": "n1", "127.0.0.2": "n2"}[a.String()]
	return boot.Client{Node: node, Address: netip.PrefixFrom(a, 8), MACs: []addr.MAC{{2, 0, 0, 0, 0, 1}}}, node != ""
}

func (g grants) BootedSince(Grant, time.Time) bool { return false }

var n1 = Grant{Node: "n1", Attempt: "a1"}

// swap serves whichever hub is current, as a restarted controller would.
type swap struct{ hub atomic.Pointer[Hub] }

// start runs the real agent against h with one handler and returns its
// controller; the agent ends with the test.
func start(t *testing.T, h *Hub, token string, do agent.Handler) (*swap, *httptest.Server) {
	t.Helper()
	s := &swap{}
	s.hub.Store(h)
	srv := httptest.NewServer(handlerFunc(s))
	t.Cleanup(srv.Close)
	a, err := agent.New(agent.Config{
		Boot:     wire.Boot{Version: wire.Version, Node: "n1", Attempt: "a1", Token: token, Controller: srv.URL},
		BootID:   "b1",
		Identity: func() wire.Identity { return wire.Identity{Serial: "SN1"} },
		Handlers: map[wire.TaskKind]agent.Handler{wire.Inspect: do},
		Client:   srv.Client(), Poll: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { a.Run(ctx) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return s, srv
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestTaskReachesTheAgentOnceAndItsResultIsKept(t *testing.T) {
	t.Parallel()
	h := New(Config{Grants: grants{"t": n1}})
	var ran atomic.Int32
	start(t, h, "t", func(_ context.Context, _ json.RawMessage, tell func(wire.Progress)) (any, error) {
		ran.Add(1)
		return wire.Hardware{BIOS: "seen"}, nil
	})
	ctx := within(t)
	id, err := h.Wait(ctx, n1)
	if err != nil || id.Serial != "SN1" {
		t.Fatalf("hello: %v, %v", id, err)
	}
	for range 2 {
		out, err := h.Do(ctx, n1, wire.Task{Key: "k", Kind: wire.Inspect}, nil)
		var hw wire.Hardware
		if err != nil || json.Unmarshal(out, &hw) != nil || hw.BIOS != "seen" {
			t.Fatalf("result %s, %v", out, err)
		}
	}
	if ran.Load() != 1 {
		t.Errorf("task ran %d times, want once for one key", ran.Load())
	}
}

func TestRestartedControllerGetsTheResultOfARunningTask(t *testing.T) {
	t.Parallel()
	first := New(Config{Grants: grants{"t": n1}})
	var ran atomic.Int32
	goOn := make(chan struct{})
	s, _ := start(t, first, "t", func(ctx context.Context, _ json.RawMessage, _ func(wire.Progress)) (any, error) {
		ran.Add(1)
		<-goOn
		return wire.Hardware{}, nil
	})
	ctx := within(t)
	if _, err := first.Wait(ctx, n1); err != nil {
		t.Fatal(err)
	}
	cut, cancel := context.WithCancel(ctx)
	asked := make(chan error, 1)
	go func() {
		_, err := first.Do(cut, n1, wire.Task{Key: "k", Kind: wire.Inspect}, nil)
		asked <- err
	}()
	for ran.Load() == 0 {
		if ctx.Err() != nil {
			t.Fatal("the task never started")
		}
		time.Sleep(5 * time.Millisecond)
	}
	cancel() // the controller dies in the middle of the task
	<-asked
	second := New(Config{Grants: grants{"t": n1}})
	s.hub.Store(second)
	close(goOn)
	if _, err := second.Do(ctx, n1, wire.Task{Key: "k", Kind: wire.Inspect}, nil); err != nil {
		t.Fatal(err)
	}
	if ran.Load() != 1 {
		t.Errorf("task ran %d times over a restart of the controller, want once", ran.Load())
	}
}

func TestAgentErrorKeepsKindAndAction(t *testing.T) {
	t.Parallel()
	h := New(Config{Grants: grants{"t": n1}})
	start(t, h, "t", func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
		return nil, errkind.New(errkind.Mismatch, "disk is another").Do("look")
	})
	_, err := h.Do(within(t), n1, wire.Task{Key: "k", Kind: wire.Inspect}, nil)
	if errkind.Of(err) != errkind.Mismatch || errkind.Action(err) != "look" || err.Error() != "disk is another" {
		t.Errorf("got %v (%v, %q)", err, errkind.Of(err), errkind.Action(err))
	}
}

// TestBegunTravels: a task that failed after it had begun is not one that did nothing.
func TestBegunTravels(t *testing.T) {
	t.Parallel()
	h := New(Config{Grants: grants{"t": n1}})
	start(t, h, "t", func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
		return nil, errkind.Begun(&wire.PartError{Part: wire.PartChunk, Err: errkind.New(errkind.Corrupt, "chunk 7 came corrupt")})
	})
	_, err := h.Do(within(t), n1, wire.Task{Key: "k", Kind: wire.Inspect}, nil)
	p, ok := errors.AsType[*wire.PartError](err)
	if !errkind.HasBegun(err) || errkind.Of(err) != errkind.Corrupt || !ok || p.Part != wire.PartChunk {
		t.Errorf("got %v: begun %v, kind %v, part %+v", err, errkind.HasBegun(err), errkind.Of(err), p)
	}
}

func TestUnknownTokenGetsNothing(t *testing.T) {
	t.Parallel()
	h := New(Config{Grants: grants{"t": n1}})
	start(t, h, "wrong", nil)
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	if id, err := h.Wait(ctx, n1); err == nil {
		t.Errorf("an agent with a wrong token was greeted: %v", id)
	}
}

func handlerFunc(s *swap) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.hub.Load().Handler().ServeHTTP(w, r) })
}
