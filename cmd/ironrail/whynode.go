// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
)

// whyNode tells what is known of a node at once, and then what its BMC answers. As
// JSON both are one object.
func (a *app) whyNode(ctx context.Context, inv *inventory.Inventory, node string, f whyFlags) error {
	y, owned, err := a.onRecord(inv).Node(ctx, node)
	if err != nil {
		return err
	}
	s := why.ExplainNode(y, owned, a.now())
	if !a.json {
		text := s.Text
		if f.all {
			text = s.FullText
		}
		if _, err := io.WriteString(a.out, text(a.now())); err != nil {
			return err
		}
	}
	if f.ask && !owned || owned && !f.offline && s.Answer.ShouldAskBMC() {
		shown := s.Answer
		err := a.interruptible(ctx, func(ctx context.Context) (err error) {
			s, err = a.whyLive(ctx, inv, s, owned)
			return err
		})
		if err != nil {
			return err
		}
		if !a.json {
			_, err = io.WriteString(a.out, s.LiveText(shown, a.now()))
			return err
		}
	}
	if a.json {
		return a.printJSON(s)
	}
	return nil
}

// whyLive asks a node's BMC, through the owner when there is one, and tells the story
// again: a step may have ended meanwhile. A run that cannot ask leaves it as it was.
func (a *app) whyLive(ctx context.Context, inv *inventory.Inventory, known why.Explanation, owned bool) (why.Explanation, error) {
	node := known.Node.Name
	if !owned {
		l, err := a.askBMC(ctx, inv, node)
		known.Look = &l
		return why.ExplainNode(known.Why, false, a.now()), err
	}
	var l control.Look
	asked, err := a.asked(func(c *control.Client) (err error) {
		l, err = c.Look(ctx, node)
		return err
	})
	switch {
	case ctx.Err() != nil:
		return known, ctx.Err()
	case err != nil:
		a.sayf("Its BMC was not asked: %v", err)
		return known, nil
	case !asked:
		a.sayf("Its BMC was not asked: the run has ended.")
		return known, nil
	}
	y, owned, err := a.onRecord(inv).Node(ctx, node)
	if err != nil { // the run ends just now: what was known stands
		y, owned = known.Why, true
	}
	y.Look = &l
	return why.ExplainNode(y, owned, a.now()), nil
}

// askBMC asks a node's BMC while there is no owner.
func (a *app) askBMC(ctx context.Context, inv *inventory.Inventory, node string) (control.Look, error) {
	r, closeState, err := a.openReader()
	if err != nil {
		return control.Look{}, err
	}
	defer closeState()
	s, err := a.openSite(inv, provision.Options{Look: true})
	if err != nil {
		return control.Look{}, err
	}
	ob, err := s.Observer(ctx, r)
	if err != nil {
		return control.Look{}, err
	}
	return ob.AskBMC(ctx, node, r)
}
