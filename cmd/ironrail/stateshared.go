// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/state/etcd"
	"github.com/ironrail/ironrail/provision"
)

// copyShared copies the state in etcd, as it is at one revision, to a new file, and reads that
// with every checksum.
func (a *app) copyShared(ctx context.Context, c etcd.Config, path string) (state.Contents, error) {
	s, err := etcd.OpenExisting(ctx, c)
	if errors.Is(err, etcd.ErrNoState) {
		return state.Contents{}, a.noState()
	}
	if err != nil {
		return state.Contents{}, err
	}
	defer s.Close()
	return s.CopyTo(ctx, path)
}

// saveCopy makes a copy of the state that nobody on this controller owns.
func (a *app) saveCopy(ctx context.Context, c *etcd.Config, path string) (state.Contents, error) {
	if c != nil {
		return a.copyShared(ctx, *c, path)
	}
	s, err := state.OpenReadOnly(a.statePath())
	if err != nil {
		return state.Contents{}, err
	}
	defer s.Close()
	return s.CopyTo(ctx, path)
}

// putBack makes the state that of a copy, where the state lies. The name is that of the file that
// keeps what was replaced; "": nothing was.
func (a *app) putBack(ctx context.Context, copied string) (kept string, err error) {
	c, err := a.etcd()
	if err != nil {
		return "", err
	}
	path, how := a.statePath(), state.Restoring{At: a.now(), Void: provision.OfItsMoment}
	if c == nil {
		return state.RestoreCopy(ctx, path, copied, how)
	}
	dir, err := os.MkdirTemp(a.stateDir(), "restore-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "state.db")
	if _, err := state.RestoreCopy(ctx, made, copied, how); err != nil {
		return "", err
	}
	if err := etcd.Restore(ctx, *c, made); err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err == nil { // of a state that etcd has lost it may be all that is left
		kept = path + ".replaced-" + a.stamp()
	}
	_, err = state.InstallFile(ctx, made, path, kept)
	return kept, err
}
