// Package rootfs changes files below the root of a system, mounted or running,
// through os.Root, so that no link in it leads out. A file is replaced, never
// followed: what was a link becomes a plain file.
package rootfs

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Write puts a file down under another name, syncs, and renames. Folders on
// the way are made. name is relative to the root.
func Write(root *os.Root, name string, content io.Reader, mode fs.FileMode) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return fmt.Errorf("folder of /%s: %w", name, err)
	}
	temp := path.Join(path.Dir(name), ".ironrail-"+rand.Text())
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("/%s: %w", name, err)
	}
	_, err = io.Copy(f, content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		root.Remove(temp)
		return fmt.Errorf("/%s: %w", name, err)
	}
	return syncDir(root, path.Dir(name))
}

// syncDir makes a rename last over a loss of power.
func syncDir(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// WriteText is Write for text.
func WriteText(root *os.Root, name, text string, mode fs.FileMode) error {
	return Write(root, name, strings.NewReader(text), mode)
}

// Link makes a symbolic link, in place of whatever was there.
func Link(root *os.Root, target, name string) error {
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
func Remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove /%s: %w", name, err)
	}
	return nil
}

// Exists reports whether something is there, following links below the root.
func Exists(root *os.Root, name string) bool {
	_, err := root.Stat(name)
	return err == nil
}
