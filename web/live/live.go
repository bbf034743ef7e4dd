// SPDX-License-Identifier: Apache-2.0

// Package live sends the changes of a site to whoever looks at it, as server-sent events
// (HTML Living Standard, 9.2). The site is read while somebody is connected, once for all.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/ironrail/ironrail/web/view"
)

// The limits of the stream.
const (
	maxClients    = 64
	maxPerAddress = 16
	waiting       = 8                // messages that a client may be behind; then it begins anew
	every         = time.Second      // between two readings
	beat          = 20 * time.Second // between two signs of life
	lineTime      = 10 * time.Second // for a client to take one message
	streamTime    = time.Hour        // of a stream; then it is asked for again, by who may still look
	retryAfter    = 3000             // milliseconds, for a client that lost the stream
)

// Hub is the stream. Run it beside the server.
type Hub struct {
	Keeper *view.Keeper
	life   time.Duration // of a stream

	mu      sync.Mutex // guards what follows
	clients map[*client]bool
	perAddr map[string]int
	last    *view.Snapshot // nil: nobody was connected
	wake    chan struct{}  // a client came
}

// client is one connection.
type client struct {
	addr     string
	messages chan []byte
}

// New makes a hub without clients.
func New(k *view.Keeper) *Hub {
	return &Hub{Keeper: k, life: streamTime, clients: map[*client]bool{}, perAddr: map[string]int{}, wake: make(chan struct{}, 1)}
}

// Run reads the site while somebody is connected, until ctx is done.
func (h *Hub) Run(ctx context.Context) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		if h.isAlone() {
			select {
			case <-ctx.Done():
				return
			case <-h.wake:
			}
		}
		now, err := h.Keeper.Current(ctx)
		if err == nil && now != nil {
			h.follow(now)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// isAlone reports whether nobody is connected, and forgets the last reading then.
func (h *Hub) isAlone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.clients) == 0 {
		h.last = nil
		return true
	}
	return false
}

// follow sends what a reading changes, and after the first which one it is.
func (h *Hub) follow(now *view.Snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch last := h.last; {
	case last == nil:
		for c := range h.clients {
			c.messages <- greeting(now) // its first: there is room
		}
	case now.Generation != last.Generation:
		h.send(now.ChangesSince(last))
	}
	h.last = now
}

// greeting is a client's first message: the reading from which on it is sent changes. A page that
// was made of another one is to be read again.
func greeting(s *view.Snapshot) []byte {
	return fmt.Appendf(nil, "event: reading\nid: %d\ndata: {\"generation\":%[1]d}\n\n", s.Generation)
}

func (h *Hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// send gives a change to all; a client that is too far behind is disconnected, and connects again. It
// is called with h.mu held.
func (h *Hub) send(c view.Change) {
	text, err := json.Marshal(c)
	if err != nil {
		return // cannot be: texts and numbers
	}
	message := fmt.Appendf(nil, "event: change\nid: %d\ndata: %s\n\n", c.Generation, text)
	for c := range h.clients {
		select {
		case c.messages <- message:
		default:
			h.remove(c)
		}
	}
}

// add adds a client; nil where there are too many.
func (h *Hub) add(addr string) *client {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.clients) >= maxClients || h.perAddr[addr] >= maxPerAddress {
		return nil
	}
	c := &client{addr, make(chan []byte, waiting)}
	h.clients[c] = true
	h.perAddr[addr]++
	if h.last != nil {
		c.messages <- greeting(h.last)
	}
	select {
	case h.wake <- struct{}{}:
	default:
	}
	return c
}

// remove is called with h.mu held. Removing a client again does nothing.
func (h *Hub) remove(c *client) {
	if !h.clients[c] {
		return
	}
	delete(h.clients, c)
	close(c.messages)
	if h.perAddr[c.addr]--; h.perAddr[c.addr] == 0 {
		delete(h.perAddr, c.addr)
	}
}

// ServeHTTP streams changes until the client goes away.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	addr, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		addr = r.RemoteAddr
	}
	c := h.add(addr)
	if c == nil {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many live views at once", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.remove(c)
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy in front must not hold lines back
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{}) // nothing more is read
	write := func(b []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(lineTime))
		_, err := w.Write(b)
		err = errors.Join(err, out.Flush())
		_ = out.SetWriteDeadline(time.Time{}) // HTTP/2 resets a stream whose deadline passes, written to or not
		return err == nil
	}
	if !write(fmt.Appendf(nil, "retry: %d\n\n", retryAfter)) {
		return
	}
	t := time.NewTicker(beat)
	defer t.Stop()
	over := time.NewTimer(h.life)
	defer over.Stop()
	for {
		ok := true
		select {
		case <-r.Context().Done():
			return
		case <-over.C:
			return
		case message, more := <-c.messages:
			if !more {
				return
			}
			ok = write(message)
		case <-t.C:
			ok = write([]byte(": still here\n\n"))
		}
		if !ok {
			return
		}
	}
}
