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

// Pack writes the tree below dir in the order of its names, so that the same tree gives
// the same bytes. Sockets are left out: they belong to processes. Another file system
// that is mounted below dir is an error.
func Pack(w io.Writer, dir string) error {
	p := packer{to: tar.NewWriter(w), dir: dir, links: map[[2]uint64]string{}}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := p.add(path, name, e); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
	return errors.Join(err, p.to.Close())
}

type packer struct {
	to     *tar.Writer
	dir    string
	device uint64               // of dir
	links  map[[2]uint64]string // names by device and inode, of files with several
}

func (p *packer) add(path, name string, e fs.DirEntry) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	st := info.Sys().(*syscall.Stat_t)
	if name == "." {
		p.device = uint64(st.Dev)
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
