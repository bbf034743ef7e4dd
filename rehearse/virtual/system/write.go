// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// What follows makes tree a rootfs.Root, so that the agent's own code writes to a
// virtual node.

var _ rootfs.Root = (*tree)(nil)

// FS implements rootfs.Root.
func (t *tree) FS() fs.FS { return t }

// Close implements rootfs.Root. The tree lives as long as its node runs.
func (t *tree) Close() error { return nil }

// place resolves the folder of a name, which must be there.
func (t *tree) place(op, name string) (string, error) {
	dir, err := t.resolve(path.Dir(name), true)
	if err != nil {
		return "", err
	}
	if i, err := t.lstat(dir); err != nil || !i.IsDir() {
		return "", pathError(op, name, errors.Join(err, fs.ErrNotExist))
	}
	return path.Join(dir, path.Base(name)), nil
}

// Put implements rootfs.Root.
func (t *tree) Put(name string, content io.Reader, mode fs.FileMode) error {
	at, err := t.place("open", name)
	if err != nil {
		return err
	}
	if !isVolatile(at) {
		return t.root.Put(at, content, mode)
	}
	b, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	t.put(at, &entry{mode: mode.Perm(), data: b})
	return nil
}

// MkdirAll implements rootfs.Root.
func (t *tree) MkdirAll(name string, mode fs.FileMode) error {
	at, err := t.resolve(name, true)
	if errors.Is(err, fs.ErrNotExist) {
		if err = t.MkdirAll(path.Dir(name), mode); err == nil {
			at, err = t.resolve(name, true)
		}
	}
	if err != nil {
		return err
	}
	switch i, err := t.lstat(at); {
	case err == nil && i.IsDir():
		return nil
	case err == nil:
		return pathError("mkdir", name, errors.New("not a directory"))
	case !isVolatile(at):
		return t.root.MkdirAll(at, mode)
	}
	if err := t.MkdirAll(path.Dir(at), mode); err != nil {
		return err
	}
	t.put(at, &entry{mode: fs.ModeDir | mode.Perm()})
	return nil
}

// Chmod implements rootfs.Root.
func (t *tree) Chmod(name string, mode fs.FileMode) error {
	at, err := t.resolve(name, true)
	if err != nil {
		return err
	}
	if !isVolatile(at) {
		return t.root.Chmod(at, mode)
	}
	e := t.entry(at)
	if e == nil || e.gone {
		_, err := t.lstat(at) // what the kernel shows keeps its mode
		return err
	}
	changed := *e
	changed.mode = e.mode.Type() | mode.Perm()
	t.put(at, &changed)
	return nil
}

// Symlink implements rootfs.Root.
func (t *tree) Symlink(target, name string) error {
	at, err := t.place("symlink", name)
	if err != nil {
		return err
	}
	if _, err := t.lstat(at); err == nil {
		return pathError("symlink", name, fs.ErrExist)
	}
	if !isVolatile(at) {
		return t.root.Symlink(target, at)
	}
	t.put(at, &entry{mode: fs.ModeSymlink | 0o777, target: target})
	return nil
}

// Remove implements rootfs.Root.
func (t *tree) Remove(name string) error {
	at, err := t.place("remove", name)
	if err != nil {
		return err
	}
	i, err := t.lstat(at)
	if err != nil {
		return pathError("remove", name, fs.ErrNotExist)
	}
	if i.IsDir() {
		if list, err := t.ReadDir(at); err != nil || len(list) > 0 {
			return pathError("remove", name, errors.Join(err, errors.New("directory not empty")))
		}
	}
	if !isVolatile(at) {
		return t.root.Remove(at)
	}
	_, below := fs.Lstat(t.lower(at), at)
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.over, at); below == nil {
		t.over[at] = &entry{gone: true}
	}
	return nil
}

// removeAll removes a file or a folder with all in it.
func (t *tree) removeAll(name string) error {
	i, err := t.Lstat(name)
	if err != nil {
		return err
	}
	if i.IsDir() {
		list, err := t.ReadDir(name)
		if err != nil {
			return err
		}
		for _, d := range list {
			if err := t.removeAll(path.Join(name, d.Name())); err != nil {
				return err
			}
		}
	}
	return t.Remove(name)
}

// rename moves a file or a link.
func (t *tree) rename(from, to string) error {
	i, err := t.Lstat(from)
	if err != nil {
		return err
	}
	switch {
	case i.IsDir():
		return pathError("rename", from, errors.New("folders are not moved here"))
	case i.Mode()&fs.ModeSymlink != 0:
		target, err := t.ReadLink(from)
		if err == nil {
			err = rootfs.Link(t, target, to)
		}
		if err != nil {
			return err
		}
	default:
		b, err := t.ReadFile(from)
		if err != nil {
			return err
		}
		if err := t.write(to, slices.Clone(b), i.Mode()); err != nil {
			return err
		}
	}
	return t.Remove(from)
}

// write puts bytes into a file in place of whatever had its name.
func (t *tree) write(name string, b []byte, mode fs.FileMode) error {
	at, err := t.place("open", name)
	if err != nil {
		return err
	}
	if isVolatile(at) {
		t.put(at, &entry{mode: mode.Perm(), data: b})
		return nil
	}
	return t.root.Put(at, bytes.NewReader(b), mode.Perm())
}

// set writes a file of the kernel, with the folders on the way: a sysctl, an
// attribute of a device that was made at run time.
func (t *tree) set(name, text string) {
	if t.MkdirAll(path.Dir(name), 0o755) == nil {
		if at, err := t.resolve(name, true); err == nil {
			t.put(at, &entry{mode: 0o644, data: []byte(text)})
		}
	}
}
