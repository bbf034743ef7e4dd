// SPDX-License-Identifier: Apache-2.0

// Package onrecord reads what is known of a site: from the owner of its state while there
// is one, else from the state and the events that are kept. It asks no hardware.
package onrecord

import (
	"context"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/keys"
	"github.com/ironrail/ironrail/provision/status"
)

// OwnedError says that another process owns the state, or has its file open.
type OwnedError struct{ Err error }

// Error returns the text of the wrapped error.
func (e OwnedError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error, with its kind and action.
func (e OwnedError) Unwrap() error { return e.Err }

// AskOwner asks the owner of a state folder; false when there is none. It is
// an OwnedError when the owner does not answer yet.
func AskOwner(folder string, ask func(*control.Client) error) (bool, error) {
	who, owned, err := control.FindOwner(folder)
	if err != nil || !owned {
		return false, err
	}
	err = ask(control.NewClient(folder))
	if errkind.Of(err) == errkind.Unreachable {
		err = OwnedError{errkind.New(errkind.Unreachable, "the state of this site belongs to %s, which does not answer yet", who).
			Do("It starts, or waits for an approval: ask again.")}
	}
	return true, err
}

// Site is a site whose records are read.
type Site struct {
	State string // its state folder
	Inv   *inventory.Inventory
	Now   func() time.Time
	Say   func(text string) // what is to be known about the state; nil: nothing is said
}

func (s Site) place() Place {
	return Place{Folder: s.State, Say: s.Say, Etcd: func() (*etcd.Config, error) { return EtcdOf(s.Inv), nil }}
}

// Standings are where all nodes stand: as the owner says, or as the state has it. Owner is
// nil when there is none.
func (s Site) Standings(ctx context.Context) (all why.Site, owner *control.Identity, err error) {
	owned, err := AskOwner(s.State, func(c *control.Client) error {
		got, err := c.Status(ctx)
		all, owner = why.NewSite(got, s.Now()), &got.Owner
		return err
	})
	if err != nil || owned {
		return all, owner, err
	}
	err = s.WithState(ctx, func(r state.Reader) (err error) {
		all, err = status.ReadSite(ctx, s.Inv, r, s.Now())
		return err
	})
	return all, nil, err
}

// Node is what the owner knows of a node, or the state and the kept events when there is
// none; running says that there is one.
func (s Site) Node(ctx context.Context, node string) (y control.Why, running bool, err error) {
	running, err = AskOwner(s.State, func(c *control.Client) (err error) {
		y, err = c.Why(ctx, node)
		return err
	})
	if err != nil {
		return y, running, err
	}
	if running {
		if y.Idle {
			running = false
			y.Evidence, err = s.keptEvidence(node)
		}
		return y, running, err
	}
	err = s.WithState(ctx, func(r state.Reader) (err error) {
		if y, err = status.ReadNode(ctx, s.Inv, r, node); err != nil {
			return err
		}
		all, err := status.ReadSite(ctx, s.Inv, r, s.Now())
		y.Alike = why.FindSimilarNodes(node, why.SummariseNodes(all), status.ListTraits(s.Inv), s.Now())
		return err
	})
	if err == nil {
		y.Evidence, err = s.keptEvidence(node)
	}
	return y, false, err
}

// Switch is what the owner knows of a switch, or of a port of one, or the state when there
// is none.
func (s Site) Switch(ctx context.Context, word string) (y control.Switch, running bool, err error) {
	running, err = AskOwner(s.State, func(c *control.Client) (err error) {
		y, err = c.Switch(ctx, word)
		return err
	})
	if err != nil || running {
		return y, running, err
	}
	err = s.WithState(ctx, func(r state.Reader) (err error) {
		y, err = status.ReadSwitch(ctx, s.Inv, r, word)
		return err
	})
	return y, false, err
}

// WithState calls f with the state, which must be one of this site. It is an OwnedError
// while another process owns it.
func (s Site) WithState(ctx context.Context, f func(state.Reader) error) error {
	r, closeState, err := s.place().Read(ctx)
	if err != nil {
		return err
	}
	defer closeState()
	if err := keys.CheckSite(ctx, r, s.Inv.Site.Name); err != nil {
		return err
	}
	return f(r)
}

// WithCopy is WithState with a copy of the state while any process owns it.
func (s Site) WithCopy(ctx context.Context, f func(state.Reader) error) error {
	r, closeState, err := s.place().readCopy(ctx)
	if err != nil {
		return err
	}
	defer closeState()
	return f(r)
}
