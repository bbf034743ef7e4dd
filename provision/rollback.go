package provision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision/acceptance"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/overrides"
)

// Rollback is an operator's request to bring nodes back to what they were accepted
// with. Prepare it, plan with Nodes as PlanOptions.Replace and Targets, record it
// when the plan is approved, then apply the plan.
type Rollback struct {
	Nodes  []string
	To     int // of the list of acceptances, from 1; 0: the last one that is not what the node has now
	By     string
	Reason string
	At     time.Time
	Pins   []overrides.Pin // what comes of it; set by PrepareRollback
}

// PrepareRollback finds what each node goes back to and makes sure that all of it
// is still there. It returns the site that requests it, whose plans are made for it.
// Nothing is changed in the state or on any node.
func (s *Site) PrepareRollback(ctx context.Context, r state.Reader, o *Rollback) (*Site, error) {
	s, err := s.Desired(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	if _, err := s.named(o.Nodes); err != nil {
		return nil, err
	}
	var failed error
	o.Pins = nil
	for _, name := range o.Nodes {
		pin, err := s.pinFor(ctx, r, name, o)
		failed = errors.Join(failed, err)
		o.Pins = append(o.Pins, pin)
	}
	if failed != nil {
		o.Pins = nil
		return nil, failed
	}
	asks := *s
	asks.requested.Pins = o.Pins
	return asks.Desired(ctx, r, nil)
}

// pinFor chooses what one node goes back to.
func (s *Site) pinFor(ctx context.Context, r state.Reader, name string, o *Rollback) (overrides.Pin, error) {
	list, err := acceptance.ReadHistory(ctx, r, name)
	if err != nil {
		return overrides.Pin{}, err
	}
	now, err := s.written(ctx, r, name)
	if err != nil {
		return overrides.Pin{}, err
	}
	var to acceptance.Accepted
	switch {
	case len(list) == 0:
		return overrides.Pin{}, errkind.New(errkind.Refused, "%s was never accepted with an image that ironrail wrote, so that there is nothing to go back to", name).
			Do(fmt.Sprintf("`ironrail rebuild %s` installs what the site's files say.", name))
	case o.To > len(list):
		return overrides.Pin{}, errkind.New(errkind.Refused, "%s has no acceptance number %d: there are %d on record", name, o.To, len(list)).
			Do(fmt.Sprintf("`ironrail rollback --list %s` shows them.", name))
	case o.To > 0:
		to = list[o.To-1]
	default:
		i := slices.IndexFunc(list, func(a acceptance.Accepted) bool { return a.Digest != now })
		if i < 0 && len(list) > 1 {
			i = 1 // the same image with other drivers
		}
		if i < 0 {
			return overrides.Pin{}, errkind.New(errkind.Refused, "%s has the image that it was accepted with, %s, and no other acceptance is on record", name, store.Short(now)).
				Do(fmt.Sprintf("`ironrail rebuild %s` installs it again.", name))
		}
		to = list[i]
	}
	pin := overrides.Pin{Node: name, Image: to.Image, Digest: to.Digest, Drivers: to.Drivers, By: o.By, Reason: o.Reason, At: o.At.UTC()}
	return pin, s.restorable(ctx, pin)
}

// written is the digest of the image that was written to a node last; "" for none.
func (s *Site) written(ctx context.Context, r state.Reader, name string) (string, error) {
	f, version, err := state.Get[fact.Fact](ctx, r, state.FactKey(install.WriteFact.Of(subject.OfNode(name))))
	if err != nil || version == state.Absent {
		return "", err
	}
	w, err := install.WriteFact.Get(f)
	return w.Image, err
}

// restorable refuses a pin whose image or packages are not there any more: nothing
// is erased for what cannot be written again.
func (s *Site) restorable(ctx context.Context, p overrides.Pin) error {
	if s.Artifacts.Images == nil || !s.Artifacts.Images.Has(p.Digest) {
		return errkind.New(errkind.Mismatch, "image %s, which %s was accepted with, is not in the image store any more", store.Short(p.Digest), p.Node).
			Do("Bring it back from a backup of the state folder, or choose another one: `ironrail rollback --list " + p.Node + "`. Nothing was erased.")
	}
	for _, d := range p.Drivers {
		b, err := s.over.DriverBlock(d, p)
		if err != nil {
			return err
		}
		kept, err := s.Artifacts.KeepRepository(ctx, b, p.Image, p.Digest)
		if err != nil {
			return err
		}
		if !kept {
			return errkind.New(errkind.Mismatch, "the packages of driver %s that %s was accepted with (for image %s) are not there any more: a later build took their place", d.Name, p.Node, store.Short(p.Digest)).
				Do("Bring the folder repo of the state folder back from a backup, or choose another acceptance: `ironrail rollback --list " + p.Node + "`. Nothing was erased.")
		}
	}
	return nil
}
