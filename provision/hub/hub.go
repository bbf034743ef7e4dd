// SPDX-License-Identifier: Apache-2.0

// Package hub is the controller's half of the conversation with node agents:
// it answers hello, hands out tasks, and takes progress and results. It keeps
// nothing on disk: after a restart agents say hello again and send the results
// that nobody acknowledged. It never learns why a task is asked for.
package hub

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// silence is how long an agent may say nothing before it counts as gone. It
// polls every 30 s and reports progress more often.
const silence = 100 * time.Second

// Grant is what a bearer token stands for.
type Grant struct {
	Node    string
	Attempt string
}

// Grants tells what a token stands for; false when it is unknown or has
// expired. It is called on every request, from many goroutines.
type Grants interface {
	Grant(token string) (Grant, bool)
	// Ended returns what a token stood for that this controller gave and that is good
	// no more; false when it gave none such.
	Ended(token string) (Grant, bool)
	// ByAddress returns whom an address is reserved for.
	ByAddress(netip.Addr) (boot.Client, bool)
	// BootedSince reports whether the ramdisk of an attempt was fetched after t: a
	// node that starts again has to.
	BootedSince(g Grant, t time.Time) bool
}

// Config is what a hub needs. Grants is required.
type Config struct {
	Grants   Grants
	Recorder boot.Recorder // of refused requests and of conflicts; nil: they are not recorded
	// OtherOwner returns the MAC that answers for a node's address when it is none
	// of the node's, for the check of each request; false: it is, or nobody knows.
	// Nil: not checked. It must not block.
	OtherOwner func(boot.Client) (addr.MAC, bool)
}

// Hub holds the agents that are connected. Make it with New.
type Hub struct {
	cfg Config

	mu     sync.Mutex // guards agents and all that they hold, and asking
	agents map[Grant]*peer
	asking map[string]asked // by node: the last request with the token of an attempt that is not open
}

// asked is a request with the token of an attempt that is not open.
type asked struct {
	attempt string
	at      time.Time
}

// peer is one boot attempt's agent.
type peer struct {
	bootID   string
	identity wire.Identity
	greeted  bool
	seen     time.Time
	helloAt  time.Time       // of the last hello of this boot
	refetch  time.Time       // since when the ramdisk is known to be fetched again after helloAt; zero: it was not
	earlier  map[string]bool // ids of boots that this one came after
	tasks    []*task         // in the order in which they were asked for
	asked    map[string]bool // keys that were ever asked for: only their results are kept
	results  map[string]wire.Result
	kept     int            // bytes of results
	reading  bool           // a result is being read: one at a time
	conflict *ConflictError // this attempt is closed
	changed  chan struct{}  // closed and replaced when anything of this agent changes
}

// task is one that is not ended.
type task struct {
	wire.Task
	sent     time.Time // to this boot of the agent; zero: not yet
	progress func(wire.Progress)
}

// New makes a hub that trusts the tokens of its Grants.
func New(cfg Config) *Hub {
	return &Hub{cfg: cfg, agents: map[Grant]*peer{}, asking: map[string]asked{}}
}

// of returns the agent of a grant, made when it is new. Callers hold mu.
func (h *Hub) of(g Grant) *peer {
	a := h.agents[g]
	if a == nil {
		a = &peer{earlier: map[string]bool{}, asked: map[string]bool{}, results: map[string]wire.Result{}, changed: make(chan struct{})}
		h.agents[g] = a
	}
	return a
}

// wake tells all that wait for this agent that something changed: nobody else,
// since thousands wait at a time. The hub's mu is held.
func (a *peer) wake() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// until waits until ready, called under mu, returns true. Each change of the
// grant's agent and each passing of every are a reason to look again; every of
// zero waits for changes only.
func (h *Hub) until(ctx context.Context, g Grant, every time.Duration, ready func() bool) error {
	for {
		h.mu.Lock()
		ok, changed := ready(), h.of(g).changed
		h.mu.Unlock()
		if ok {
			return nil
		}
		again, cancel := ctx, context.CancelFunc(func() {})
		if every > 0 {
			again, cancel = context.WithTimeout(ctx, every)
		}
		select {
		case <-changed:
		case <-again.Done():
		}
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// Asking returns the boot attempt by whose token the ramdisk of a node has asked from its own
// address since a time, although the attempt is not open; "": it has not.
func (h *Hub) Asking(node string, since time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.asking[node]; !a.at.Before(since) {
		return a.attempt
	}
	return ""
}

// Connected reports whether the agent of a boot attempt has said hello and been
// heard of lately, and who it says it is.
func (h *Hub) Connected(g Grant) (wire.Identity, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.agents[g]
	if a == nil || !a.greeted || a.conflict != nil || time.Since(a.seen) > silence {
		return wire.Identity{}, false
	}
	return a.identity, true
}

// Wait waits until the agent of a boot attempt has said hello. The error is that of
// ctx, or a ConflictError.
func (h *Hub) Wait(ctx context.Context, g Grant) (wire.Identity, error) {
	var conflict *ConflictError
	err := h.until(ctx, g, 0, func() bool {
		conflict = h.of(g).conflict
		return h.of(g).greeted || conflict != nil
	})
	if err != nil {
		return wire.Identity{}, err
	}
	if conflict != nil {
		return wire.Identity{}, conflict
	}
	id, _ := h.Connected(g)
	return id, nil
}

// Do asks the agent for one task and waits for its result. A key that has a
// result already returns it at once. progress may be nil; it is also told of a task of
// another key that an earlier process asked for and that the agent has not ended.
// The error is of kind Unreachable when the agent falls silent, a ConflictError when
// another machine speaks for the node, that of the agent when the task failed, and
// that of ctx; the agent goes on working on the task after the
// latter, and the same key may be asked for again.
func (h *Hub) Do(ctx context.Context, g Grant, t wire.Task, progress func(wire.Progress)) (json.RawMessage, error) {
	h.mu.Lock()
	a := h.of(g)
	a.asked[t.Key] = true
	if _, done := a.results[t.Key]; !done {
		a.tasks = append(a.tasks, &task{Task: t, progress: progress})
		a.wake()
	}
	h.mu.Unlock()
	defer h.dropTask(a, t.Key)
	var result wire.Result
	var gone bool
	var conflict *ConflictError
	err := h.until(ctx, g, silence/4, func() (ok bool) {
		result, ok = a.results[t.Key]
		gone = a.greeted && time.Since(a.seen) > silence
		conflict = a.conflict
		return ok || gone || conflict != nil
	})
	switch {
	case err != nil:
		return nil, err
	case conflict != nil:
		return nil, conflict
	case result.Key == "":
		return nil, errkind.New(errkind.Unreachable, "the agent was not heard of for %v in task %s", silence, t.Kind).
			Do("Look at the node's console; it may have lost power, its link or its kernel.")
	case result.Error != nil:
		return nil, taskError(*result.Error)
	}
	return result.Output, nil
}

// dropTask takes a task out of the line; its result, if any, is kept.
func (h *Hub) dropTask(a *peer, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, t := range a.tasks {
		if t.Key == key {
			a.tasks = append(a.tasks[:i:i], a.tasks[i+1:]...)
			return
		}
	}
}

// taskError turns an agent's error into one of ours.
func taskError(e wire.TaskError) error {
	var err error = errkind.New(errkind.Named(e.Kind), "%s", e.Text).Do(e.Action)
	if e.Part != "" {
		err = &wire.PartError{Part: e.Part, Err: err}
	}
	if e.Begun {
		err = errkind.Begun(err)
	}
	return err
}

// Drop forgets a boot attempt: it has ended.
func (h *Hub) Drop(g Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.agents[g]; a != nil {
		delete(h.agents, g)
		a.wake()
	}
}
