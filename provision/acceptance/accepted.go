// SPDX-License-Identifier: Apache-2.0

// Package acceptance reads and records what a site's nodes were accepted with: the
// history that a rollback goes back by, and the report of a run.
package acceptance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/overrides"
)

// acceptedKind is the kind of the state objects that remember what nodes were
// accepted with: an History in JSON, by the name of the node. The format
// only grows.
const acceptedKind = "accepted"

// mostAccepted is how many acceptances of a node are remembered.
const mostAccepted = 5

// History is what a node was accepted with, the last first.
type History struct {
	List []Accepted `json:"list"`
}

// Accepted is what stood on a node when it was accepted. A node that is accepted
// again with the same is one entry, of the last time.
type Accepted struct {
	At      time.Time          `json:"at"`
	Run     string             `json:"run,omitempty"`
	Image   string             `json:"image"`  // name of the block
	Digest  string             `json:"digest"` // of the image that is on its disk
	Drivers []overrides.Driver `json:"drivers,omitempty"`
}

// same reports whether two acceptances were of the same image and drivers.
func (a Accepted) same(b Accepted) bool {
	return a.Image == b.Image && a.Digest == b.Digest && slices.EqualFunc(a.Drivers, b.Drivers, func(x, y overrides.Driver) bool {
		return x.Name == y.Name && sameInputs(x.Inputs, y.Inputs)
	})
}

// sameInputs compares values; where they are declared does not matter.
func sameInputs(a, b []plan.Input) bool {
	return slices.EqualFunc(a, b, func(x, y plan.Input) bool { return x.Name == y.Name && x.Value == y.Value })
}

// Record remembers what the nodes were accepted with that a run accepted, from what
// the state has of their steps: that is what is on them, whatever the site's files say
// by now. keep is called with each before it is recorded, and keeps the packages that a
// rollback to it needs.
func Record(ctx context.Context, store state.Store, fence state.Fence, inv *inventory.Inventory, run string, keep func(Accepted) error) error {
	nodes, err := state.ReadNodes(ctx, store)
	if err != nil {
		return err
	}
	var b state.Batch
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		n := nodes[name]
		if !n.Accepted || n.AcceptedRun != run {
			continue
		}
		old, _, err := state.Get[History](ctx, store, state.Key{Kind: acceptedKind, Name: name})
		if err != nil {
			return err
		}
		if len(old.List) > 0 && !old.List[0].At.Before(n.AcceptedAt) {
			continue
		}
		now, ok, err := acceptedNow(ctx, store, inv, n)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		put, err := state.PutOf(state.Key{Kind: acceptedKind, Name: name}, old.with(now))
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, put)
		if err := keep(now); err != nil {
			return err
		}
	}
	return state.AppendParts(ctx, store, fence, b.Split()...)
}

// with is the history with one more acceptance.
func (h History) with(now Accepted) History {
	list := []Accepted{now}
	for i, a := range h.List {
		if i == 0 && a.same(now) || len(list) == mostAccepted {
			continue
		}
		list = append(list, a)
	}
	return History{list}
}

// acceptedNow is what an accepted node is made of; false for one that ironrail did
// not install.
func acceptedNow(ctx context.Context, r state.Reader, inv *inventory.Inventory, n state.Node) (Accepted, bool, error) {
	me := subject.OfNode(n.Name)
	f, version, err := state.Get[fact.Fact](ctx, r, state.FactKey(install.WriteFact.Of(me)))
	if err != nil || version == state.Absent {
		return Accepted{}, false, err
	}
	w, err := install.WriteFact.Get(f)
	if err != nil || !w.Complete {
		return Accepted{}, false, err
	}
	step, _, err := state.Get[state.Step](ctx, r, state.StepKey(install.StepOf(n.Name, install.Write)))
	if err != nil {
		return Accepted{}, false, err
	}
	a := Accepted{At: n.AcceptedAt, Run: n.AcceptedRun, Digest: w.Image}
	for _, in := range step.Inputs {
		if name, ok := strings.CutPrefix(in.Name, "image."); ok {
			a.Image = name
		}
	}
	node, ok := inv.Node(n.Name)
	if !ok || a.Image == "" {
		return Accepted{}, false, nil
	}
	a.Drivers, err = acceptedDrivers(ctx, r, node)
	return a, err == nil, err
}

// acceptedDrivers are the drivers of a node that were installed, with the packages that
// this brought.
func acceptedDrivers(ctx context.Context, r state.Reader, n *inventory.Node) (all []overrides.Driver, err error) {
	for _, d := range n.Drivers {
		st, version, err := state.Get[state.Step](ctx, r, state.StepKey(driver.StepID(n.Name, d.Name)))
		if err != nil {
			return nil, err
		}
		if version == state.Absent {
			continue
		}
		x := overrides.Driver{Name: d.Name, Inputs: st.Inputs}
		f, version, err := state.Get[fact.Fact](ctx, r, state.FactKey(driver.Packages(d.Name).Of(subject.OfNode(n.Name))))
		if err != nil {
			return nil, err
		}
		if version != state.Absent {
			got, err := driver.Packages(d.Name).Get(f)
			if err != nil {
				return nil, err
			}
			x.Packages = got.Packages
		}
		all = append(all, x)
	}
	return all, nil
}

// ReadHistory reads what a node was accepted with, the last first.
func ReadHistory(ctx context.Context, r state.Reader, node string) ([]Accepted, error) {
	h, _, err := state.Get[History](ctx, r, state.Key{Kind: acceptedKind, Name: node})
	return h.List, err
}

// String describes an acceptance in a line.
func (a Accepted) String() string {
	text := fmt.Sprintf("image.%s %s", a.Image, store.Short(a.Digest))
	for _, d := range a.Drivers {
		text += ", driver." + d.Name
		for _, in := range d.Inputs {
			if in.Name == "version" {
				text += " " + in.Value
			}
		}
	}
	return text
}
