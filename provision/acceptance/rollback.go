// SPDX-License-Identifier: Apache-2.0

package acceptance

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
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/overrides"
)

// Rollback is an operator's request to bring nodes back to what they were accepted
// with. Prepare it with Site.PrepareRollback, plan with Nodes as PlanOptions.Replace and
// Targets, record it when the plan is approved, then apply the plan.
type Rollback struct {
	Nodes  []string
	To     int // of the list of acceptances, from 1; 0: the last one that is not what the node has now
	By     string
	Reason string
	At     time.Time
	Pins   []overrides.Pin // what comes of it; set by ChoosePins
}

// ChoosePins sets the Pins: what each node goes back to. restorable refuses a pin whose
// image or packages are not there any more. Where one node cannot go back, none does.
func (o *Rollback) ChoosePins(ctx context.Context, r state.Reader, restorable func(context.Context, overrides.Pin) error) error {
	var failed error
	o.Pins = nil
	for _, name := range o.Nodes {
		pin, err := o.pinFor(ctx, r, name)
		if err == nil {
			err = restorable(ctx, pin)
		}
		failed = errors.Join(failed, err)
		o.Pins = append(o.Pins, pin)
	}
	if failed != nil {
		o.Pins = nil
	}
	return failed
}

// pinFor chooses what one node goes back to.
func (o *Rollback) pinFor(ctx context.Context, r state.Reader, name string) (overrides.Pin, error) {
	list, err := ReadHistory(ctx, r, name)
	if err != nil {
		return overrides.Pin{}, err
	}
	now, err := written(ctx, r, name)
	if err != nil {
		return overrides.Pin{}, err
	}
	var to Accepted
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
		i := slices.IndexFunc(list, func(a Accepted) bool { return a.Digest != now })
		if i < 0 && len(list) > 1 {
			i = 1 // the same image with other drivers
		}
		if i < 0 {
			return overrides.Pin{}, errkind.New(errkind.Refused, "%s has the image that it was accepted with, %s, and no other acceptance is on record", name, store.Short(now)).
				Do(fmt.Sprintf("`ironrail rebuild %s` installs it again.", name))
		}
		to = list[i]
	}
	return overrides.Pin{Node: name, Image: to.Image, Digest: to.Digest, Drivers: to.Drivers, By: o.By, Reason: o.Reason, At: o.At.UTC()}, nil
}

// written is the digest of the image that was written to a node last; "" for none.
func written(ctx context.Context, r state.Reader, name string) (string, error) {
	f, version, err := state.Get[fact.Fact](ctx, r, state.FactKey(install.WriteFact.Of(subject.OfNode(name))))
	if err != nil || version == state.Absent {
		return "", err
	}
	w, err := install.WriteFact.Get(f)
	return w.Image, err
}
