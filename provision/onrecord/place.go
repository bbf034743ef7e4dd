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
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision"
)

// Place is where the state of a site lies. Every command opens it here: as its owner, for
// reading, or borrowed from an owner that stays.
type Place struct {
	Folder string // the state folder of this controller
}

// File is the file of the state in the folder.
func (p Place) File() string { return filepath.Join(p.Folder, filepath.Base(provision.StatePath(""))) }

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
	if o.Store, err = state.Open(p.File()); err != nil {
		return o, errors.Join(ownedIf(err), o.Release())
	}
	if o.Fence, err = o.Store.Claim(ctx, o.String()); err != nil {
		return o, errors.Join(err, o.Close())
	}
	return o, nil
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
	if _, err := os.Stat(p.File()); errors.Is(err, fs.ErrNotExist) {
		return state.Empty{}, func() {}, nil
	}
	s, err := state.OpenReadOnly(p.File())
	if err != nil {
		return nil, nil, ownedIf(err)
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
