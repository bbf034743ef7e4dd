// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
)

// Place is where the state of a site lies. Every command opens it here: as its owner, for
// reading, or borrowed from an owner that stays.
type Place struct {
	Folder string // the state folder of this controller
	// Etcd says where in etcd it lies. A nil Config, as a nil function: it is the file in
	// Folder, where else a copy of it lies. It is called when nobody on this controller owns it.
	Etcd func() (*etcd.Config, error)
	Say  func(text string) // what is to be known about it; nil: nothing is said
}

// etcd is where in etcd the state lies; nil: nowhere.
func (p Place) etcd() (*etcd.Config, error) {
	if p.Etcd == nil {
		return nil, nil
	}
	return p.Etcd()
}

// File is the file in the folder: the state, or a copy of it.
func (p Place) File() string { return filepath.Join(p.Folder, filepath.Base(provision.StatePath(""))) }

// IsOriginal reports whether the file at path is a state of its own: false where it is a copy,
// and where there is none.
func IsOriginal(path string) (bool, error) {
	s, err := state.OpenReadOnly(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, ownedIf(err)
	}
	_, copied, err := s.MirrorPosition()
	return err == nil && !copied, errors.Join(err, s.Close())
}

// Owned is the state while this process owns it.
type Owned struct {
	*control.Owner
	Store state.Store
	Fence state.Fence
}

// Close ends the ownership. What was appended is durable already.
func (o Owned) Close() error { return errors.Join(o.Store.Close(), o.Release()) }

// Own takes the state for a command; stays says that its process lends it, see
// control.Lender. The error is an OwnedError while another process has it.
func (p Place) Own(ctx context.Context, command string, stays bool, now time.Time) (o Owned, err error) {
	take := control.AcquireFolder
	if stays {
		take = control.AcquireToStay
	}
	if o.Owner, err = take(p.Folder, command, now); err != nil {
		return o, ownedIf(err)
	}
	c, err := p.etcd()
	switch {
	case err != nil:
	case c != nil:
		o.Store, o.Fence, err = p.ownShared(ctx, *c, o.String())
	default:
		o.Store, o.Fence, err = p.ownFile(ctx, o.String())
	}
	if err != nil {
		return o, errors.Join(err, o.Release())
	}
	return o, nil
}

func (p Place) ownFile(ctx context.Context, owner string) (state.Store, state.Fence, error) {
	s, err := state.Open(p.File())
	if err != nil {
		return nil, state.Fence{}, ownedIf(err)
	}
	f, err := s.Claim(ctx, owner)
	if err != nil {
		return nil, f, errors.Join(err, s.Close())
	}
	return s, f, nil
}

// ownedIf makes a refusal an OwnedError: of the folder or of the state, it says that
// another process has it.
func ownedIf(err error) error {
	if errkind.Of(err) == errkind.Refused {
		return OwnedError{err}
	}
	return err
}

// Read opens the state for reading; one that is not there is empty. While its owner is one
// that stays, it is a copy of now; it is an OwnedError while another process owns it.
func (p Place) Read(ctx context.Context) (state.Reader, func(), error) {
	who, owned, err := control.FindOwner(p.Folder)
	if err != nil {
		return nil, nil, err
	}
	if owned && who.Resident {
		return p.readCopy(context.WithoutCancel(ctx)) // its calls have deadlines
	}
	if owned {
		return nil, nil, OwnedError{errkind.New(errkind.Refused, "the state of this site belongs to %s", who).
			Do("Wait until it ends; `ironrail status` says how far it is.")}
	}
	c, err := p.etcd()
	switch {
	case err != nil:
		return nil, nil, err
	case c != nil:
		return p.readShared(ctx, *c)
	}
	if _, err := os.Stat(p.File()); errors.Is(err, fs.ErrNotExist) {
		return state.Empty{}, func() {}, nil
	}
	s, err := state.OpenReadOnly(p.File())
	if err != nil {
		return nil, nil, ownedIf(err)
	}
	if err := s.CheckMirror(false); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, func() { s.Close() }, nil
}

// readCopy opens a copy of the state of an owner, whichever it is.
func (p Place) readCopy(ctx context.Context) (state.Reader, func(), error) {
	var r *state.Bolt
	var drop func()
	_, err := AskOwner(p.Folder, func(c *control.Client) (err error) {
		r, drop, err = copyState(ctx, c)
		return err
	})
	switch {
	case err != nil:
		return nil, nil, err
	case r == nil: // it has ended just now
		return p.Read(ctx)
	}
	return r, drop, nil
}
