// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"io/fs"
	"path"
	"slices"
	"strings"
)

// file is one entry of a tree: a folder, a link, a file that never changes, or an
// attribute that the kernel makes up when it is read. It is immutable.
type file struct {
	mode  fs.FileMode // type and permissions
	data  string
	link  string
	read  func(*Kernel) (string, error) // nil: data
	there func(*Kernel) bool            // nil: always
}

// present reports whether the entry is there now.
func (f *file) present(k *Kernel) bool { return f.there == nil || f.there(k) }

// tree is files by their path, links unresolved, with every folder. All nodes of
// one hardware block share one; it is immutable once built.
type tree struct {
	files    map[string]*file
	children map[string][]string     // sorted
	unlisted func(name string) *file // what is there though files has not got it; may be nil
}

// lookup returns the entry of a path without links, or nil.
func (t *tree) lookup(name string) *file {
	if f := t.files[name]; f != nil || t.unlisted == nil {
		return f
	}
	return t.unlisted(name)
}

func newTree() *tree {
	return &tree{files: map[string]*file{".": {mode: fs.ModeDir | 0o755}}, children: map[string][]string{}}
}

// put adds an entry and the folders above it, which are there when it is.
func (t *tree) put(name string, f *file) {
	if _, taken := t.files[name]; !taken {
		dir := path.Dir(name)
		t.children[dir] = append(t.children[dir], path.Base(name))
		if t.files[dir] == nil {
			t.put(dir, &file{mode: fs.ModeDir | 0o755, there: f.there})
		}
	}
	t.files[name] = f
}

// sort ends the building of a tree.
func (t *tree) sort() *tree {
	for _, names := range t.children {
		slices.Sort(names)
	}
	return t
}

// branch adds entries below one folder, all there on the same condition.
type branch struct {
	*tree
	dir   string
	there func(*Kernel) bool
}

func (b branch) at(dir string) branch { return branch{b.tree, path.Join(b.dir, dir), b.there} }

// text adds a file with a newline at its end, as sysfs has them.
func (b branch) text(name, text string) {
	b.put(path.Join(b.dir, name), &file{mode: 0o444, data: text + "\n", there: b.there})
}

// attr adds an attribute that is made up on reading.
func (b branch) attr(name string, read func(*Kernel) (string, error)) {
	b.put(path.Join(b.dir, name), &file{mode: 0o444, read: read, there: b.there})
}

// live is attr for one that never fails; the newline is added.
func (b branch) live(name string, read func(*Kernel) string) {
	b.attr(name, func(k *Kernel) (string, error) { return read(k) + "\n", nil })
}

// link adds a relative link to a path below the root.
func (b branch) link(name, to string) {
	from := path.Join(b.dir, name)
	b.put(from, &file{mode: fs.ModeSymlink | 0o777, link: strings.Repeat("../", strings.Count(from, "/")) + to, there: b.there})
}
