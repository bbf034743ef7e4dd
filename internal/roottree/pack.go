// SPDX-License-Identifier: Apache-2.0

// Package roottree carries the files of a root file system from where an image is built
// to a node: a tar archive in the PAX format, with owners, modes, times, hard links,
// devices and extended attributes, which hold capabilities, access control lists and the
// labels of SELinux. Both ends run as root. It is a leaf: the builder and the agent share
// it.
package roottree

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// xattr begins the PAX records of extended attributes, as GNU tar and libarchive have
// them.
const xattr = "SCHILY.xattr."

// Part is a file system that a tree is packed from.
type Part struct {
	Dir  string   // where it is mounted, or the folder itself
	At   string   // its place in the tree; "": it is the root. The tree has the folder that it is in
	Skip []string // names in the tree that are left out, with all that is below them
}

// File is a file of a tree that no part has: a regular one, or a link.
type File struct {
	Name string // in the tree, which has its folder
	Text string
	Link string // target of a symbolic link; "": the file is a regular one
}

// Pack writes the tree below dir in the order of its names, so that the same tree gives
// the same bytes. Sockets are left out: they belong to processes. Another file system
// that is mounted below dir is an error.
func Pack(w io.Writer, dir string) error { return PackParts(w, []Part{{Dir: dir}}, nil) }

// PackParts writes a tree of several parts, the root first, and then files, which belong
// to root and are as old as the root folder.
func PackParts(w io.Writer, parts []Part, files []File) error {
	p := packer{to: tar.NewWriter(w), links: map[[2]uint64]string{}}
	for _, part := range parts {
		if err := p.walk(part); err != nil {
			return errors.Join(err, p.to.Close())
		}
	}
	for _, f := range files {
		if err := p.file(f); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", f.Name, err), p.to.Close())
		}
	}
	return p.to.Close()
}

type packer struct {
	to     *tar.Writer
	device uint64               // of the part
	time   time.Time            // of the root folder
	links  map[[2]uint64]string // names by device and inode, of files with several
}

// walk adds a part.
func (p *packer) walk(part Part) error {
	return filepath.WalkDir(part.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(part.Dir, path)
		if err != nil {
			return err
		}
		name := filepath.Join(part.At, below)
		if slices.Contains(part.Skip, name) {
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if err := p.add(path, name, below == ".", e); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// file adds a file that no part has.
func (p *packer) file(f File) error {
	h := &tar.Header{Format: tar.FormatPAX, Typeflag: tar.TypeReg, Name: f.Name, Mode: 0o644, Size: int64(len(f.Text)), ModTime: p.time}
	if f.Link != "" {
		h.Typeflag, h.Linkname, h.Mode, h.Size = tar.TypeSymlink, f.Link, 0o777, 0
	}
	if err := p.to.WriteHeader(h); err != nil || f.Link != "" {
		return err
	}
	_, err := io.WriteString(p.to, f.Text)
	return err
}

// add adds what is at path. first: it is the root of its part.
func (p *packer) add(path, name string, first bool, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if first {
		p.begin(name, info)
	}
	switch {
	case uint64(st.Dev) != p.device:
		return errors.New("another file system is mounted here")
	case info.Mode()&fs.ModeSocket != 0:
		return nil
	}
	target := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if target, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, target)
	if err != nil {
		return err
	}
	h.Format, h.Name, h.Uname, h.Gname = tar.FormatPAX, filepath.ToSlash(name), "", ""
	h.AccessTime, h.ChangeTime = time.Time{}, time.Time{} // they are of this copy
	if info.IsDir() {
		h.Name += "/"
	}
	if first, again := p.linked(st, name); again && !info.IsDir() {
		h.Typeflag, h.Linkname, h.Size = tar.TypeLink, filepath.ToSlash(first), 0
		return p.to.WriteHeader(h)
	}
	if h.PAXRecords, err = attributes(path); err != nil {
		return err
	}
	if err := p.to.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(p.to, f)
	return err
}

// begin takes a part's root folder, called name, for that of all that comes below it.
func (p *packer) begin(name string, info fs.FileInfo) {
	p.device = uint64(info.Sys().(*syscall.Stat_t).Dev)
	if name == "." {
		p.time = info.ModTime()
	}
}

// linked returns the first name of a file that has several, and whether it is another
// than this.
func (p *packer) linked(st *syscall.Stat_t, name string) (string, bool) {
	if st.Nlink < 2 {
		return "", false
	}
	key := [2]uint64{uint64(st.Dev), st.Ino}
	first, seen := p.links[key]
	if !seen {
		p.links[key] = name
	}
	return first, seen
}

// attributes are the extended attributes of a file, as PAX records.
func attributes(path string) (map[string]string, error) {
	list, err := attribute(func(b []byte) (int, error) { return unix.Llistxattr(path, b) })
	if errors.Is(err, unix.ENOTSUP) || len(list) == 0 && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("extended attributes: %w", err)
	}
	records := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		value, err := attribute(func(b []byte) (int, error) { return unix.Lgetxattr(path, name, b) })
		if err != nil {
			return nil, fmt.Errorf("extended attribute %s: %w", name, err)
		}
		if kept(name) {
			records[xattr+name] = string(value)
		}
	}
	return records, nil
}

// kept reports whether an attribute belongs to a file, and not to the system that looks.
func kept(name string) bool {
	return slices.ContainsFunc([]string{"security.", "user.", "system.posix_acl_", "trusted."}, func(p string) bool { return strings.HasPrefix(name, p) }) && !strings.HasPrefix(name, "trusted.overlay.")
}

// attribute calls a system call of xattr(7) with a buffer that is large enough.
func attribute(get func([]byte) (int, error)) ([]byte, error) {
	for {
		size, err := get(nil)
		if err != nil || size == 0 {
			return nil, err
		}
		b := make([]byte, size)
		n, err := get(b)
		if errors.Is(err, unix.ERANGE) {
			continue // it grew
		}
		return b[:max(n, 0)], err
	}
}
