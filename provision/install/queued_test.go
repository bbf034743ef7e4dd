// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/netboot"

	"net/netip"
)

// noteTaker is the stage.Run of a step that only emits.
type noteTaker struct {
	stage.Run
	mu     sync.Mutex
	events []event.Event
	more   chan struct{} // one token at each event
}

func newNoteTaker() *noteTaker { return &noteTaker{more: make(chan struct{}, 1000)} }

func (r *noteTaker) Clock() clock.Clock { return clock.Wall{} }
func (r *noteTaker) Emit(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	r.more <- struct{}{}
}

// all is what was told.
func (r *noteTaker) all() (texts []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		texts = append(texts, e.Text)
	}
	return texts
}

// TestWaitsBehindAnEarlierWrite: the real agent still writes for a controller that was
// killed; the next one shows how far that is, in the words of the field.
func TestWaitsBehindAnEarlierWrite(t *testing.T) {
	t.Parallel()
	boots := NewBoots([]byte(strings.Repeat("k", 32)), []netboot.Client{{Node: "n1", MACs: []addr.MAC{{2, 0, 0, 0, 0, 1}}, Address: netip.MustParsePrefix("127.0.0.1/8")}}, nil)
	at := newAttempt("n1", PowerOn, time.Now())
	boots.Set(at)
	var mu sync.Mutex
	current := hub.New(hub.Config{Grants: boots})
	now := func() *hub.Hub { mu.Lock(); defer mu.Unlock(); return current }
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now().Handler().ServeHTTP(w, r) }))
	defer srv.Close()
	begun, goOn := make(chan struct{}), make(chan struct{})
	a, err := agent.New(agent.Config{BootID: "b", Poll: time.Second, Client: srv.Client(),
		Boot: wire.Boot{Version: wire.Version, Node: "n1", Attempt: at.ID, Token: boots.Token(at.ID), Controller: srv.URL},
		Handlers: map[wire.TaskKind]agent.Handler{
			wire.Write: func(ctx context.Context, _ json.RawMessage, tell func(wire.Progress)) (any, error) {
				close(begun)
				for n := int64(370); ; n++ { // of 1000
					tell(wire.Progress{Phase: "write", Done: n, Total: 1000})
					select {
					case <-goOn:
						return wire.WriteResult{}, nil
					case <-time.After(10 * time.Millisecond):
					}
				}
			},
			wire.Inspect: func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
				return wire.Hardware{Disks: []wire.Disk{{Name: "vda", Marker: "k"}}}, nil
			}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { _, _ = a.Run(ctx) })
	killed, kill := context.WithCancel(ctx)
	wg.Go(func() {
		_, _ = now().Do(killed, at.grant(), wire.Task{Key: "k", Kind: wire.Write, Params: json.RawMessage("{}")}, nil)
	})
	<-begun
	kill()
	mu.Lock()
	current = hub.New(hub.Config{Grants: boots})
	mu.Unlock()

	run, s, n := newNoteTaker(), New(site(), nil, Dependencies{Hub: now(), Boots: boots}), site().Nodes[0]
	wg.Go(func() {
		defer close(goOn)
		for ctx.Err() == nil {
			select {
			case <-run.more:
			case <-ctx.Done():
			}
			if strings.Contains(strings.Join(run.all(), "\n"), " %)") {
				return
			}
		}
	})
	found, why, err := s.probeWrite(ctx, run, n, at.ID, "k")
	if err != nil || found != stage.NotDone || !strings.Contains(why, "vda") {
		t.Errorf("probe: %v, %q, %v", found, why, err)
	}
	if got := strings.Join(run.all(), "\n"); !strings.Contains(got, "waiting for the agent: a write from the previous run may still be in progress (write, ") {
		t.Errorf("told:\n%s", got)
	}
}

// TestEarlierWriteHangs: no progress for too long ends the wait; slow progress does not.
func TestEarlierWriteHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := newNoteTaker()
		q := newQueued(run)
		ctx, cancel := context.WithCancelCause(t.Context())
		began := time.Now()
		go func() {
			for n := range int64(5) {
				time.Sleep(quiet - time.Second)
				q.progress(wire.Progress{Phase: "write", Done: n + 1, Total: 100})
			}
			for range 3 {
				time.Sleep(quiet / 4)
				q.progress(wire.Progress{Phase: "write", Done: 5, Total: 100}) // says the same
			}
		}()
		q.watch(ctx, cancel)
		if took, want := time.Since(began), 6*quiet-5*time.Second; took != want {
			t.Errorf("gave up after %v, want %v: %v after the last progress", took, want, quiet)
		}
		if err := context.Cause(ctx); errkind.Of(err) != errkind.Timeout || !strings.Contains(err.Error(), "write, 5 of 100") || errkind.Action(err) == "" {
			t.Errorf("cause %v", err)
		}
	})
}
