// SPDX-License-Identifier: Apache-2.0

// Package trunk knows the cables between the switches of a fabric: which a test loaded,
// which counted errors meanwhile, and which are at fault for transfers that are bad
// between leaves although both nodes are good with others.
package trunk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/target"
)

// cable is a trunk: its two ends as cables name them, and the switches there.
type cable struct {
	lower, upper             fabric.SwitchPort
	lowerSwitch, upperSwitch string
}

// cablesOf lists the cables between switches of a fabric, in the order of the site.
func cablesOf(inv *inventory.Inventory, f *inventory.Fabric) (list []cable) {
	for _, c := range inv.Cables {
		low, high := c.From, c.To
		if low.Switch == nil || high.Switch == nil || low.Switch.Fabric != f && high.Switch.Fabric != f && c.Fabric != f {
			continue
		}
		if low.Switch.Tier.Height() > high.Switch.Tier.Height() {
			low, high = high, low
		}
		list = append(list, cable{low.String(), high.String(), low.Switch.Name, high.Switch.Name})
	}
	return list
}

// Limits of what a port counts while a test runs.
const (
	// quiet is how many packets a cable may carry without being loaded: what manages a
	// fabric sends tens to hundreds (measured: 16 a port for a sweep by ibnetdiscover and
	// opensm), and the shortest transfer of a test 50,000 of 4 KiB (200 MB).
	quiet = 10_000
	// mostErrors is how fast errors of a port may rise under load, a second. Source: the
	// limits of NVSentinel's NIC health monitor for symbol_error and port_rcv_errors; its limit for
	// link_downed is none at all.
	mostErrors = 10
	// saturated is where the error counters of InfiniBand stop (IBTA, PortCounters: 16 bits).
	saturated = 1<<16 - 1
)

// Watch is the trunks of one fabric while a test runs.
type Watch struct {
	inv    *inventory.Inventory
	fabric *inventory.Fabric
	cables []cable
	read   target.CounterReader
	began  time.Time
	before map[fabric.SwitchPort]fabric.SwitchCounters
	err    error // why counters were not read, or not all
}

// begin reads the counters of a fabric's trunks before a test; nil: the fabric has none.
// A reader of nil reads nothing.
func begin(ctx context.Context, inv *inventory.Inventory, f *inventory.Fabric, read target.CounterReader, now time.Time) *Watch {
	w := &Watch{inv: inv, fabric: f, cables: cablesOf(inv, f), read: read, began: now}
	if len(w.cables) == 0 {
		return nil
	}
	w.before = w.counters(ctx)
	return w
}

// counters reads the counters as far as they can be.
func (w *Watch) counters(ctx context.Context) map[fabric.SwitchPort]fabric.SwitchCounters {
	if w.read == nil {
		return nil
	}
	now, err := w.read(ctx, w.fabric)
	if err != nil {
		w.err = err
	}
	return now
}

// Load is what the trunks of a fabric carried during a test.
type Load struct {
	fabric string
	all    int
	idle   []string // lower ends of cables that carried next to nothing
	unread int      // cables of which neither end was read before and after
	err    error
	Worn   []Worn
}

// Worn is an end of a cable at which more arrived damaged than a good link lets, or whose link went
// down.
type Worn struct {
	Trunk string // its lower end
	At    fabric.SwitchPort
	does  string // of the cable: "makes errors"
	says  string // what was counted
}

// String says what was counted.
func (e Worn) String() string { return e.says }

// wornAt judges an end of a cable by two readings of its port; false: it is good. far is the other end,
// and from the switch there.
func wornAt(at, far fabric.SwitchPort, from string, was, is fabric.SwitchCounters, took time.Duration) (w Worn, bad bool) {
	w.At = at
	errors, downed, whole := grown(is.Errors, was.Errors), grown(is.Downed, was.Downed), took.Round(time.Second)
	switch {
	case is.Down && !was.Down:
		w.does, w.says = "has no link", fmt.Sprintf("%s, which had a link to %s before, has none", at, far)
	case is.Down:
		w.does, w.says = "has no link", fmt.Sprintf("%s has no link to %s", at, far)
	case downed > 0:
		w.does, w.says = "lost its link", fmt.Sprintf("%s lost its link to %s %d times in %s", at, from, downed, whole)
	case errors > 0 && float64(errors) > min(mostErrors*took.Seconds(), saturated/2):
		w.does, w.says = "makes errors", fmt.Sprintf("%s counted %d errors in %s of load, of what comes from %s", at, errors, whole, from)
	default:
		return w, false
	}
	return w, true
}

// Now reads the counters again and says what was carried so far.
func (w *Watch) Now(ctx context.Context, now time.Time) Load {
	after := w.counters(ctx)
	l := Load{fabric: w.fabric.Name, all: len(w.cables), err: w.err}
	for _, c := range w.cables {
		packets, read := uint64(0), false
		for i, at := range []fabric.SwitchPort{c.lower, c.upper} {
			was, before := w.before[at]
			is, known := after[at]
			if !before || !known {
				continue
			}
			read = true
			packets = max(packets, grown(is.Sent, was.Sent)+grown(is.Received, was.Received))
			if worn, bad := wornAt(at, []string{c.upper, c.lower}[i], []string{c.upperSwitch, c.lowerSwitch}[i], was, is, now.Sub(w.began)); bad {
				worn.Trunk = c.lower
				l.Worn = append(l.Worn, worn)
			}
		}
		switch {
		case !read:
			l.unread++
		case packets < quiet:
			l.idle = append(l.idle, c.lower)
		}
	}
	return l
}

// Loaded reports whether every cable carried data; false where one could not be read.
func (l Load) Loaded() bool { return len(l.idle) == 0 && l.unread == 0 }

// grown is by how much a counter rose; one that was reset meanwhile says nothing.
func grown(now, was uint64) uint64 {
	if now < was {
		return 0
	}
	return now - was
}

// notTested says in sentences what of the trunks of one fabric a test does not speak of.
func (l Load) notTested() (list []string) {
	if len(l.idle) > 0 {
		list = append(list, fmt.Sprintf("%d of %d cables between switches of fabric %s carried no data during the test: %s", len(l.idle), l.all, l.fabric, namePorts(l.idle)))
	}
	if l.unread > 0 {
		why := "the site gives no way to ask their switches"
		if l.err != nil {
			why = l.err.Error()
		}
		list = append(list, fmt.Sprintf("whether the test loaded %d of %d cables between switches of fabric %s is not known: %s", l.unread, l.all, l.fabric, why))
	}
	return list
}

// mostSwitches is how many switches a sentence about cables names.
const mostSwitches = 32

// namePorts names ports of switches, written SWITCH/PORT, in their order: those of switches
// with the same ports in one breath.
func namePorts(list []string) string {
	of := map[string][]string{} // ports by switch
	var switches []string
	for _, at := range list {
		i := strings.LastIndex(at, "/")
		if of[at[:i]] == nil {
			switches = append(switches, at[:i])
		}
		of[at[:i]] = append(of[at[:i]], at[i+1:])
	}
	alike := map[string][]string{} // switches by their ports
	var ports []string
	for _, s := range switches {
		key := strings.Join(of[s], ", ")
		if alike[key] == nil {
			ports = append(ports, key)
		}
		alike[key] = append(alike[key], s)
	}
	var parts []string
	for _, p := range ports {
		if all := alike[p]; len(all) == 1 && !strings.Contains(p, ",") {
			parts = append(parts, all[0]+"/"+p)
		} else {
			parts = append(parts, fmt.Sprintf("port %s of %s", p, subject.Some(all, mostSwitches)))
		}
	}
	return strings.Join(parts, "; ")
}

// Watches are those of the fabrics of some nodes, by the fabric's name; nil: it has no
// trunks.
type Watches map[string]*Watch

// Loads are what the trunks of fabrics carried, by the fabric's name.
type Loads map[string]Load

// BeginAll begins a watch of every fabric of nodes.
func BeginAll(ctx context.Context, inv *inventory.Inventory, nodes []*inventory.Node, read target.CounterReader, now time.Time) Watches {
	all := Watches{}
	for _, n := range nodes {
		for _, f := range fabric.Of(n) {
			if _, known := all[f.Name]; !known {
				all[f.Name] = begin(ctx, inv, f, read, now)
			}
		}
	}
	return all
}

// End ends all watches.
func (w Watches) End(ctx context.Context, now time.Time) Loads {
	all := Loads{}
	for name, one := range w {
		if one != nil {
			all[name] = one.Now(ctx, now)
		}
	}
	return all
}

// NotTested says in sentences what of the trunks a test does not speak of.
func (l Loads) NotTested() (list []string) {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		list = append(list, l[name].notTested()...)
	}
	return list
}
