// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

// What words of the evidence.
const (
	eventRefused   = "refused"
	eventEnded     = "ended"            // the node's ramdisk asks on after its attempt
	eventToken     = "stolen-token"     // the token of a node from an address that is not its own
	eventUnasked   = "unasked-result"   // of a key that this process did not ask for
	eventRestarted = "started-again"    // the node booted a second time within the attempt
	eventConflict  = "address-conflict" // two machines speak for one node: the attempt is closed
)

// ConflictError is why a boot attempt was closed: two machines speak for its node,
// and which of them is the node cannot be told. Nobody is given a task, and nothing
// that either says is kept.
type ConflictError struct {
	Node     string
	Cause    string
	Evidence []string
}

// Error says what was seen.
func (e *ConflictError) Error() string { return e.Cause }

// Unwrap gives the conflict its kind and action.
func (e *ConflictError) Unwrap() error {
	return errkind.New(errkind.Conflict, "%s", e.Cause).Do(e.Action())
}

// Action is what is to be done about it.
func (e *ConflictError) Action() string {
	return fmt.Sprintf("Find the second machine by its MAC in the address table of the switches and take it off the boot network, then run `ironrail apply` again: %s was given no task and none of its keys was taken.", e.Node)
}

// OtherMAC is the conflict of a node whose address another MAC answers for.
func OtherMAC(c boot.Client, mac addr.MAC) ConflictError {
	own := "none"
	if len(c.MACs) > 0 {
		own = c.MACs[0].String()
	}
	return ConflictError{Node: c.Node, Cause: fmt.Sprintf("address %s of %s is used by another machine: MAC %s answers for it, and the node has %s", c.Address.Addr(), c.Node, mac, own),
		Evidence: []string{"MAC of the node by the inventory: " + own, "MAC that answers for " + c.Address.Addr().String() + ": " + mac.String()}}
}

// Conflict closes a boot attempt: who waits for its agent or a task gets the error,
// and no request of it is answered any more. The first conflict stays.
func (h *Hub) Conflict(g Grant, c ConflictError) {
	h.mu.Lock()
	a := h.of(g)
	first := a.conflict == nil
	if first {
		a.conflict = &c
		clear(a.results)
		a.kept = 0
		a.wake()
	}
	h.mu.Unlock()
	if first {
		h.recordEvent(boot.Evidence{Node: g.Node, What: eventConflict, Detail: c.Cause, Refused: true})
	}
}

func (h *Hub) conflictOf(g Grant) *ConflictError {
	h.mu.Lock()
	defer h.mu.Unlock()
	if a := h.agents[g]; a != nil {
		return a.conflict
	}
	return nil
}

// startedAgain judges a second boot id within an attempt. A node that was reset
// fetches its ramdisk again before it says hello; a hello without that, or with the
// id of a boot that has ended, is another machine's.
func (h *Hub) startedAgain(g Grant, from netip.Addr, id string) bool {
	h.mu.Lock()
	a := h.of(g)
	last, back := a.helloAt, a.earlier[id]
	old := a.bootID
	h.mu.Unlock()
	if back || !h.cfg.Grants.BootedSince(g, last) {
		cause := fmt.Sprintf("two machines say that they are %s in one boot attempt: boot ids %.*q and %.*q, both from %s", g.Node, longestKey, old, longestKey, id, from)
		h.Conflict(g, ConflictError{Node: g.Node, Cause: cause, Evidence: []string{"the second did not fetch the ramdisk, or had ended before"}})
		return false
	}
	h.mu.Lock()
	h.of(g).earlier[old] = true
	h.mu.Unlock()
	h.recordEvent(boot.Evidence{Node: g.Node, Address: from, What: eventRestarted, Detail: "the node fetched its ramdisk again and says hello with another boot id: it was reset within its boot attempt"})
	return true
}

// overlap is how long after the ramdisk was fetched again the last call of a boot that
// has ended may be read: it has waited here, since a reset ends what the node sends.
const overlap = 15 * time.Second

// besideBoot judges a call of a boot that has said hello. A node that fetches its
// ramdisk was reset, and says hello before all else: when the boot of before still
// calls, another machine with its address fetched.
func (h *Hub) besideBoot(g Grant, from netip.Addr) {
	h.mu.Lock()
	a, now := h.agents[g], time.Now()
	if a == nil || !a.greeted {
		h.mu.Unlock()
		return
	}
	id, greeted := a.bootID, a.helloAt
	h.mu.Unlock()
	if !h.cfg.Grants.BootedSince(g, greeted) {
		return
	}
	h.mu.Lock()
	if a.helloAt != greeted { // the next boot is here
		h.mu.Unlock()
		return
	}
	if a.refetch.IsZero() {
		a.refetch = now
	}
	since := a.refetch
	h.mu.Unlock()
	if now.Sub(since) < overlap {
		return
	}
	cause := fmt.Sprintf("two machines say that they are %s in one boot attempt: its ramdisk was fetched again from %s, and boot %.*q of before goes on", g.Node, from, longestKey, id)
	h.Conflict(g, ConflictError{Node: g.Node, Cause: cause, Evidence: []string{
		"hello of the boot that goes on: " + greeted.UTC().Format(time.TimeOnly),
		"its ramdisk was fetched again by " + since.UTC().Format(time.TimeOnly) + "; a node that does so was reset, and its agent says hello anew"}})
}

// recordEvent fills in when, and hands the event to the recorder, if there is one.
func (h *Hub) recordEvent(e boot.Evidence) {
	if h.cfg.Recorder == nil {
		return
	}
	e.Time, e.Proto = time.Now(), boot.Agent
	h.cfg.Recorder.Record(e)
}
