// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// notes is a recorder that keeps what it is given.
type notes struct {
	mu  sync.Mutex
	all []boot.Evidence
}

func (n *notes) Record(e boot.Evidence) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, e)
}

// first returns the first event of a word.
func (n *notes) first(what string) (boot.Evidence, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.all {
		if e.What == what {
			return e, true
		}
	}
	return boot.Evidence{}, false
}

// clientFrom calls from an address of the loopback.
func clientFrom(ip string) *http.Client {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	return &http.Client{Transport: &http.Transport{DialContext: d.DialContext}, Timeout: 5 * time.Minute}
}

// call makes one call of the agent API with n1's token.
func call(t *testing.T, srv *httptest.Server, from, method, path string, body any) (int, string) {
	t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer t")
	c := clientFrom(from)
	defer c.CloseIdleConnections()
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(text)
}

func hello(id string) wire.Hello { return wire.Hello{Version: wire.Version, Attempt: "a1", BootID: id} }

func forged(i, bytes int) wire.Result {
	return wire.Result{Key: fmt.Sprintf("forged-%d", i), Kind: wire.Inspect, Output: json.RawMessage(`"` + strings.Repeat("x", bytes) + `"`)}
}

// TestLongResultsThatNobodyAskedForAreNotKept sends 120 results of 3 MiB with the token
// of n1, from its own address and from an unknown client's.
func TestLongResultsThatNobodyAskedForAreNotKept(t *testing.T) {
	t.Parallel()
	saw := &notes{}
	h := New(Config{Grants: grants{"t": n1}, Recorder: saw})
	srv := httptest.NewServer(h.Handler())
	t.Cleanup(srv.Close)
	call(t, srv, "127.0.0.1", "POST", wire.PathHello, hello("b1"))
	many := 120
	if testing.Short() {
		many = 12
	}
	for i := range many {
		if status, _ := call(t, srv, "127.0.0.1", "POST", wire.PathResult, forged(i, 3<<20)); status != http.StatusAccepted {
			t.Fatalf("result %d: %d, want 202: not kept", i, status)
		}
	}
	if status, _ := call(t, srv, "127.0.0.9", "POST", wire.PathResult, forged(0, 10)); status != http.StatusForbidden {
		t.Errorf("an unknown client's result: %d, want 403", status)
	}
	if status, _ := call(t, srv, "127.0.0.1", "POST", wire.PathResult, forged(0, maxResult)); status != http.StatusBadRequest {
		t.Errorf("a result of more than its limit: %d, want 400", status)
	}
	srv.CloseClientConnections()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.of(n1); len(a.results) != 0 || a.kept != 0 {
		t.Errorf("%d results of %d bytes are kept, with %d MiB of heap", len(a.results), a.kept, m.HeapAlloc>>20)
	}
	if e, ok := saw.first(eventUnasked); !ok || e.Node != "n1" || !strings.Contains(e.Detail, "forged-0") {
		t.Errorf("evidence %+v", e)
	}
}

// TestResultsOfAnAttemptHaveABudget: also keys that were asked for do not fill the
// memory, and a key keeps its first result.
func TestResultsOfAnAttemptHaveABudget(t *testing.T) {
	t.Parallel()
	h := New(Config{Grants: grants{"t": n1}})
	srv := httptest.NewServer(h.Handler())
	t.Cleanup(srv.Close)
	call(t, srv, "127.0.0.1", "POST", wire.PathHello, hello("b1"))
	h.mu.Lock()
	for i := range 10 {
		h.of(n1).asked[fmt.Sprintf("forged-%d", i)] = true
	}
	h.mu.Unlock()
	for i := range 10 {
		status, _ := call(t, srv, "127.0.0.1", "POST", wire.PathResult, forged(i, 3<<20))
		if want := map[bool]int{true: http.StatusNoContent, false: http.StatusInsufficientStorage}[i < 5]; status != want {
			t.Errorf("result %d: %d, want %d", i, status, want)
		}
	}
	if status, _ := call(t, srv, "127.0.0.1", "POST", wire.PathResult, forged(0, 5)); status != http.StatusNoContent {
		t.Errorf("a result that is sent again: %d", status)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.of(n1); a.kept > maxResults || len(a.results["forged-0"].Output) < 3<<20 {
		t.Errorf("%d bytes are kept; the first result has %d", a.kept, len(a.results["forged-0"].Output))
	}
}

func TestTokenIsBoundToTheAddressOfItsNode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, from, node string
		status           int
	}{
		{"its own", "127.0.0.1", "n1", http.StatusOK},
		{"another node's", "127.0.0.2", "n2", http.StatusForbidden},
		{"an unknown client's", "127.0.0.9", "", http.StatusForbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			saw := &notes{}
			h := New(Config{Grants: grants{"t": n1}, Recorder: saw})
			srv := httptest.NewServer(h.Handler())
			t.Cleanup(srv.Close)
			status, text := call(t, srv, tt.from, "POST", wire.PathHello, hello("b1"))
			if status != tt.status {
				t.Errorf("%d %s, want %d", status, text, tt.status)
			}
			e, stolen := saw.first(eventToken)
			if stolen != (status != http.StatusOK) || stolen && (e.Address.String() != tt.from || e.Node != tt.node || !strings.Contains(e.Detail, "n1")) {
				t.Errorf("evidence %+v", e)
			}
			if _, here := h.Connected(n1); here != (status == http.StatusOK) {
				t.Errorf("connected: %v", here)
			}
		})
	}
}

// TestRamdiskAsksAfterItsAttempt: until its ramdisk is gone the agent asks on, which
// nobody has to correct; the same token from another address is.
func TestRamdiskAsksAfterItsAttempt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, token, from, what, node string }{
		{"of its node", "over", "127.0.0.1", eventEnded, "n1"},
		{"from another node", "over", "127.0.0.2", eventRefused, "n2"},
		{"from an unknown client", "over", "127.0.0.9", eventRefused, ""},
		{"that nobody gave", "guess", "127.0.0.1", eventRefused, "n1"},
	} {
		t.Run("a token "+tt.name, func(t *testing.T) {
			t.Parallel()
			saw := &notes{}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, wire.PathTask+"?wait=0s", nil)
			r.RemoteAddr = tt.from + ":4000"
			r.Header.Set("Authorization", "Bearer "+tt.token)
			w := httptest.NewRecorder()
			began := time.Now()
			h := New(Config{Grants: grants{"t": n1}, Recorder: saw})
			h.Handler().ServeHTTP(w, r)
			if asks := h.Asking("n1", began); (asks != "") != (tt.what == eventEnded) || h.Asking("n1", time.Now().Add(time.Hour)) != "" {
				t.Errorf("n1 asks with attempt %q", asks)
			}
			if w.Code != http.StatusUnauthorized {
				t.Errorf("%d, want 401", w.Code)
			}
			if e, ok := saw.first(tt.what); !ok || len(saw.all) != 1 || e.Node != tt.node || e.Refused != (tt.what == eventRefused) {
				t.Errorf("evidence %+v", saw.all)
			}
		})
	}
}

// TestTwoBootsOfOneAttemptCloseIt: who waits is told, and neither machine gets a task.
func TestTwoBootsOfOneAttemptCloseIt(t *testing.T) {
	t.Parallel()
	saw := &notes{}
	h := New(Config{Grants: grants{"t": n1}, Recorder: saw})
	srv := httptest.NewServer(h.Handler())
	t.Cleanup(srv.Close)
	call(t, srv, "127.0.0.1", "POST", wire.PathHello, hello("b1"))
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	go func() {
		_, err := h.Do(ctx, n1, wire.Task{Key: "k", Kind: wire.Configure}, nil)
		done <- err
	}()
	if status, _ := call(t, srv, "127.0.0.1", "POST", wire.PathHello, hello("b2")); status != http.StatusForbidden {
		t.Errorf("the second hello: %d, want 403", status)
	}
	err := <-done
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || errkind.Of(err) != errkind.Conflict || errkind.Action(err) == "" || !strings.Contains(conflict.Cause, "b2") {
		t.Errorf("the task ends with %v (%v, %q)", err, errkind.Of(err), errkind.Action(err))
	}
	if status, _ := call(t, srv, "127.0.0.1", "GET", wire.PathTask+"?wait=0s", nil); status != http.StatusForbidden {
		t.Errorf("a task is asked for: %d, want 403", status)
	}
	if _, err := h.Wait(ctx, n1); err == nil {
		t.Error("the agent counts as connected")
	}
	if e, ok := saw.first(eventConflict); !ok || e.Node != "n1" {
		t.Errorf("evidence %+v", e)
	}
}

// TestStolenAddressFailsClosed: another MAC answers for the node's address.
func TestStolenAddressFailsClosed(t *testing.T) {
	t.Parallel()
	saw := &notes{}
	thief := addr.MAC{2, 0, 0, 0, 0, 0x66}
	h := New(Config{Grants: grants{"t": n1}, Recorder: saw, OtherOwner: func(boot.Client) (addr.MAC, bool) { return thief, true }})
	srv := httptest.NewServer(h.Handler())
	t.Cleanup(srv.Close)
	if status, _ := call(t, srv, "127.0.0.1", "POST", wire.PathHello, hello("b1")); status != http.StatusForbidden {
		t.Errorf("hello: %d, want 403", status)
	}
	_, err := h.Wait(t.Context(), n1)
	if err == nil || !strings.Contains(err.Error(), thief.String()) || !strings.Contains(err.Error(), "02:00:00:00:00:01") {
		t.Errorf("got %v, want both MACs", err)
	}
	if e, ok := saw.first(eventConflict); !ok || !strings.Contains(e.Detail, thief.String()) {
		t.Errorf("evidence %+v", e)
	}
}
