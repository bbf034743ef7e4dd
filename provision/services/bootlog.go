// SPDX-License-Identifier: Apache-2.0

package services

import (
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
)

// Bounds of what is remembered of the boot services' events.
const (
	perNode    = 200 // events of one node
	perUnknown = 500 // events of unknown clients
)

// BootLog remembers what the boot services saw, node by node, and shows it on
// the bus. It implements netboot.Recorder and is safe for concurrent use.
type BootLog struct {
	bus *event.Bus

	mu      sync.Mutex // guards nodes and unknown
	nodes   map[string][]install.BootEvent
	unknown []install.BootEvent
}

// NewBootLog shows on bus what was seen.
func NewBootLog(bus *event.Bus) *BootLog {
	return &BootLog{bus: bus, nodes: map[string][]install.BootEvent{}}
}

// Record implements netboot.Recorder.
func (w *BootLog) Record(e netboot.Evidence) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	s := install.BootEvent{Evidence: e}
	w.mu.Lock()
	if e.Node == "" {
		w.unknown = keep(w.unknown, s, perUnknown)
	} else {
		w.nodes[e.Node] = keep(w.nodes[e.Node], s, perNode)
	}
	w.mu.Unlock()
	data := map[string]string{"proto": string(e.Proto), "what": e.What, "mac": e.MAC.String()}
	if e.Refused {
		data["refused"] = "true"
	}
	w.bus.Emit(event.Event{Time: e.Time.UTC(), Type: event.Evidence, Node: e.Node, Text: string(e.Proto) + " " + e.What + ": " + e.Detail, Done: e.Bytes, Data: data})
}

// keep appends and lets the oldest go.
func keep(list []install.BootEvent, s install.BootEvent, most int) []install.BootEvent {
	if len(list) >= most {
		list = append(list[:0:0], list[len(list)-most/2:]...)
	}
	return append(list, s)
}

// Of returns the events of a node since a time, oldest first.
func (w *BootLog) Of(node string, since time.Time) (out []install.BootEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.nodes[node] {
		if !s.Time.Before(since) {
			out = append(out, s)
		}
	}
	return out
}

// Unknown returns what was seen of clients that no node owns, oldest first.
func (w *BootLog) Unknown() []install.BootEvent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]install.BootEvent(nil), w.unknown...)
}
