// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// Limits of the agent API. A result of a node with thousands of PCI functions and
// neighbours has 1 MiB.
const (
	maxWords   = 64 << 10         // bytes of a hello or a progress
	maxResult  = 4 << 20          // bytes of one result
	maxResults = 16 << 20         // bytes of results kept of one boot attempt
	maxPoll    = 45 * time.Second // longest time that a poll is held
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

// granted lets only requests through whose token stands for a boot attempt and that
// come from the address of its node.
func (h *Hub) granted(next func(http.ResponseWriter, *http.Request, Grant)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		g, known := Grant{}, false
		if ok {
			g, known = h.cfg.Grants.Grant(token)
		}
		from := boot.AddressOf(r.RemoteAddr)
		if !known {
			h.refuseUnknown(w, r, token, from)
			return
		}
		c, _ := h.cfg.Grants.ByAddress(from)
		if c.Node != g.Node || c.Kind == boot.BMC {
			h.refuse(w, r, http.StatusForbidden, eventToken, from, fmt.Sprintf("the token is of a boot attempt of %s, and %s is not its address", g.Node, from))
			return
		}
		if h.cfg.OtherOwner != nil {
			if mac, other := h.cfg.OtherOwner(c); other {
				h.Conflict(g, OtherMAC(c, mac))
			}
		}
		if r.URL.Path != wire.PathHello {
			h.besideBoot(g, from)
		}
		if conflict := h.conflictOf(g); conflict != nil {
			http.Error(w, conflict.Error(), http.StatusForbidden)
			return
		}
		next(w, r, g)
	}
}

// refuseUnknown refuses a token that stands for no live boot attempt. Where it stood for
// one of the node that has ended, that is no fault of the site: the agent asks until its
// ramdisk is gone.
func (h *Hub) refuseUnknown(w http.ResponseWriter, r *http.Request, token string, from netip.Addr) {
	c, _ := h.cfg.Grants.ByAddress(from)
	g, ended := h.cfg.Grants.Ended(token)
	if !ended || c.Node != g.Node || c.Kind == boot.BMC {
		h.refuse(w, r, http.StatusUnauthorized, eventRefused, from, "this boot attempt is not open: its node was installed, or it has expired")
		return
	}
	h.mu.Lock()
	h.asking[g.Node] = asked{g.Attempt, time.Now()}
	h.mu.Unlock()
	w.Header().Set("Connection", "close")
	http.Error(w, "this boot attempt has ended", http.StatusUnauthorized)
	h.recordEvent(boot.Evidence{Node: g.Node, Address: from, What: eventEnded, Detail: r.Method + " " + r.URL.Path + ": its boot attempt has ended, and its ramdisk still runs"})
}

// refuse answers with the reason and tells the recorder.
func (h *Hub) refuse(w http.ResponseWriter, r *http.Request, status int, what string, from netip.Addr, why string) {
	w.Header().Set("Connection", "close")
	http.Error(w, why, status)
	c, _ := h.cfg.Grants.ByAddress(from)
	h.recordEvent(boot.Evidence{Node: c.Node, Address: from, What: what, Detail: r.Method + " " + r.URL.Path + ": " + why, Refused: true})
}

// readBody decodes a request's JSON of at most so many bytes; a false return has
// answered already.
func readBody(w http.ResponseWriter, r *http.Request, most int64, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, most)).Decode(into); err != nil {
		http.Error(w, fmt.Sprintf("request is not the JSON of this call: %v", err), http.StatusBadRequest)
		return false
	}
	return true
}

func writeAnswer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	// An error here is a connection that broke: the agent asks again.
	_ = json.NewEncoder(w).Encode(v)
}

func (h *Hub) hello(w http.ResponseWriter, r *http.Request, g Grant) {
	var hello wire.Hello
	if !readBody(w, r, maxWords, &hello) {
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
	if a.bootID != "" && a.bootID != hello.BootID {
		h.mu.Unlock()
		if !h.startedAgain(g, boot.AddressOf(r.RemoteAddr), hello.BootID) {
			http.Error(w, "another machine speaks for this node", http.StatusForbidden)
			return
		}
		h.mu.Lock()
		a = h.of(g)
	}
	now := time.Now()
	a.greeted, a.bootID, a.identity, a.seen, a.helloAt, a.refetch = true, hello.BootID, hello.Identity, now, now, time.Time{}
	for _, t := range a.tasks {
		t.sent = time.Time{} // an agent that says hello may have been born again
	}
	a.wake()
	h.mu.Unlock()
	writeAnswer(w, wire.HelloReply{Node: g.Node, Clock: time.Now().UTC()})
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
		writeAnswer(w, next)
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
	if !readBody(w, r, maxWords, &p) {
		return
	}
	h.mu.Lock()
	a := h.of(g)
	a.seen = time.Now()
	listening := a.listeners(p.Key)
	h.mu.Unlock()
	for _, tell := range listening {
		tell(p)
	}
	w.WriteHeader(http.StatusNoContent)
}

// listeners are who is told the progress of a task: who asked for it, or, of one that
// an earlier process asked for, all whose tasks wait behind it. Callers hold mu.
func (a *peer) listeners(key string) (listening []func(wire.Progress)) {
	var waiting []func(wire.Progress)
	for _, t := range a.tasks {
		switch {
		case t.Key == key:
			if t.progress == nil {
				return nil
			}
			return []func(wire.Progress){t.progress}
		case t.progress != nil:
			waiting = append(waiting, t.progress)
		}
	}
	return waiting
}

// result keeps the result of a key that was asked for, once. One that nobody asked
// this process for is answered 202: the agent keeps it, and sends it again when it
// is asked for, as after a restart of the controller.
func (h *Hub) result(w http.ResponseWriter, r *http.Request, g Grant) {
	if !h.begin(g) {
		http.Error(w, "another result of this boot attempt is being sent", http.StatusServiceUnavailable)
		return
	}
	defer h.end(g)
	var res wire.Result
	if !readBody(w, r, maxResult, &res) {
		return
	}
	if res.Key == "" || (res.Error == nil) == (res.Output == nil) {
		http.Error(w, "a result has a key and either an output or an error", http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	a := h.of(g)
	a.seen = time.Now()
	_, have := a.results[res.Key]
	asked, size := a.asked[res.Key], sizeOf(res)
	fits := a.kept+size <= maxResults
	if asked && !have && fits && a.conflict == nil {
		a.results[res.Key] = res
		a.kept += size
		a.wake()
	}
	h.mu.Unlock()
	switch {
	case !asked:
		h.recordEvent(boot.Evidence{Node: g.Node, Address: boot.AddressOf(r.RemoteAddr), What: eventUnasked, Detail: fmt.Sprintf("a result of %.*q that was not asked for is not kept", longestKey, res.Key)})
		w.WriteHeader(http.StatusAccepted)
	case !have && !fits:
		h.refuse(w, r, http.StatusInsufficientStorage, eventRefused, boot.AddressOf(r.RemoteAddr), fmt.Sprintf("the results of this boot attempt have more than %d bytes", maxResults))
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// longestKey is how many bytes of a key are repeated in evidence.
const longestKey = 100

// sizeOf returns what a result takes of the budget of its attempt.
func sizeOf(res wire.Result) int {
	n := len(res.Key) + len(res.Output)
	if res.Error != nil {
		n += len(res.Error.Text) + len(res.Error.Action)
	}
	return n
}

// begin reserves the one place for a result that is being read; end gives it back.
func (h *Hub) begin(g Grant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.of(g)
	free := !a.reading
	a.reading = true
	return free
}

func (h *Hub) end(g Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of(g).reading = false
}
