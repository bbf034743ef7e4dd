// SPDX-License-Identifier: Apache-2.0

package services

import (
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/netboot"
)

// Bounds of what is remembered of the boot services' sightings.
const (
	perNode = 200 // sightings of one node
	strange = 500 // sightings of clients that nobody knows
)

// Witness remembers what the boot services saw, node by node, and shows it on
// the bus. It implements netboot.Witness and is safe for concurrent use.
type Witness struct {
	bus *event.Bus

	mu    sync.Mutex // guards nodes and alien
	nodes map[string][]install.Sighting
	alien []install.Sighting
}

// NewWitness shows on bus what was seen.
func NewWitness(bus *event.Bus) *Witness {
	return &Witness{bus: bus, nodes: map[string][]install.Sighting{}}
}

// Saw implements netboot.Witness.
func (w *Witness) Saw(e netboot.Evidence) {
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	s := install.Sighting{Evidence: e}
	w.mu.Lock()
	if e.Node == "" {
		w.alien = keep(w.alien, s, strange)
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
func keep(list []install.Sighting, s install.Sighting, most int) []install.Sighting {
	if len(list) >= most {
		list = append(list[:0:0], list[len(list)-most/2:]...)
	}
	return append(list, s)
}

// Of returns the sightings of a node since a time, oldest first.
func (w *Witness) Of(node string, since time.Time) (out []install.Sighting) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.nodes[node] {
		if !s.Time.Before(since) {
			out = append(out, s)
		}
	}
	return out
}

// Strangers returns what was seen of clients that no node owns, oldest first.
func (w *Witness) Strangers() []install.Sighting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]install.Sighting(nil), w.alien...)
}
