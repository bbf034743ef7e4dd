// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

// RefreshCopy brings the copy at path up to date, or makes it, and returns who the owner of
// the state is; "": nobody. The error is ErrNoState where etcd has no state, of kind refused
// while another process has the copy open, and os.ErrNotExist where path is in no folder.
func RefreshCopy(ctx context.Context, c Config, path string) (owner string, err error) {
	s, err := OpenExisting(ctx, c)
	if err != nil {
		return "", err
	}
	defer s.Close()
	f, err := OpenFollower(ctx, s, path)
	if err != nil {
		return "", err
	}
	if err := errors.Join(f.Refresh(ctx), f.Close()); err != nil {
		return "", err
	}
	return s.Owner(ctx)
}

// TimeOf returns when a copy was known to have all that etcd had. It refuses what is no copy.
func TimeOf(b *state.Bolt) (time.Time, error) {
	if err := b.CheckMirror(true); err != nil {
		return time.Time{}, err
	}
	text, _, err := b.MirrorPosition()
	return positionOf(text).at, err
}
