// SPDX-License-Identifier: Apache-2.0

package roottree

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Files are what Unpack has written: the digest of each regular file that is not empty,
// by name.
type Files map[string][sha256.Size]byte

// Unpack puts a tree that Pack has written below dir, which is empty but for what mkfs
// makes. Names that lead out of it are refused, and no link is followed.
func Unpack(ctx context.Context, r io.Reader, dir string) (Files, error) {
	u := unpacker{dir: dir, files: Files{}}
	in := tar.NewReader(r)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("files of the image: %w", err)
		}
		if err := u.put(h, in); err != nil {
			return nil, fmt.Errorf("file %q of the image: %w", h.Name, err)
		}
	}
	for i := len(u.folders) - 1; i >= 0; i-- { // what was put into a folder has changed its time
		h := u.folders[i]
		if err := setTime(u.at(h.Name), h.ModTime); err != nil {
			return nil, err
		}
	}
	return u.files, nil
}

type unpacker struct {
	dir     string
	files   Files
	folders []*tar.Header
	made    map[string]bool // folders of the tree, so that no link stands on the way
}

// at is where a name of the archive lies. put has looked at the name.
func (u *unpacker) at(name string) string {
	return filepath.Join(u.dir, filepath.FromSlash(path.Clean(name)))
}

// put makes one file. A file's folder comes before it in the archive, and is a folder
// that this made: so no link of the tree is ever on the way.
func (u *unpacker) put(h *tar.Header, in io.Reader) error {
	name := path.Clean(h.Name)
	if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") {
		return errors.New("leads out of the root")
	}
	if u.made == nil {
		u.made = map[string]bool{".": true}
	}
	if !u.made[path.Dir(name)] {
		return errors.New("comes before its folder")
	}
	to := u.at(name)
	if h.Typeflag != tar.TypeDir && name == "." {
		return errors.New("is no folder")
	}
	if err := u.create(h, to, name, in); err != nil || h.Typeflag == tar.TypeLink {
		return err
	}
	return settle(h, to)
}

// create makes the file without its owner and mode.
func (u *unpacker) create(h *tar.Header, to, name string, in io.Reader) error {
	device := int(unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor)))
	switch h.Typeflag {
	case tar.TypeDir:
		if err := os.Mkdir(to, 0o700); err != nil && !(errors.Is(err, os.ErrExist) && isFolder(to)) {
			return err
		}
		u.made[name] = true
		u.folders = append(u.folders, h)
		return nil
	case tar.TypeReg:
		return u.regular(to, name, in)
	case tar.TypeSymlink:
		return os.Symlink(h.Linkname, to)
	case tar.TypeLink:
		from := path.Clean(h.Linkname)
		if path.IsAbs(from) || strings.HasPrefix(from, "../") || !u.made[path.Dir(from)] {
			return errors.New("is a link to what is not there")
		}
		return os.Link(u.at(from), to)
	case tar.TypeChar:
		return unix.Mknod(to, unix.S_IFCHR|0o600, device)
	case tar.TypeBlock:
		return unix.Mknod(to, unix.S_IFBLK|0o600, device)
	case tar.TypeFifo:
		return unix.Mkfifo(to, 0o600)
	}
	return fmt.Errorf("is of type %q, which a root file system has not", h.Typeflag)
}

func isFolder(name string) bool {
	info, err := os.Lstat(name)
	return err == nil && info.IsDir()
}

func (u *unpacker) regular(to, name string, in io.Reader) error {
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(f, hash), in)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if n > 0 {
		u.files[name] = [sha256.Size]byte(hash.Sum(nil))
	}
	return nil
}

// settle gives a file its owner, mode, attributes and time, in this order: a change of
// the owner takes capabilities and the set-user-id bit away.
func settle(h *tar.Header, to string) error {
	if err := os.Lchown(to, h.Uid, h.Gid); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeSymlink {
		if err := unix.Chmod(to, uint32(h.Mode)&0o7777); err != nil {
			return err
		}
	}
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, xattr)
		if !ok {
			continue
		}
		if err := unix.Lsetxattr(to, name, []byte(value), 0); err != nil {
			return fmt.Errorf("extended attribute %s: %w", name, err)
		}
	}
	if h.Typeflag == tar.TypeDir {
		return nil // at the end
	}
	return setTime(to, h.ModTime)
}

func setTime(to string, t time.Time) error {
	ts, err := unix.TimeToTimespec(t)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(unix.AT_FDCWD, to, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// Verify reads the files that Unpack has written again and compares them. The caller
// sees to it that they come from the disk and not from a cache. read is called with each
// file's bytes.
func (all Files) Verify(ctx context.Context, dir string, read func(int64)) error {
	for name, want := range all {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return fmt.Errorf("read back: %w", err)
		}
		hash := sha256.New()
		n, err := io.Copy(hash, f)
		f.Close()
		if err != nil {
			return fmt.Errorf("read back %s: %w", name, err)
		}
		if !bytes.Equal(hash.Sum(nil), want[:]) {
			return fmt.Errorf("%s: the disk returns other bytes than were written", name)
		}
		read(n)
	}
	return nil
}
