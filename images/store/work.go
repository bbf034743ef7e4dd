// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/internal/errkind"
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

// Downloads returns the folder of what was fetched for a recipe that is not built yet. It
// outlives builds that fail or are stopped. The caller holds Lock.
func (s *Store) Downloads(recipe string) (dir string, err error) {
	if !isDigest(recipe) {
		return "", errkind.New(errkind.Internal, "image store: recipe %q is no digest", recipe)
	}
	dir = s.downloads(recipe)
	return dir, os.MkdirAll(dir, 0o755)
}

// RemoveDownloads removes what was fetched for a recipe. The caller holds Lock.
func (s *Store) RemoveDownloads(recipe string) error {
	dir := s.downloads(recipe)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return folder.Remove(dir)
}

// KeepDownloads removes what was fetched for any other recipe. The caller holds Lock.
func (s *Store) KeepDownloads(recipes []string) error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "downloads"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if recipe := "sha256:" + e.Name(); isDigest(recipe) && !slices.Contains(recipes, recipe) {
			err = errors.Join(err, s.RemoveDownloads(recipe))
		}
	}
	return err
}

func (s *Store) downloads(recipe string) string {
	return filepath.Join(s.dir, "downloads", strings.TrimPrefix(recipe, "sha256:"))
}
