// SPDX-License-Identifier: Apache-2.0

package onrecord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc/redfish"
)

// readTime bounds how long a command that reads waits for etcd before it takes its copy.
const readTime = 20 * time.Second

// awaitPause is between two questions of who waits while etcd does not answer.
const awaitPause = time.Second

// closeTime bounds how long an owner that ends brings its copy up to date.
const closeTime = time.Second

// longestCall is how long a call that changes hardware may last once it has begun: the
// longest is that of Redfish. See etcd.Config.
const longestCall = redfish.DefaultTimeout

// EtcdOf returns where a site keeps its state in etcd; nil: in a file.
func EtcdOf(inv *inventory.Inventory) *etcd.Config {
	s := inv.State
	if s.Kind != "etcd" {
		return nil
	}
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(inv.Dir, path)
	}
	return &etcd.Config{Endpoints: s.Endpoints, Prefix: s.Prefix, CA: at(s.Authority), Cert: at(s.Certificate), Key: at(s.Key), Calls: longestCall}
}

// shared is a state in etcd that this process owns, with the copy in its folder, which
// follows.
type shared struct {
	*etcd.Store
	copy *etcd.Follower
	stop context.CancelFunc
	done chan struct{}
	err  error // why the copy does not follow any more; after done
}

// Snapshot writes the copy of now; see control.Snapshotter.
func (s *shared) Snapshot(ctx context.Context, w io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with the call
		select {
		case <-s.done:
			cancel(s.err)
		case <-ctx.Done():
		}
	}()
	return s.copy.Snapshot(ctx, w)
}

// Close ends what follows, and gives the state back.
func (s *shared) Close() error {
	s.stop()
	<-s.done
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	_ = s.copy.Refresh(ctx) // else the next reader does it
	return errors.Join(s.copy.Close(), s.Store.Close())
}

// ownShared takes the state in etcd.
func (p Place) ownShared(ctx context.Context, c etcd.Config, owner string) (*shared, state.Fence, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, state.Fence{}, fmt.Errorf("state: %w", err)
	}
	s, err := p.openShared(ctx, c)
	if err != nil {
		return nil, state.Fence{}, err
	}
	fence, err := s.Claim(ctx, owner+" on "+host)
	if err != nil {
		return nil, fence, errors.Join(ownedIf(err), s.Close())
	}
	f, err := etcd.OpenFollower(ctx, s, p.File())
	if err != nil {
		return nil, fence, errors.Join(ownedIf(err), s.Close())
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	o := &shared{Store: s, copy: f, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		if o.err = f.Run(following); o.err != nil {
			p.say("warning: the copy of the state on this controller is not brought up to date any more: " + errkind.Line(o.err))
		}
	}()
	return o, fence, nil
}

// openShared opens the state in etcd, and makes it where there is none, unless this controller
// has a copy of one: that is lost then, and the copy may be all that is left of it.
func (p Place) openShared(ctx context.Context, c etcd.Config) (*etcd.Store, error) {
	r, _, err := p.openCopy()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return etcd.Open(ctx, c)
	case err == nil:
		_ = r.Close()
	case errkind.Of(err) != errkind.Corrupt:
		return nil, err
	}
	s, err := etcd.OpenExisting(ctx, c)
	if errors.Is(err, etcd.ErrNoState) {
		err = p.lostState(err)
	}
	return s, err
}

// lostState says what to do where etcd has no state although this controller has a copy of one.
func (p Place) lostState(err error) error {
	return errkind.New(errkind.NotFound, "%w, and this controller has a copy of one", err).
		Do("Look whether prefix and endpoints are those that they were; else put back a snapshot of etcd. Where the state is given up, move " + p.File() + " away.")
}

// AwaitFree returns once nobody owns the state in etcd; it waits while etcd does not answer.
// The error is of kind unsupported where the state is a file, which has one controller.
func (p Place) AwaitFree(ctx context.Context) error {
	c, err := p.etcd()
	if err != nil {
		return err
	}
	if c == nil {
		return errkind.New(errkind.Unsupported, "the state of this site is a file of this controller").Do("See docs/controllers.md for several controllers.")
	}
	for {
		s, err := etcd.OpenExisting(ctx, *c)
		if err == nil {
			err = errors.Join(s.AwaitFree(ctx), s.Close())
		}
		switch k := errkind.Of(err); {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, etcd.ErrNoState):
			return nil
		case err == nil || k != errkind.Unreachable && k != errkind.Timeout:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(awaitPause):
		}
	}
}

// readShared opens the copy of the state in etcd, which is brought up to date before. Where
// etcd does not answer it is as it was, and that is said.
func (p Place) readShared(ctx context.Context, c etcd.Config) (state.Reader, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	owner, err := etcd.RefreshCopy(ctx, c, p.File())
	if err == nil && owner != "" {
		p.say(fmt.Sprintf("note: the state belongs to %s; this is what it has recorded until now.", owner))
	}
	_, missing := os.Stat(p.File())
	switch k := errkind.Of(err); {
	case errors.Is(err, etcd.ErrNoState) && missing != nil:
		return state.Empty{}, func() {}, nil
	case errors.Is(err, fs.ErrNotExist): // nothing was begun on this controller
		return readEtcd(ctx, c)
	case errors.Is(err, etcd.ErrNoState):
		return nil, nil, p.lostState(err)
	case k == errkind.Refused:
		return p.readBusy(ctx, c, err)
	case (k == errkind.Unreachable || k == errkind.Timeout) && missing == nil:
	case err != nil:
		return nil, nil, err
	}
	r, at, openErr := p.openCopy()
	if openErr != nil {
		return nil, nil, openErr
	}
	if err != nil {
		p.say(fmt.Sprintf("warning: etcd does not answer (%s). This is what it had at %s, %s ago.", errkind.Line(err), at.Format(time.DateTime), time.Since(at).Round(time.Second)))
	}
	return r, func() { _ = r.Close() }, nil
}

// readBusy reads etcd itself where another command of this controller has the copy open;
// refused is what was said then.
func (p Place) readBusy(ctx context.Context, c etcd.Config, refused error) (state.Reader, func(), error) {
	r, _, err := p.openCopy()
	if err != nil {
		return nil, nil, ownedIf(refused)
	}
	_ = r.Close()
	return readEtcd(ctx, c)
}

// readEtcd reads etcd itself, without a copy.
func readEtcd(ctx context.Context, c etcd.Config) (state.Reader, func(), error) {
	s, err := etcd.OpenExisting(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return s, func() { _ = s.Close() }, nil
}

// openCopy opens the copy for reading, and returns when it was up to date. It refuses a state
// of its own.
func (p Place) openCopy() (*state.Bolt, time.Time, error) {
	r, err := state.OpenReadOnly(p.File())
	if err != nil {
		return nil, time.Time{}, ownedIf(err)
	}
	at, err := etcd.TimeOf(r)
	if err != nil {
		_ = r.Close()
		return nil, at, err
	}
	return r, at, nil
}

// say says something to who runs the command.
func (p Place) say(text string) {
	if p.Say != nil {
		p.Say(text)
	}
}
