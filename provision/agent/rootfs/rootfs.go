// SPDX-License-Identifier: Apache-2.0

// Package rootfs changes files below the root of a system, mounted or running, so
// that no link in it leads out. A file is replaced, never followed: what was a
// link becomes a plain file.
package rootfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Root is the root of a system: a folder (see Open), or the one in memory of a
// virtual node. Names are relative, as in package fs, and lead nowhere outside,
// whatever links there are.
type Root interface {
	FS() fs.FS // for reading; links are followed below the root
	MkdirAll(name string, mode fs.FileMode) error
	Chmod(name string, mode fs.FileMode) error
	// Put makes a file in a folder that is there, whole and durable or not at all,
	// in place of whatever had its name.
	Put(name string, content io.Reader, mode fs.FileMode) error
	Symlink(target, name string) error // fs.ErrExist when something is there
	Remove(name string) error          // fs.ErrNotExist when nothing is there
	Close() error
}

// Write puts a file down whole and durable. Folders on the way are made. name is
// relative to the root.
func Write(root Root, name string, content io.Reader, mode fs.FileMode) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("folder of /%s: %w", name, err)
	}
	if err := root.Put(name, content, mode); err != nil {
		return fmt.Errorf("/%s: %w", name, err)
	}
	return nil
}

// WriteText is Write for text.
func WriteText(root Root, name, text string, mode fs.FileMode) error {
	return Write(root, name, strings.NewReader(text), mode)
}

// Link makes a symbolic link, in place of whatever was there.
func Link(root Root, target, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("folder of /%s: %w", name, err)
	}
	if err := Remove(root, name); err != nil {
		return err
	}
	if err := root.Symlink(target, name); err != nil {
		return fmt.Errorf("/%s: %w", name, err)
	}
	return nil
}

// Remove removes a file or link; its absence is no error.
func Remove(root Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove /%s: %w", name, err)
	}
	return nil
}

// Exists reports whether something is there, following links below the root.
func Exists(root Root, name string) bool {
	_, err := fs.Stat(root.FS(), name)
	return err == nil
}
