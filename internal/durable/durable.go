// SPDX-License-Identifier: Apache-2.0

// Package durable writes files that are there whole or as they were before, also where the machine
// loses power at any moment: a temporary file beside them, sync, a new name, sync of the folder.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write makes or replaces a file.
func Write(path string, content []byte, mode fs.FileMode) error {
	return WriteFrom(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// WriteFrom makes or replaces a file with what write writes. The file is as it was when write fails.
func WriteFrom(path string, mode fs.FileMode, write func(io.Writer) error) error {
	return put(path, mode, write, os.Rename)
}

// Create makes a file that is not there yet; otherwise it returns an error that is fs.ErrExist and
// leaves the file alone.
func Create(path string, content []byte, mode fs.FileMode) error {
	return put(path, mode, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	}, os.Link)
}

// put has give put the name of a file onto what was written under another.
func put(path string, mode fs.FileMode, write func(io.Writer) error, give func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is there once it is renamed
	err = write(f)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = give(f.Name(), path)
	}
	if err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(path))
}

// SyncFolder has the names in a folder outlive a loss of power.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync folder %s: %w", path, err)
	}
	return nil
}
