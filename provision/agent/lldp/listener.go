// SPDX-License-Identifier: Apache-2.0

package lldp

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
)

// Interval is how long a listener listens: devices speak every 30 s (802.1AB,
// 9.2.5.7), and at once when a link comes up.
const Interval = 35 * time.Second

// Source is where frames come from. Listen brings the links up that are not,
// and hands over each frame that arrives on one of the NICs, until ctx ends; then
// it returns nil. heard is called by several goroutines and keeps the frame no
// longer than the call.
type Source interface {
	Listen(ctx context.Context, nics []string, heard func(nic string, frame []byte)) error
}

// NIC is where is listened.
type NIC struct{ Name, PCI string }

// Listener collects a node's neighbours in the background, from the boot on: what
// was heard so far can be asked for at any time. Start it once.
type Listener struct {
	nics []NIC
	done chan struct{}

	mu       sync.Mutex // guards what follows
	received map[string]PDU
	err      error
}

// Start listens on nics, at most for a time (0: Interval) and until ctx ends. It
// returns at once; one goroutine ends with ctx or the time.
func Start(ctx context.Context, source Source, nics []NIC, most time.Duration) *Listener {
	if most <= 0 {
		most = Interval
	}
	l := &Listener{nics: nics, done: make(chan struct{}), received: map[string]PDU{}}
	names := make([]string, len(nics))
	for i, n := range nics {
		names[i] = n.Name
	}
	go func() {
		defer close(l.done)
		ctx, cancel := context.WithTimeout(ctx, most)
		defer cancel()
		err := source.Listen(ctx, names, func(nic string, frame []byte) {
			if l.take(nic, frame) {
				cancel() // each has spoken
			}
		})
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
	}()
	return l
}

// take keeps what a frame says, and reports whether all NICs have heard one.
// Frames that do not parse are as good as none.
func (l *Listener) take(nic string, frame []byte) bool {
	p, err := ParseFrame(frame)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err != nil || !slices.ContainsFunc(l.nics, func(n NIC) bool { return n.Name == nic }):
	case p.TTL == 0:
		delete(l.received, nic)
	default:
		l.received[nic] = p
	}
	return len(l.received) == len(l.nics)
}

// Wait waits until the listening is over: every NIC has heard its neighbour, or
// the time has passed. The error is why it could not listen, or that of ctx.
func (l *Listener) Wait(ctx context.Context) error {
	select {
	case <-l.done:
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Neighbours is what was heard so far, in the order of the NICs.
func (l *Listener) Neighbours() (list []wire.Neighbour) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.nics {
		if p, ok := l.received[n.Name]; ok {
			list = append(list, wire.Neighbour{NIC: n.Name, PCI: n.PCI, ChassisID: p.ChassisID, PortID: p.port(), SystemName: p.SystemName})
		}
	}
	return list
}

// port is the port's name. One that identifies itself by a MAC says its name in
// the description, as lldpd does by default.
func (p PDU) port() string {
	if strings.Count(p.PortID, ":") == 5 && p.PortDescription != "" {
		return p.PortDescription
	}
	return p.PortID
}
