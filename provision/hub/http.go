package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/agent/wire"
)

// Limits of the agent API.
const (
	maxBody = 8 << 20          // bytes of one request
	maxPoll = 45 * time.Second // longest time that a poll is held
)

// Handler serves the agent API. The listener must be TLS with the pinned key.
func (h *Hub) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+wire.PathHello, h.granted(h.hello))
	mux.HandleFunc("GET "+wire.PathTask, h.granted(h.task))
	mux.HandleFunc("POST "+wire.PathProgress, h.granted(h.progress))
	mux.HandleFunc("POST "+wire.PathResult, h.granted(h.result))
	return mux
}

// granted lets only requests through whose token stands for a boot attempt.
func (h *Hub) granted(next func(http.ResponseWriter, *http.Request, Grant)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		g, known := Grant{}, false
		if ok {
			g, known = h.grants.Grant(token)
		}
		if !known {
			http.Error(w, "this boot attempt is not open: its node was installed, or it has expired", http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		next(w, r, g)
	}
}

// read decodes a request's JSON; a false return has answered already.
func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		http.Error(w, fmt.Sprintf("request is not the JSON of this call: %v", err), http.StatusBadRequest)
		return false
	}
	return true
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// An error here is a connection that broke: the agent asks again.
	_ = json.NewEncoder(w).Encode(v)
}

func (h *Hub) hello(w http.ResponseWriter, r *http.Request, g Grant) {
	var hello wire.Hello
	if !read(w, r, &hello) {
		return
	}
	switch {
	case hello.Version != wire.Version:
		http.Error(w, fmt.Sprintf("this controller speaks version %d of the agent protocol, not %d", wire.Version, hello.Version), http.StatusUpgradeRequired)
		return
	case hello.Attempt != g.Attempt:
		http.Error(w, "the token is of another boot attempt", http.StatusForbidden)
		return
	}
	h.mu.Lock()
	a := h.of(g)
	a.greeted, a.bootID, a.identity, a.seen = true, hello.BootID, hello.Identity, time.Now()
	for _, t := range a.tasks {
		t.sent = time.Time{} // an agent that says hello may have been born again
	}
	a.wake()
	h.mu.Unlock()
	answer(w, wire.Welcome{Node: g.Node, Clock: time.Now().UTC()})
}

func (h *Hub) task(w http.ResponseWriter, r *http.Request, g Grant) {
	wait, err := time.ParseDuration(r.URL.Query().Get("wait"))
	if err != nil || wait < 0 {
		http.Error(w, "wait is not a duration such as 30s", http.StatusBadRequest)
		return
	}
	deadline := time.Now().Add(min(wait, maxPoll))
	var next *wire.Task
	var known bool
	err = h.until(r.Context(), g, min(wait, maxPoll), func() bool {
		next, known = h.take(g)
		return !known || next != nil || !time.Now().Before(deadline)
	})
	switch {
	case err != nil: // the agent hung up
	case !known:
		http.Error(w, "say hello first", http.StatusConflict)
	case next == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, next)
	}
}

// again is after how long a task without a result is sent once more: the poll that
// took it may have been a dead connection's. An agent that is on it, or done with
// it, says so.
const again = time.Minute

// take returns the first task that this boot of the agent was not sent, lately;
// known is false when the agent has not said hello to this process. Callers hold mu.
func (h *Hub) take(g Grant) (t *wire.Task, known bool) {
	a := h.agents[g]
	if a == nil || !a.greeted {
		return nil, false
	}
	a.seen = time.Now()
	for _, p := range a.tasks {
		if time.Since(p.sent) > again {
			p.sent = time.Now()
			return &p.Task, true
		}
	}
	return nil, true
}

func (h *Hub) progress(w http.ResponseWriter, r *http.Request, g Grant) {
	var p wire.Progress
	if !read(w, r, &p) {
		return
	}
	h.mu.Lock()
	a := h.of(g)
	a.seen = time.Now()
	var tell func(wire.Progress)
	for _, t := range a.tasks {
		if t.Key == p.Key {
			tell = t.progress
		}
	}
	h.mu.Unlock()
	if tell != nil {
		tell(p)
	}
	w.WriteHeader(http.StatusNoContent)
}

func (h *Hub) result(w http.ResponseWriter, r *http.Request, g Grant) {
	var res wire.Result
	if !read(w, r, &res) {
		return
	}
	if res.Key == "" || (res.Error == nil) == (res.Output == nil) {
		http.Error(w, "a result has a key and either an output or an error", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	a := h.of(g)
	a.seen = time.Now()
	a.results[res.Key] = res
	a.wake()
	h.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}
