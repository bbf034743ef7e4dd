// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxLinks bounds the links on the way to a file (path_resolution(7)).
const maxLinks = 40

// resolvePath follows the links on the way to name, and at its end when last is set.
// It returns the path without links; the entry is nil when nothing is there. An
// absolute link starts at the root, or is refused when confined is set, as is one
// that leaves the root.
func resolvePath(lookup func(string) *file, name string, last, confined bool) (string, *file, error) {
	if f := lookup(name); f != nil && (f.link == "" || !last) {
		return name, f, nil // no entry lies below a link, so nothing on the way is one
	}
	p := position{at: ".", rest: strings.Split(name, "/"), confined: confined}
	for len(p.rest) > 0 {
		part := p.rest[0]
		p.rest = p.rest[1:]
		switch part {
		case ".", "":
			continue
		case "..":
			if err := p.ascend(); err != nil {
				return "", nil, err
			}
			continue
		}
		next := joinBelow(p.at, part)
		f := lookup(next)
		if f == nil {
			return absentFile(next, p.rest)
		}
		switch {
		case f.link != "" && (len(p.rest) > 0 || last):
			if err := p.follow(f.link); err != nil {
				return "", nil, err
			}
		case len(p.rest) > 0 && !f.mode.IsDir():
			return "", nil, syscall.ENOTDIR
		default:
			p.at = next
		}
	}
	return p.at, lookup(p.at), nil
}

// position is how far resolve has come.
type position struct {
	at       string   // path without links
	rest     []string // what follows it
	links    int      // that were followed
	confined bool
}

// ascend goes to the folder above.
func (p *position) ascend() error {
	if p.at == "." && p.confined {
		return syscall.EXDEV
	}
	p.at = path.Dir(p.at)
	return nil
}

// follow puts what a link holds in front of the rest.
func (p *position) follow(link string) error {
	if p.links++; p.links > maxLinks {
		return syscall.ELOOP
	}
	if path.IsAbs(link) {
		if p.confined {
			return syscall.EXDEV
		}
		p.at = "."
	}
	p.rest = append(strings.Split(link, "/"), p.rest...)
	return nil
}

// absentFile returns what resolve returns where nothing is: an error when a folder on the way
// is missing, and none when it is the last part.
func absentFile(at string, rest []string) (string, *file, error) {
	if len(rest) == 0 {
		return at, nil, nil
	}
	return path.Join(append([]string{at}, rest...)...), nil, fs.ErrNotExist
}

// joinBelow is path.Join of two parts that are clean.
func joinBelow(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// view is a tree as package fs has it.
type view struct {
	kernel   *Kernel // for attributes; may be nil where there are none
	lookup   func(string) *file
	names    func(dir string) []string
	confined bool
	ways     *pathCache // of folders of sys and proc; nil: not remembered
}

// find resolves a name for an operation.
func (v view) find(op, name string, last bool) (string, *file, error) {
	if !fs.ValidPath(name) {
		return "", nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	real, f := v.ways.direct(v.kernel, name, last)
	if f != nil {
		return real, f, nil
	}
	real, f, err := resolvePath(v.lookup, name, last, v.confined)
	if err == nil && f == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return "", nil, &fs.PathError{Op: op, Path: name, Err: err}
	}
	return real, f, nil
}

// Open is fs.FS.
func (v view) Open(name string) (fs.File, error) {
	real, f, err := v.find("open", name, true)
	if err != nil {
		return nil, err
	}
	o := &opened{view: v, name: real, file: f}
	if f.mode.IsDir() {
		return o, nil
	}
	text, err := v.content(f)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	o.text = strings.NewReader(text)
	return o, nil
}

// content returns what a file holds now.
func (v view) content(f *file) (string, error) {
	if f.read != nil {
		return f.read(v.kernel)
	}
	return f.data, nil
}

// ReadFile is fs.ReadFileFS.
func (v view) ReadFile(name string) ([]byte, error) {
	_, f, err := v.find("open", name, true)
	if err != nil {
		return nil, err
	}
	if f.mode.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: syscall.EISDIR}
	}
	text, err := v.content(f)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: name, Err: err}
	}
	return []byte(text), nil
}

// Stat is fs.StatFS.
func (v view) Stat(name string) (fs.FileInfo, error) {
	real, f, err := v.find("stat", name, true)
	if err != nil {
		return nil, err
	}
	return info{path.Base(real), f}, nil
}

// Lstat is part of fs.ReadLinkFS.
func (v view) Lstat(name string) (fs.FileInfo, error) {
	real, f, err := v.find("lstat", name, false)
	if err != nil {
		return nil, err
	}
	return info{path.Base(real), f}, nil
}

// ReadLink is part of fs.ReadLinkFS.
func (v view) ReadLink(name string) (string, error) {
	_, f, err := v.find("readlink", name, false)
	if err == nil && f.link == "" {
		err = &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	if err != nil {
		return "", err
	}
	return f.link, nil
}

// ReadDir is fs.ReadDirFS.
func (v view) ReadDir(name string) ([]fs.DirEntry, error) {
	real, f, err := v.find("open", name, true)
	if err == nil && !f.mode.IsDir() {
		err = &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}
	return v.entries(real), nil
}

func (v view) entries(real string) []fs.DirEntry {
	names := v.names(real)
	entries := make([]fs.DirEntry, 0, len(names))
	for _, n := range names {
		if f := v.lookup(joinBelow(real, n)); f != nil {
			entries = append(entries, fs.FileInfoToDirEntry(info{n, f}))
		}
	}
	return entries
}

// opened is an open file or folder.
type opened struct {
	view view
	name string
	file *file
	text *strings.Reader // nil: a folder
	list []fs.DirEntry   // what ReadDir has not returned yet
	read bool
}

// Stat is fs.File.
func (o *opened) Stat() (fs.FileInfo, error) { return info{path.Base(o.name), o.file}, nil }

// Read is fs.File.
func (o *opened) Read(p []byte) (int, error) {
	if o.text == nil {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: syscall.EISDIR}
	}
	return o.text.Read(p)
}

// Close is fs.File.
func (o *opened) Close() error { return nil }

// ReadDir is fs.ReadDirFile.
func (o *opened) ReadDir(n int) ([]fs.DirEntry, error) {
	if o.text != nil {
		return nil, &fs.PathError{Op: "readdir", Path: o.name, Err: syscall.ENOTDIR}
	}
	if !o.read {
		o.list, o.read = o.view.entries(o.name), true
	}
	if n <= 0 {
		all := o.list
		o.list = nil
		return all, nil
	}
	if len(o.list) == 0 {
		return nil, io.EOF
	}
	part := o.list[:min(n, len(o.list))]
	o.list = o.list[len(part):]
	return slices.Clone(part), nil
}

// info is fs.FileInfo. Attributes have the size of a page, as sysfs says.
type info struct {
	name string
	file *file
}

func (i info) Name() string       { return i.name }
func (i info) Mode() fs.FileMode  { return i.file.mode }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.file.mode.IsDir() }
func (i info) Sys() any           { return nil }
func (i info) Size() int64 {
	if i.file.read != nil {
		return 4096
	}
	return int64(len(i.file.data))
}
