// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Bounds of one image: what a layer says of itself is not believed.
const (
	maxUnpacked = 128 << 30 // bytes of files
	maxEntries  = 8 << 20
	maxWindow   = 128 << 20 // of a zstd frame
)

// Whiteouts, as layers write them (OCI image specification, layer.md).
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
	aufsMark = ".wh..wh." // of AUFS itself
)

// unpacker applies layers to a root file system, one after the other. Names in layers
// are looked up below the root, whatever links there are, as a system that runs from it
// would; nothing is written outside.
type unpacker struct {
	root    *os.Root
	entries int
	bytes   int64
	devices int // entries that were left out: the kernel makes them

	own   map[string]bool      // what the layer that is applied has made
	times map[string]time.Time // of folders, set last
}

// apply applies one layer: a tar archive, as it is or packed by gzip or zstd. diffID is
// the hex SHA-256 of the archive, as the image's configuration has it.
func (u *unpacker) apply(ctx context.Context, layer io.Reader, diffID string) error {
	plain, done, err := decompress(layer)
	if err != nil {
		return err
	}
	defer done()
	sum := sha256.New()
	all := io.TeeReader(meter.WithContext(ctx, plain), sum)
	u.own, u.times = map[string]bool{}, map[string]time.Time{}
	r := tar.NewReader(all)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errkind.New(errkind.Corrupt, "%w", err)
		}
		if err := u.entry(h, r); err != nil {
			return fmt.Errorf("entry %q: %w", h.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, all); err != nil { // what follows the end of the archive
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != diffID {
		return errkind.New(errkind.Corrupt, "its content has SHA-256 %s; the image's configuration says %s", got, diffID)
	}
	for name, t := range u.times {
		if err := u.root.Chtimes(name, t, t); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// decompress reads what a layer is packed with from its first bytes.
func decompress(r io.Reader) (plain io.Reader, done func(), err error) {
	b := bufio.NewReaderSize(r, 1<<16)
	magic, _ := b.Peek(4) // a short layer is shown by tar
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		if err != nil {
			return nil, nil, errkind.New(errkind.Corrupt, "gzip: %w", err)
		}
		return z, func() { z.Close() }, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, nil, errkind.New(errkind.Corrupt, "zstd: %w", err)
		}
		return z, z.Close, nil
	}
	return b, func() {}, nil
}

// entry applies one entry of a layer.
func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if u.entries++; u.entries > maxEntries {
		return errkind.New(errkind.Refused, "the image has more than %d entries", maxEntries)
	}
	name, err := cleanName(h.Name)
	if err != nil {
		return err
	}
	if name == "." {
		return u.attributes(".", h)
	}
	base := path.Base(name)
	if strings.HasPrefix(base, whiteout) {
		return u.white(name, base)
	}
	if h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock {
		u.devices++ // a system has them from devtmpfs
		return nil
	}
	parent, err := u.folder(path.Dir(name))
	if err != nil {
		return err
	}
	if name = path.Join(parent, base); strings.HasPrefix(name, "../") {
		return errkind.New(errkind.Internal, "%q leads outside of the root", name)
	}
	if err := u.makeRoom(name, h.Typeflag == tar.TypeDir); err != nil {
		return err
	}
	u.own[name] = true
	return u.make(name, h, content)
}

// cleanName is the name of an entry below the root. One with ".." in it is refused: no
// honest builder writes it.
func cleanName(name string) (string, error) {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", errkind.New(errkind.Refused, "its name leads up in the tree").Do("Build the image by another tool.")
	}
	return path.Join(".", strings.TrimLeft(name, "/")), nil
}

// white takes away what a whiteout says, of the layers below: what this layer itself has
// made stays.
func (u *unpacker) white(name, base string) error {
	dir, err := u.folder(path.Dir(name))
	if err != nil {
		return err
	}
	if base == opaque {
		return u.removeLower(dir, false)
	}
	hidden := strings.TrimPrefix(base, whiteout)
	if strings.HasPrefix(base, aufsMark) {
		return nil
	}
	if hidden == "" || hidden == "." || hidden == ".." {
		return errkind.New(errkind.Refused, "it is no whiteout of a name")
	}
	return u.removeLower(path.Join(dir, hidden), true)
}

// removeLower removes what lower layers have put into a folder, and the folder, or file,
// itself where that is asked for.
func (u *unpacker) removeLower(name string, itself bool) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if itself && !u.holdsOwn(name) {
		return u.root.RemoveAll(name)
	}
	if !info.IsDir() {
		return nil
	}
	list, err := fs.ReadDir(u.root.FS(), name)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := u.removeLower(path.Join(name, e.Name()), true); err != nil {
			return err
		}
	}
	return nil
}

// holdsOwn reports whether the layer that is applied has made a name, or something below.
func (u *unpacker) holdsOwn(name string) bool {
	if u.own[name] {
		return true
	}
	for n := range u.own {
		if strings.HasPrefix(n, name+"/") {
			return true
		}
	}
	return false
}

// maxLinks bounds the links that are followed for one name, as the kernel does.
const maxLinks = 40

// folder returns a folder of the root with all links of its name followed, as in a
// chroot: an absolute link begins at the root, and ".." ends there. What is missing is
// made.
func (u *unpacker) folder(name string) (string, error) {
	at, links := ".", 0
	left := strings.Split(name, "/")
	for len(left) > 0 {
		part := left[0]
		left = left[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := path.Join(at, part)
		info, err := u.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := u.root.Mkdir(next, 0o755); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > maxLinks {
				return "", errkind.New(errkind.Refused, "links of %q lead in a circle", name)
			}
			target, err := u.root.Readlink(next)
			if err != nil {
				return "", err
			}
			if path.IsAbs(target) {
				at = "."
			}
			left = append(strings.Split(target, "/"), left...)
			continue
		case !info.IsDir():
			return "", errkind.New(errkind.Corrupt, "%q is no folder", next)
		}
		at = next
	}
	return at, nil
}

// makeRoom removes what has the name, but a folder in the place of a folder.
func (u *unpacker) makeRoom(name string, dir bool) error {
	info, err := u.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir() && dir:
		return nil
	}
	return u.root.RemoveAll(name)
}

// make makes what an entry says, under a name that is free.
func (u *unpacker) make(name string, h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case tar.TypeReg:
		if err := u.file(name, h, content); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := u.root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return u.root.Lchown(name, h.Uid, h.Gid)
	case tar.TypeLink:
		return u.link(name, h.Linkname)
	case tar.TypeFifo:
		if err := u.fifo(name); err != nil {
			return err
		}
	default:
		return errkind.New(errkind.Unsupported, "its type is %q, which no file system has", h.Typeflag)
	}
	return u.attributes(name, h)
}

// file writes the content of a file.
func (u *unpacker) file(name string, h *tar.Header, content io.Reader) error {
	if u.bytes += h.Size; u.bytes > maxUnpacked {
		return errkind.New(errkind.Refused, "the files of the image are larger than %d GiB", maxUnpacked>>30)
	}
	f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// link makes a hard link to what a name of this or a lower layer is.
func (u *unpacker) link(name, target string) error {
	to, err := cleanName(target)
	if err != nil {
		return err
	}
	parent, err := u.folder(path.Dir(to))
	if err != nil {
		return err
	}
	if err := u.root.Link(path.Join(parent, path.Base(to)), name); err != nil {
		return errkind.New(errkind.Corrupt, "hard link to %q: %w", target, err)
	}
	return nil
}

func (u *unpacker) fifo(name string) error {
	dir, err := u.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Mknodat(int(dir.Fd()), path.Base(name), unix.S_IFIFO|0o600, 0)
}

// xattrPrefix is that of extended attributes in the PAX records of an entry.
const xattrPrefix = "SCHILY.xattr."

// attributes gives a file or folder its owner, mode, extended attributes and time. The
// owner first: a new one takes setuid bits and capabilities away.
func (u *unpacker) attributes(name string, h *tar.Header) error {
	if err := u.root.Chown(name, h.Uid, h.Gid); err != nil {
		return err
	}
	if err := u.root.Chmod(name, h.FileInfo().Mode()); err != nil {
		return err
	}
	if h.Typeflag == tar.TypeDir {
		u.times[name] = h.ModTime
	} else if err := u.root.Chtimes(name, h.ModTime, h.ModTime); err != nil {
		return err
	}
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir {
		return nil
	}
	return u.xattrs(name, h.PAXRecords)
}

// xattrs sets extended attributes: capabilities, access lists, labels. Those of overlay
// file systems say something about the builder's disk alone.
func (u *unpacker) xattrs(name string, records map[string]string) error {
	for key, value := range records {
		attr, ok := strings.CutPrefix(key, xattrPrefix)
		if !ok || strings.HasPrefix(attr, "trusted.overlay.") {
			continue
		}
		f, err := u.root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		err = unix.Fsetxattr(int(f.Fd()), attr, []byte(value), 0)
		f.Close()
		if err != nil {
			return errkind.New(errkind.Unsupported, "extended attribute %q: %w", attr, err).
				Do("Keep the state folder on a file system with extended attributes, such as ext4 or xfs, and build as root.")
		}
	}
	return nil
}
