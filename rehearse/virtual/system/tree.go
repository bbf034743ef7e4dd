// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// tree is all files of a running node: those of the hardware below sys and proc,
// the root file system below everything else, and over both what lives in memory
// until the next boot. Names are those of package fs. It implements fs.ReadLinkFS,
// fs.ReadFileFS, fs.ReadDirFS and rootfs.Root, and is safe for concurrent use.
type tree struct {
	hw, disk fs.FS
	root     rootfs.Root

	mu   sync.Mutex // guards what follows; never held while waiting
	over map[string]*entry
	deep bool // over has something of sys or proc other than what modules bring
}

// entry is one file, folder or link in memory. An entry is replaced, never changed.
type entry struct {
	mode   fs.FileMode
	data   []byte
	target string
	gone   bool // what lies below is removed
}

func newTree(hw fs.FS, root rootfs.Root) *tree {
	return &tree{hw: hw, disk: root.FS(), root: root, over: map[string]*entry{}}
}

// isVolatile reports whether a name is in memory only.
func isVolatile(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "sys", "proc", "run", "dev", "tmp":
		return true
	}
	return false
}

// lower is the file system below the one in memory.
func (t *tree) lower(name string) fs.FS {
	if isVolatile(name) {
		return t.hw
	}
	return t.disk
}

func (t *tree) entry(name string) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over[name]
}

func (t *tree) put(name string, e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over[name] = e
	t.deep = t.deep || isKernelFile(name) && !isOwn(name)
}

// modules is the one folder of sys that every node adds to.
const modules = "sys/module"

// isOwn reports whether a name of sys or proc is looked for here first: what is there by a module,
// and the table of what is mounted, which every node has.
func isOwn(name string) bool {
	return name == mountTable || name == path.Dir(mountTable) || strings.HasPrefix(name, modules) || strings.HasPrefix(name, driverFiles) || name+"/" == driverFiles
}

// isKernelFile reports whether a name is one of the kernel's own files.
func isKernelFile(name string) bool {
	return strings.HasPrefix(name, "sys/") || strings.HasPrefix(name, "proc/")
}

// plain reports whether a name can be left to the kernel as it is: nothing lies
// over its files. Most of what the agent's code reads is such.
func (t *tree) plain(name string) bool {
	if !isKernelFile(name) || isOwn(name) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.deep
}

func pathError(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

// info is one file's fs.FileInfo and fs.DirEntry.
type info struct {
	name string
	mode fs.FileMode
	size int64
}

func (i info) Name() string               { return i.name }
func (i info) Size() int64                { return i.size }
func (i info) Mode() fs.FileMode          { return i.mode }
func (i info) Type() fs.FileMode          { return i.mode.Type() }
func (i info) ModTime() time.Time         { return time.Time{} }
func (i info) IsDir() bool                { return i.mode.IsDir() }
func (i info) Sys() any                   { return nil }
func (i info) Info() (fs.FileInfo, error) { return i, nil }

// lstat looks at a canonical name.
func (t *tree) lstat(name string) (info, error) {
	base := path.Base(name)
	if name == "." || isVolatile(name) && !strings.Contains(name, "/") {
		return info{base, fs.ModeDir | 0o755, 0}, nil
	}
	if e := t.entry(name); e != nil {
		if e.gone {
			return info{}, pathError("stat", name, fs.ErrNotExist)
		}
		return info{base, e.mode, int64(len(e.data))}, nil
	}
	i, err := fs.Lstat(t.lower(name), name)
	if err != nil {
		return info{}, err
	}
	return info{base, i.Mode(), i.Size()}, nil
}

// mostLinks is how many links one name may lead through, as in Linux.
const mostLinks = 40

// resolve returns the canonical name: no links, except the last element when it
// is not to be followed. The last element need not exist.
func (t *tree) resolve(name string, follow bool) (string, error) {
	pending, done, links := strings.Split(name, "/"), ".", 0
	for len(pending) > 0 {
		c := pending[0]
		pending = pending[1:]
		switch c {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, c)
		if len(pending) == 0 && !follow {
			return next, nil
		}
		i, err := t.lstat(next)
		switch {
		case err != nil && len(pending) == 0 && errors.Is(err, fs.ErrNotExist):
			return next, nil
		case err != nil:
			return "", err
		case i.mode&fs.ModeSymlink == 0:
			done = next
			continue
		}
		to, err := t.target(next)
		if links++; err != nil || links > mostLinks {
			return "", pathError("open", name, errors.Join(err, fs.ErrInvalid))
		}
		if strings.HasPrefix(to, "/") {
			done = "."
		}
		pending = append(strings.Split(to, "/"), pending...)
	}
	return done, nil
}

// target is where the link of a canonical name leads.
func (t *tree) target(name string) (string, error) {
	if e := t.entry(name); e != nil {
		return e.target, nil
	}
	return fs.ReadLink(t.lower(name), name)
}

// ReadLink implements fs.ReadLinkFS.
func (t *tree) ReadLink(name string) (string, error) {
	if t.plain(name) {
		return fs.ReadLink(t.hw, name)
	}
	at, err := t.resolve(name, false)
	if err != nil {
		return "", err
	}
	if i, err := t.lstat(at); err != nil || i.mode&fs.ModeSymlink == 0 {
		return "", pathError("readlink", name, errors.Join(err, fs.ErrInvalid))
	}
	return t.target(at)
}

// Lstat implements fs.ReadLinkFS.
func (t *tree) Lstat(name string) (fs.FileInfo, error) {
	if t.plain(name) {
		return fs.Lstat(t.hw, name)
	}
	at, err := t.resolve(name, false)
	if err != nil {
		return nil, err
	}
	return t.lstat(at)
}

// Stat implements fs.StatFS.
func (t *tree) Stat(name string) (fs.FileInfo, error) {
	if t.plain(name) {
		return fs.Stat(t.hw, name)
	}
	at, err := t.resolve(name, true)
	if err != nil {
		return nil, err
	}
	return t.lstat(at)
}

// ReadFile implements fs.ReadFileFS. The bytes are not to be changed.
func (t *tree) ReadFile(name string) ([]byte, error) {
	if t.plain(name) {
		return fs.ReadFile(t.hw, name)
	}
	at, err := t.resolve(name, true)
	if err != nil {
		return nil, err
	}
	if e := t.entry(at); e != nil {
		switch {
		case e.gone:
			return nil, pathError("open", name, fs.ErrNotExist)
		case e.mode.IsDir():
			return nil, pathError("read", name, errors.New("is a directory"))
		}
		return e.data, nil
	}
	return fs.ReadFile(t.lower(at), at)
}

// ReadDir implements fs.ReadDirFS.
func (t *tree) ReadDir(name string) ([]fs.DirEntry, error) {
	if t.plain(name) {
		return fs.ReadDir(t.hw, name)
	}
	at, err := t.resolve(name, true)
	if err != nil {
		return nil, err
	}
	i, err := t.lstat(at)
	if err != nil {
		return nil, err
	}
	if !i.IsDir() {
		return nil, pathError("readdir", name, errors.New("not a directory"))
	}
	found := map[string]fs.DirEntry{}
	if list, err := fs.ReadDir(t.lower(at), at); err == nil {
		for _, d := range list {
			found[d.Name()] = d
		}
	}
	t.mu.Lock()
	for full, e := range t.over {
		if path.Dir(full) != at {
			continue
		}
		base := path.Base(full)
		if delete(found, base); !e.gone {
			found[base] = info{base, e.mode, int64(len(e.data))}
		}
	}
	t.mu.Unlock()
	list := make([]fs.DirEntry, 0, len(found))
	for _, d := range found {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}

// Open implements fs.FS.
func (t *tree) Open(name string) (fs.File, error) {
	if t.plain(name) {
		return t.hw.Open(name)
	}
	i, err := t.Stat(name)
	if err != nil {
		return nil, err
	}
	if i.IsDir() {
		list, err := t.ReadDir(name)
		return &opened{info: i, list: list}, err
	}
	b, err := t.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &opened{info: i, r: *bytes.NewReader(b)}, nil
}

// opened is an open file or folder, as it was when it was opened.
type opened struct {
	info fs.FileInfo
	r    bytes.Reader
	list []fs.DirEntry
}

func (o *opened) Stat() (fs.FileInfo, error) { return o.info, nil }
func (o *opened) Read(b []byte) (int, error) { return o.r.Read(b) }
func (o *opened) Close() error               { return nil }
func (o *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	list := o.list
	if n > 0 {
		if len(list) == 0 {
			return nil, io.EOF
		}
		list = list[:min(n, len(list))]
	}
	o.list = o.list[len(list):]
	return list, nil
}
