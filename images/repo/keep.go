// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/internal/durable"
)

// Keep gives the repository that was made of these options a second name, under
// which it stays when a later build takes its place: nodes may have to go back to
// it. Its files are shared, so that it takes no room as long as both are there. It
// reports false when no such repository is left. Doing it twice is harmless.
func Keep(ctx context.Context, o Options, as string) (bool, error) {
	kept := o
	kept.Name = as
	if err := errors.Join(o.check(), kept.check()); err != nil {
		return false, err
	}
	if _, found, err := Find(kept); found || err != nil {
		return found, err
	}
	base := filepath.Join(o.Dir, o.Name)
	if _, err := os.Stat(base); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	unlock, err := folder.Lock(ctx, filepath.Join(base, "lock"))
	if err != nil {
		return false, fmt.Errorf("repository %s: %w", o.Name, err)
	}
	defer unlock()
	name, rec, found, err := madeOf(o, base)
	if err != nil || !found {
		return false, err
	}
	to := filepath.Join(o.Dir, as)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return false, fmt.Errorf("repository %s: %w", as, err)
	}
	out, err := os.MkdirTemp(to, "build-")
	if err != nil {
		return false, fmt.Errorf("repository %s: %w", as, err)
	}
	defer os.RemoveAll(out) // nothing is there once it is renamed
	if err := linkTree(filepath.Join(base, name), out); err != nil {
		return false, fmt.Errorf("repository %s: %w", as, err)
	}
	rec.Inputs = kept.inputs()
	b, err := json.MarshalIndent(rec, "", "\t")
	if err != nil {
		return false, err
	}
	if err := durable.Write(filepath.Join(out, recordFile), b, 0o644); err != nil {
		return false, err
	}
	return true, publishRepo(to, out, name)
}

// madeOf finds the folder, served or not, of the repository that was made of these
// options.
func madeOf(o Options, base string) (name string, rec record, found bool, err error) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return "", rec, false, fmt.Errorf("repository %s: %w", o.Name, err)
	}
	for _, e := range entries {
		if !isDigestFolder(e.Name()) {
			continue
		}
		b, err := os.ReadFile(filepath.Join(base, e.Name(), recordFile))
		if err == nil && json.Unmarshal(b, &rec) == nil && rec.Inputs == o.inputs() {
			return e.Name(), rec, true, nil
		}
		rec = record{}
	}
	return "", rec, false, nil
}

// linkTree makes a folder of hard links to the files of another, but for the
// record, which is written anew.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rel)
		switch {
		case rel == ".":
			return os.Chmod(to, 0o755)
		case d.IsDir():
			return os.Mkdir(at, 0o755)
		case rel == recordFile:
			return nil
		}
		return os.Link(path, at)
	})
}
