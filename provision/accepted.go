package provision

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
// accepted with: an AcceptedHistory in JSON, by the name of the node. The format
// only grows.
const acceptedKind = "accepted"

// mostAccepted is how many acceptances of a node are remembered.
const mostAccepted = 5

// AcceptedHistory is what a node was accepted with, the last first.
type AcceptedHistory struct {
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

// RecordAccepted remembers what the nodes were accepted with that a run accepted,
// from what the state has of their steps: that is what is on them, whatever the
// site's files say by now. Packages that a rollback needs are kept.
func (s *Site) RecordAccepted(ctx context.Context, store state.Store, fence state.Fence, run string) error {
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
		old, _, err := state.Get[AcceptedHistory](ctx, store, state.Key{Kind: acceptedKind, Name: name})
		if err != nil {
			return err
		}
		if len(old.List) > 0 && !old.List[0].At.Before(n.AcceptedAt) {
			continue
		}
		now, ok, err := s.acceptedNow(ctx, store, n)
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
		if err := s.Artifacts.KeepPackages(context.WithoutCancel(ctx), s.over, now.Image, now.Digest, now.Drivers); err != nil {
			return err
		}
	}
	if len(b.Puts) == 0 {
		return nil
	}
	_, err = store.Append(ctx, fence, b)
	return err
}

// with is the history with one more acceptance.
func (h AcceptedHistory) with(now Accepted) AcceptedHistory {
	list := []Accepted{now}
	for i, a := range h.List {
		if i == 0 && a.same(now) || len(list) == mostAccepted {
			continue
		}
		list = append(list, a)
	}
	return AcceptedHistory{list}
}

// acceptedNow is what an accepted node is made of; false for one that ironrail did
// not install.
func (s *Site) acceptedNow(ctx context.Context, r state.Reader, n state.Node) (Accepted, bool, error) {
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
	node, ok := s.Inv.Node(n.Name)
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

// AcceptedOf reads what a node was accepted with, the last first.
func (s *Site) AcceptedOf(ctx context.Context, r state.Reader, node string) ([]Accepted, error) {
	h, _, err := state.Get[AcceptedHistory](ctx, r, state.Key{Kind: acceptedKind, Name: node})
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
