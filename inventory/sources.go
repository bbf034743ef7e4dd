// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"github.com/ironrail/ironrail/inventory/language"
)

// Sources are the files and folders of a site that Load looked for, as they were then. It is
// safe for concurrent use. While Load runs it is the file system that Load reads.
type Sources struct {
	fs.FS // closed with the end of Load
	dir   string
	mu    sync.Mutex        // guards was
	was   map[string]string // describeSource by path from dir, from before it was read
}

// missingFolder are the sources of a folder that cannot be opened.
func missingFolder(dir string) *Sources {
	return &Sources{dir: dir, was: map[string]string{".": ""}}
}

// record keeps how a file was when it was looked for first.
func (s *Sources) record(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.was[name]; !known {
		s.was[name] = describeSource(s.FS, name)
	}
}

// Open implements fs.FS.
func (s *Sources) Open(name string) (fs.File, error) {
	s.record(name)
	return s.FS.Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (s *Sources) ReadDir(name string) ([]fs.DirEntry, error) {
	s.record(name)
	return fs.ReadDir(s.FS, name)
}

// Stat implements fs.StatFS.
func (s *Sources) Stat(name string) (fs.FileInfo, error) {
	s.record(name)
	return fs.Stat(s.FS, name)
}

// HaveChanged reports whether another Load would find other files than the one that these
// are of: other sizes or times, more or fewer. Without a Load, nil, it would.
func (s *Sources) HaveChanged() bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		return s.was["."] != ""
	}
	defer root.Close()
	for name, was := range s.was {
		if describeSource(root.FS(), name) != was {
			return true
		}
	}
	return false
}

// describeSource changes when a file does, and for a folder when other files of the language lie
// in it; "" for what is not there or cannot be read.
func describeSource(fsys fs.FS, name string) string {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return ""
	}
	if !info.IsDir() {
		return fmt.Sprint(info.Size(), " ", info.ModTime().UnixNano())
	}
	list, err := fs.ReadDir(fsys, name)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, e := range list {
		if language.IsSource(e) {
			fmt.Fprintf(&b, "%q ", e.Name())
		}
	}
	return "folder " + b.String()
}
