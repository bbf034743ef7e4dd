// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"io/fs"
	"maps"
	"slices"
	"sync"
)

// recorder is a file system that records which names were asked for, whether they are there or
// not. It is safe for concurrent use.
type recorder struct {
	fs.FS
	mu    sync.Mutex // guards names
	names map[string]bool
}

func newRecorder(f fs.FS) *recorder { return &recorder{FS: f, names: map[string]bool{}} }

func (r *recorder) record(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[name] = true
}

// Open implements fs.FS.
func (r *recorder) Open(name string) (fs.File, error) {
	r.record(name)
	return r.FS.Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (r *recorder) ReadDir(name string) ([]fs.DirEntry, error) {
	r.record(name)
	return fs.ReadDir(r.FS, name)
}

// Stat implements fs.StatFS.
func (r *recorder) Stat(name string) (fs.FileInfo, error) {
	r.record(name)
	return fs.Stat(r.FS, name)
}

// list is the names, sorted.
func (r *recorder) list() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.names))
}
