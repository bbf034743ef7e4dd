// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/rehearse/virtual/twin"
)

// maxFile bounds one file of a root file system in memory, bytes. What is larger
// on a real node (packages, the agent) is a short stand-in on a virtual one.
const maxFile = 1 << 20

// Root is a root file system in memory: what an image holds, shared by all nodes
// that have it, and what was changed since. It is a rootfs.Root, and safe for
// concurrent use. Links lead nowhere outside.
type Root struct {
	image *tree     // immutable
	twin  twin.Twin // what it says to be; immutable once it is mounted, like what follows

	array      string // that it lies on; "": on none
	logical    string // device mapper's name of the logical volume that it is; "": it is none
	filesystem string // "": ext4

	mu      sync.Mutex
	changed map[string]*file // guarded by mu; nil: removed
}

// newRoot returns a root with the content of an image.
func newRoot(image *tree) *Root { return &Root{image: image, changed: map[string]*file{}} }

var _ rootfs.Root = (*Root)(nil)

// lookup returns the entry of a path without links, or nil.
func (r *Root) lookup(name string) *file {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.entry(name)
}

// entry is called with mu held.
func (r *Root) entry(name string) *file {
	if f, ok := r.changed[name]; ok {
		return f
	}
	return r.image.lookup(name)
}

// names lists a folder, sorted.
func (r *Root) names(dir string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, n := range r.image.children[dir] {
		if _, ok := r.changed[path.Join(dir, n)]; !ok {
			names = append(names, n)
		}
	}
	for name, f := range r.changed {
		if f != nil && name != "." && path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names
}

// FS is the files, for reading. A link that is absolute, or that leads out, is refused.
func (r *Root) FS() fs.FS { return view{lookup: r.lookup, names: r.names, confined: true} }

// Close does nothing: the files stay.
func (r *Root) Close() error { return nil }

// parent resolves the folder of name and returns the path without links. Called
// with mu held.
func (r *Root) parent(op, name string) (string, error) {
	if !fs.ValidPath(name) || name == "." {
		return "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	dir, f, err := resolvePath(r.entry, path.Dir(name), true, true)
	switch {
	case err != nil:
	case f == nil:
		err = fs.ErrNotExist
	case !f.mode.IsDir():
		err = syscall.ENOTDIR
	}
	if err != nil {
		return "", &fs.PathError{Op: op, Path: name, Err: err}
	}
	return path.Join(dir, path.Base(name)), nil
}

// MkdirAll is rootfs.Root.
func (r *Root) MkdirAll(name string, mode fs.FileMode) error {
	if !fs.ValidPath(name) {
		return &fs.PathError{Op: "mkdir", Path: name, Err: fs.ErrInvalid}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f := r.entry(name); f != nil && f.mode.IsDir() {
		return nil
	}
	at, parts := ".", strings.Split(name, "/")
	for i, part := range parts {
		real, f, err := resolvePath(r.entry, path.Join(at, part), true, true)
		switch {
		case err == nil && f == nil:
			r.changed[real] = &file{mode: fs.ModeDir | mode.Perm()}
		case err == nil && !f.mode.IsDir() && i == len(parts)-1:
			err = syscall.EEXIST
		case err == nil && !f.mode.IsDir():
			err = syscall.ENOTDIR
		}
		if err != nil {
			return &fs.PathError{Op: "mkdir", Path: name, Err: err}
		}
		at = real
	}
	return nil
}

// Chmod is rootfs.Root.
func (r *Root) Chmod(name string, mode fs.FileMode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	real, f, err := resolvePath(r.entry, name, true, true)
	if err == nil && f == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	c := *f
	c.mode = f.mode.Type() | mode.Perm()
	r.changed[real] = &c
	return nil
}

// Put is rootfs.Root.
func (r *Root) Put(name string, content io.Reader, mode fs.FileMode) error {
	b, err := io.ReadAll(io.LimitReader(content, maxFile+1))
	if err != nil {
		return err
	}
	if len(b) > maxFile {
		return &fs.PathError{Op: "write", Path: name, Err: syscall.EFBIG}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	real, err := r.parent("open", name)
	if err != nil {
		return err
	}
	if f := r.entry(real); f != nil && f.mode.IsDir() {
		return &fs.PathError{Op: "rename", Path: name, Err: syscall.EEXIST}
	}
	r.changed[real] = &file{mode: mode.Perm(), data: string(b)}
	return nil
}

// Symlink is rootfs.Root.
func (r *Root) Symlink(target, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	real, err := r.parent("symlink", name)
	if err != nil {
		return err
	}
	if r.entry(real) != nil {
		return &fs.PathError{Op: "symlink", Path: name, Err: fs.ErrExist}
	}
	r.changed[real] = &file{mode: fs.ModeSymlink | 0o777, link: target}
	return nil
}

// Remove is rootfs.Root.
func (r *Root) Remove(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	real, err := r.parent("remove", name)
	if err != nil {
		return err
	}
	f := r.entry(real)
	if f == nil {
		return &fs.PathError{Op: "remove", Path: name, Err: fs.ErrNotExist}
	}
	if f.mode.IsDir() && !r.empty(real) {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.ENOTEMPTY}
	}
	if r.image.lookup(real) == nil {
		delete(r.changed, real)
	} else {
		r.changed[real] = nil
	}
	return nil
}

// empty is called with mu held.
func (r *Root) empty(dir string) bool {
	for _, n := range r.image.children[dir] {
		if r.entry(path.Join(dir, n)) != nil {
			return false
		}
	}
	for name, f := range r.changed {
		if f != nil && path.Dir(name) == dir {
			return false
		}
	}
	return true
}
