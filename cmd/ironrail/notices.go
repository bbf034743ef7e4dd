// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/notify"
)

// notices sends what happens in a run to the receivers that the site names.
type notices struct {
	app      *app
	bus      *event.Bus
	notifier *notify.Notifier

	mu     sync.Mutex // guards the fields below
	closed bool
	late   []string // what went wrong once the view had ended
}

// openNotices finds the secrets for the receivers of a site.
func (a *app) openNotices(site *provision.Site, bus *event.Bus) (*notices, error) {
	n := &notices{app: a, bus: bus}
	var err error
	n.notifier, err = site.Notifier(n.say)
	return n, err
}

// say shows what went wrong with a receiver, or keeps it where nothing is shown any more.
func (n *notices) say(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		n.late = append(n.late, text)
		return
	}
	n.bus.Emit(event.Event{Type: event.Note, Text: text})
}

// follow sends the events of the bus until its end; ctx ends nothing.
func (n *notices) follow(ctx context.Context, wg *sync.WaitGroup) {
	if n.notifier.Empty() {
		return
	}
	next := n.bus.Subscribe(0).Next
	wg.Go(func() { n.notifier.Follow(context.WithoutCancel(ctx), next) })
}

// closeBus ends the stream of events.
func (n *notices) closeBus() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.bus.Close()
}

// complain says what was kept.
func (n *notices) complain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, text := range n.late {
		n.app.sayf("%s", text)
	}
}
