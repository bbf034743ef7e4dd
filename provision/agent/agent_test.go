// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

// controller is a small one, over real TLS, that can be stopped and started again.
type controller struct {
	t      *testing.T
	server *httptest.Server
	addr   string

	mu       sync.Mutex
	hellos   []wire.Hello
	queue    []wire.Task // handed out in order
	progress []wire.Progress
	results  chan wire.Result
	refuse   atomic.Int32 // results to answer with 503
}

func newController(t *testing.T) *controller {
	t.Helper()
	c := &controller{t: t, results: make(chan wire.Result, 16), addr: loopback() + ":0"}
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

// controllers counts those of this process.
var controllers atomic.Uint32

// loopback returns an address that nobody else uses, so that a port which is closed
// and opened again is not taken meanwhile.
func loopback() string {
	n := controllers.Add(1)
	return fmt.Sprintf("127.%d.%d.%d", 128+os.Getpid()%64, n>>7, 1+n&127)
}

// start serves with the same certificate as before: httptest's own.
func (c *controller) start() {
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.server = httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	c.server.Listener.Close()
	c.server.Listener = listener
	c.server.StartTLS()
	c.addr = listener.Addr().String()
}

func (c *controller) stop() {
	c.server.CloseClientConnections()
	c.server.Close()
}

func (c *controller) pin() string {
	sum := sha256.Sum256(c.server.Certificate().RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (c *controller) boot() wire.Boot {
	return wire.Boot{Version: wire.Version, Node: "n1", Attempt: "a1", Token: "sesame", Controller: "https://" + c.addr, Pin: c.pin()}
}

func (c *controller) add(tasks ...wire.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queue = append(c.queue, tasks...)
}

func (c *controller) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer sesame" {
		http.Error(w, "unknown token", http.StatusUnauthorized)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.URL.Path {
	case wire.PathHello:
		var h wire.Hello
		json.NewDecoder(r.Body).Decode(&h)
		c.hellos = append(c.hellos, h)
		json.NewEncoder(w).Encode(wire.HelloReply{Node: "n1", Clock: time.Now().Add(time.Hour)})
	case wire.PathTask:
		if len(c.queue) == 0 {
			c.mu.Unlock()
			select {
			case <-r.Context().Done():
			case <-time.After(20 * time.Millisecond):
			}
			c.mu.Lock()
			w.WriteHeader(http.StatusNoContent)
			return
		}
		task := c.queue[0]
		c.queue = c.queue[1:]
		json.NewEncoder(w).Encode(task)
	case wire.PathProgress:
		var p wire.Progress
		json.NewDecoder(r.Body).Decode(&p)
		c.progress = append(c.progress, p)
		w.WriteHeader(http.StatusNoContent)
	case wire.PathResult:
		if c.refuse.Add(-1) >= 0 {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		var res wire.Result
		json.NewDecoder(r.Body).Decode(&res)
		c.results <- res
		w.WriteHeader(http.StatusNoContent)
	}
}

// result waits for the next acknowledged result.
func (c *controller) result() wire.Result {
	c.t.Helper()
	select {
	case r := <-c.results:
		return r
	case <-time.After(5 * time.Minute):
		c.t.Fatal("no result came")
		return wire.Result{}
	}
}

// quick is a clock on which back-off takes no time to speak of.
type quick struct{}

func (quick) Now() time.Time { return time.Now() }
func (quick) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d / 100):
		return nil
	}
}
func (quick) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// launch runs an agent until the test ends; the channel has what Run returned.
func launch(t *testing.T, cfg Config) <-chan error {
	t.Helper()
	cfg.Clock = quick{}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_, err := a.Run(ctx)
		done <- err
	}()
	t.Cleanup(func() { cancel(); <-finished })
	return done
}

func TestTasks(t *testing.T) {
	t.Parallel()
	c := newController(t)
	var runs atomic.Int32
	var clock atomic.Int64
	cfg := Config{
		Boot: c.boot(), BootID: "b1",
		SetClock: func(at time.Time) error { clock.Store(at.Unix()); return nil },
		Handlers: map[wire.TaskKind]Handler{
			wire.Inspect: func(_ context.Context, _ json.RawMessage, progress func(wire.Progress)) (any, error) {
				progress(wire.Progress{Phase: "look", Done: 1, Total: 2, Note: "first"})
				progress(wire.Progress{Phase: "look", Done: 2, Total: 2, Note: "second"})
				runs.Add(1)
				return wire.Hardware{BIOS: "x"}, nil
			},
			wire.Write: func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
				return nil, errkind.New(errkind.Mismatch, "wrong disk").Do("look")
			},
			wire.Configure: func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
				panic("boom")
			},
		},
	}
	done := launch(t, cfg)
	inspect := wire.Task{Key: "k1", Kind: wire.Inspect}
	c.add(inspect)
	if r := c.result(); r.Error != nil || !strings.Contains(string(r.Output), `"bios":"x"`) {
		t.Errorf("inspect: got %+v", r)
	}
	c.add(inspect)
	if r := c.result(); r.Error != nil || runs.Load() != 1 {
		t.Errorf("repeated key: got %+v after %d runs, want the first result after 1", r, runs.Load())
	}
	c.add(wire.Task{Key: "k2", Kind: wire.Write})
	if r := c.result(); r.Error == nil || *r.Error != (wire.TaskError{Kind: "mismatch", Text: "wrong disk", Action: "look"}) {
		t.Errorf("write: got %+v", r.Error)
	}
	c.add(wire.Task{Key: "k3", Kind: wire.Configure})
	if r := c.result(); r.Error == nil || !strings.Contains(r.Error.Text, "boom") {
		t.Errorf("panic: got %+v", r.Error)
	}
	c.add(wire.Task{Key: "k4", Kind: "fly"})
	if r := c.result(); r.Error == nil || r.Error.Kind != "unsupported" {
		t.Errorf("unknown kind: got %+v", r.Error)
	}
	if off := time.Until(time.Unix(clock.Load(), 0)); off < 59*time.Minute {
		t.Errorf("clock was set to %v from now, want an hour", off)
	}
	c.add(wire.Task{Key: "k5", Kind: wire.Reboot, Params: json.RawMessage(`{"power_off":true}`)})
	c.result()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("Run ended with %v", err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("the agent did not leave after an acknowledged reboot")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var notes []string // a slow machine sends them one by one
	for _, p := range c.progress {
		if p.Key == "k1" {
			notes = append(notes, p.Note)
		}
	}
	if last := len(c.progress) - 1; last < 0 || c.progress[last].Done != 2 || strings.Join(notes, "; ") != "first; second" {
		t.Errorf("got progress %+v", c.progress)
	}
}

// The controller dies while a task runs, comes back, and gets the result of the
// one run, although it hands out the task again.
func TestControllerRestart(t *testing.T) {
	t.Parallel()
	c := newController(t)
	var runs atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	launch(t, Config{Boot: c.boot(), Handlers: map[wire.TaskKind]Handler{
		wire.Write: func(ctx context.Context, _ json.RawMessage, _ func(wire.Progress)) (any, error) {
			if runs.Add(1) == 1 {
				close(begun)
			}
			select {
			case <-release:
			case <-ctx.Done():
			}
			return wire.WriteResult{Size: 7}, nil
		},
	}})
	write := wire.Task{Key: "w", Kind: wire.Write}
	c.add(write)
	<-begun
	c.stop()
	c.refuse.Store(2) // and it is not well at first
	c.start()
	c.add(write, write)
	close(release)
	if r := c.result(); r.Error != nil || !strings.Contains(string(r.Output), `"size":7`) {
		t.Errorf("got %+v", r)
	}
	if runs.Load() != 1 {
		t.Errorf("the task ran %d times", runs.Load())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.hellos) < 2 {
		t.Errorf("%d hellos, want one after the restart too", len(c.hellos))
	}
}

// The agent itself is killed after its task is done and before the controller
// has heard of it.
func TestAgentCrash(t *testing.T) {
	t.Parallel()
	c := newController(t)
	var runs atomic.Int32
	cfg := Config{Boot: c.boot(), Memory: t.TempDir(), Clock: quick{}, Handlers: map[wire.TaskKind]Handler{
		wire.Inspect: func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) {
			runs.Add(1)
			return wire.Hardware{}, nil
		},
	}}
	first, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first.tasks.start(ctx)
	first.tasks.take(wire.Task{Key: "k", Kind: wire.Inspect})
	<-first.tasks.resultReady().Done()
	cancel()
	first.tasks.wait()
	launch(t, cfg)
	if r := c.result(); r.Key != "k" || r.Error != nil {
		t.Errorf("got %+v", r)
	}
	c.add(wire.Task{Key: "k", Kind: wire.Inspect})
	c.result()
	if runs.Load() != 1 {
		t.Errorf("the task ran %d times", runs.Load())
	}
}

// The controller, a new one, asks for a result once more while our first delivery of
// it is on its way: it gets it once more.
func TestAskedAgainBeforeTheAcknowledgement(t *testing.T) {
	t.Parallel()
	a, err := New(Config{Boot: wire.Boot{Version: wire.Version}, Client: http.DefaultClient, Handlers: map[wire.TaskKind]Handler{
		wire.Inspect: func(context.Context, json.RawMessage, func(wire.Progress)) (any, error) { return wire.Hardware{}, nil }}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a.tasks.start(ctx)
	defer a.tasks.wait()
	defer cancel()
	task := wire.Task{Key: "k", Kind: wire.Inspect}
	a.tasks.take(task)
	<-a.tasks.resultReady().Done()
	_, again, ok := a.tasks.undelivered()
	if !ok {
		t.Fatal("no result")
	}
	a.tasks.take(task)
	a.tasks.delivered("k", again)
	_, again, ok = a.tasks.undelivered()
	if !ok {
		t.Fatal("what was asked for again is not sent again")
	}
	a.tasks.delivered("k", again)
	if _, _, ok := a.tasks.undelivered(); ok {
		t.Error("it is sent forever")
	}
}

func TestPin(t *testing.T) {
	t.Parallel()
	c := newController(t)
	other := sha256.Sum256([]byte("other"))
	for _, test := range []struct {
		name, pin, token string
		kind             errkind.Kind
		text             string
	}{
		{"right", c.pin(), "sesame", 0, ""},
		{"another key", base64.StdEncoding.EncodeToString(other[:]), "sesame", errkind.Auth, "not the pinned one"},
		{"token of another attempt", c.pin(), "wrong", errkind.Auth, "unknown token"},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, err := PinnedClient(test.pin)
			if err != nil {
				t.Fatal(err)
			}
			call := caller{client: client, base: "https://" + c.addr, token: test.token}
			err = call.post(t.Context(), wire.PathHello, wire.Hello{}, nil)
			if test.text == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || errkind.Of(err) != test.kind || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v of kind %v, want %q of kind %v", err, errkind.Of(err), test.text, test.kind)
			}
		})
	}
	if _, err := PinnedClient("not base64"); err == nil {
		t.Error("a damaged pin was taken")
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{Boot: wire.Boot{Version: 99}}); errkind.Of(err) != errkind.Unsupported {
		t.Errorf("got %v", err)
	}
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b backoff
	longest := time.Duration(0)
	for range 50 {
		d := b.next(errkind.Unreachable)
		if d < firstWait/2 || d > longestWait {
			t.Fatalf("wait of %v", d)
		}
		longest = max(longest, d)
	}
	if longest < longestWait/2 {
		t.Errorf("the wait never grew beyond %v", longest)
	}
	if d := b.next(errkind.Auth); d < refusedWait/2 {
		t.Errorf("a refused token is tried again after %v", d)
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	a, err := New(Config{Boot: wire.Boot{Version: wire.Version, Controller: "https://127.0.0.1:1", Pin: base64.StdEncoding.EncodeToString(make([]byte, 32))}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if _, err := a.Run(ctx); err == nil {
		t.Error("Run returned no error")
	}
}

// impatient is a clock whose waits are over at once.
type impatient struct{ clock.Wall }

func (impatient) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// TestRetag: a controller that is not heard with the tag of a VLAN is sought without it, then with it again,
// and the hello says how it was found; without a VLAN, or where it refuses us, the address stays.
func TestRetag(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		vlan   int
		heard  int // after how many moves of the address; -1: always
		token  string
		moves  string // what they are to
		tagged bool   // the hello says so
	}{
		"at an untagged port":     {30, 1, "sesame", "false", false},
		"a controller that comes": {30, 2, "sesame", "false true", true},
		"at once":                 {30, -1, "sesame", "", true},
		"without a VLAN":          {0, -1, "sesame", "", true},
		"refused":                 {30, -1, "wrong", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newController(t)
			boot := k.boot()
			boot.VLAN, boot.Token = c.vlan, c.token
			var moves []string
			client, err := PinnedClientOn(boot.Pin, func(ctx context.Context, network, address string) (net.Conn, error) {
				if c.heard >= 0 && len(moves) != c.heard {
					return nil, errkind.New(errkind.Timeout, "nobody answers")
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			})
			if err != nil {
				t.Fatal(err)
			}
			tries := 0
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			a, err := New(Config{Boot: boot, Client: client, Clock: impatient{}, Poll: time.Millisecond, Identity: func() wire.Identity {
				k.mu.Lock()
				defer k.mu.Unlock()
				if tries++; tries > 3*retagAfter || len(k.hellos) > 0 {
					cancel()
				}
				return wire.Identity{}
			}, Retag: func(tagged bool) error { moves = append(moves, fmt.Sprint(tagged)); return nil }})
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for ctx.Err() == nil {
					k.mu.Lock()
					if len(k.hellos) > 0 {
						cancel()
					}
					k.mu.Unlock()
					time.Sleep(time.Millisecond)
				}
			}()
			if _, err := a.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			if got := strings.Join(moves, " "); got != c.moves || c.token == "sesame" && (len(k.hellos) == 0 || k.hellos[0].Identity.Untagged == c.tagged) {
				t.Errorf("moved to tagged %q, want %q; hellos %+v", got, c.moves, k.hellos)
			}
		})
	}
}

// TestHeardWithTag: a controller that was heard with the tag, and is gone for long, is not sought without it.
func TestHeardWithTag(t *testing.T) {
	t.Parallel()
	k := newController(t)
	boot := k.boot()
	boot.VLAN = 30
	var gone atomic.Bool
	client, err := PinnedClientOn(boot.Pin, func(ctx context.Context, network, address string) (net.Conn, error) {
		if gone.Load() {
			return nil, errkind.New(errkind.Timeout, "nobody answers")
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	a, err := New(Config{Boot: boot, Client: client, Clock: impatient{}, Poll: time.Millisecond, Identity: func() wire.Identity {
		if gone.Load() {
			if tries++; tries > 3*retagAfter {
				cancel()
			}
		}
		return wire.Identity{}
	}, Retag: func(bool) error { t.Error("the address was moved"); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil && !gone.Load() {
			k.mu.Lock()
			if len(k.hellos) > 0 {
				gone.Store(true)
				k.server.CloseClientConnections()
			}
			k.mu.Unlock()
			time.Sleep(time.Millisecond)
		}
	}()
	if _, err := a.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if tries <= 3*retagAfter {
		t.Errorf("%d tries", tries)
	}
}
