// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/images/internal/folder"
)

// Lock waits until no other process or goroutine builds in this store.
func (s *Store) Lock(ctx context.Context) (unlock func(), err error) {
	unlock, err = folder.Lock(ctx, filepath.Join(s.dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("image store: %w", err)
	}
	return unlock, nil
}

// Scratch returns an empty folder on the store's file system for one build. The
// caller holds Lock, calls discard when the build is over, and leaves nothing
// mounted in it.
func (s *Store) Scratch() (dir string, discard func() error, err error) {
	dir, err = os.MkdirTemp(filepath.Join(s.dir, "work"), "build-")
	if err != nil {
		return "", nil, fmt.Errorf("image store: %w", err)
	}
	return dir, func() error { return folder.Remove(dir) }, nil
}

// Sweep removes what crashed builds left. The caller holds Lock.
func (s *Store) Sweep() error {
	work := filepath.Join(s.dir, "work")
	left, err := os.ReadDir(work)
	if err != nil {
		return fmt.Errorf("image store: %w", err)
	}
	var all error
	for _, e := range left {
		all = errors.Join(all, folder.Remove(filepath.Join(work, e.Name())))
	}
	return all
}
