// SPDX-License-Identifier: Apache-2.0

package lldp

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// listenTimeout is how long OnNode's answer waits after the listening has begun: links
// of 100 Gb/s and more train for some seconds, and a switch speaks when one is up.
const listenTimeout = 15 * time.Second

// ethernet is ARPHRD_ETHER of a network interface's type.
const ethernet = "1"

// NICs lists a node's Ethernet interfaces that have a PCI parent: a BMC's USB NIC
// and InfiniBand are not among them.
func NICs(fs sysfs.FS) (list []NIC) {
	for _, name := range fs.Netdevs() {
		if fs.Text("sys/class/net", name, "type") == ethernet {
			list = append(list, NIC{Name: name, PCI: fs.NetdevPCI(name)})
		}
	}
	return list
}

// ListenNode listens on the NICs of an installed node until each has heard its
// neighbour, Interval has passed or ctx ends. It fails when it cannot listen on any.
func ListenNode(ctx context.Context, source Source, fs sysfs.FS) (r wire.Neighbours) {
	l := Start(ctx, source, NICs(fs), 0)
	if err := l.Wait(ctx); err != nil {
		r.Error = &wire.TaskError{Kind: errkind.Of(err).String(), Text: "listen for LLDP: " + err.Error(), Action: errkind.Action(err)}
	}
	r.Neighbours = l.Neighbours()
	return r
}

// OnNode listens on the node's NICs once ready is closed, that is once its devices
// are there, in the background until each has heard its neighbour, Interval has
// passed or ctx ends. What it returns tells who was heard: it waits for all, at
// most for listenTimeout from the beginning of the listening on, and may be called
// again later for those that spoke late. A node that cannot listen hears nothing.
func OnNode(ctx context.Context, source Source, fs sysfs.FS, ready <-chan struct{}) func() []wire.Neighbour {
	started := make(chan struct{})
	var l *Listener // set before started is closed
	var until time.Time
	go func() {
		defer close(started)
		select {
		case <-ready:
			l, until = Start(ctx, source, NICs(fs), 0), time.Now().Add(listenTimeout)
		case <-ctx.Done():
		}
	}()
	return func() []wire.Neighbour {
		<-started
		if l == nil {
			return nil
		}
		wait, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		_ = l.Wait(wait) // whoever is silent is unknown
		return l.Neighbours()
	}
}
