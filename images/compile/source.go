// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/download"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/meter"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Source is an archive of sources: a tar file, compressed with gzip.
type Source struct {
	At       string // URL, or a path that starts at the site's folder
	Checksum string // sha256:HEX; "": whatever a file has
	// Own is the text of a program of ironrail itself, of one file that is called At; then
	// there is no archive elsewhere.
	Own []byte
}

// Identity is what determines the sources, for digests.
func (s Source) Identity() string {
	if s.Own != nil {
		return fmt.Sprintf("{%q %q}", s.At, digestOf(s.Own))
	}
	return fmt.Sprintf("{%q %q}", s.At, s.Checksum)
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return digestText(sum[:])
}

// digestText is a SHA-256 as text.
func digestText(sum []byte) string { return "sha256:" + hex.EncodeToString(sum) }

// IsURL reports whether a source is fetched.
func (s Source) IsURL() bool {
	return strings.HasPrefix(s.At, "http://") || strings.HasPrefix(s.At, "https://")
}

// Bounds of an archive.
const (
	fetchLimit  = 15 * time.Minute
	mostPacked  = 256 << 20 // bytes
	mostContent = 2 << 30
	mostEntries = 100_000
)

// archive is a source archive that was read, and is what was asked for.
type archive struct{ path, digest, name string }

// read brings the archive to a new file, and compares it with its checksum.
func (s Source) read(ctx context.Context, site, to string, say func(string)) (archive, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	if s.Own != nil {
		return archive{to, digestOf(s.Own), s.At}, s.wrap(to)
	}
	sum := sha256.New()
	bring := s.copy
	if s.IsURL() {
		bring = s.fetch
	}
	if err := bring(ctx, site, to, sum, say); err != nil {
		return archive{}, err
	}
	a := archive{to, digestText(sum.Sum(nil)), path.Base(s.At)}
	if s.Checksum != "" && a.digest != s.Checksum {
		return archive{}, errkind.New(errkind.Corrupt, "%s is %s, and its checksum in the site's files is %s", s.At, a.digest, s.Checksum).
			Do("Nothing was compiled. Find out which of the two is right: a published archive does not change.")
	}
	return a, nil
}

// wrap makes an archive of the one file that s.Own is.
func (s Source) wrap(to string) error {
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	err := w.WriteHeader(&tar.Header{Name: "ironrail/" + s.At, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(s.Own))})
	if err == nil {
		_, err = w.Write(s.Own)
	}
	if err := errors.Join(err, w.Close(), zip.Close()); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

// fetch brings the archive from its URL.
func (s Source) fetch(ctx context.Context, _, to string, sum hash.Hash, say func(string)) error {
	err := download.File{URL: s.At, To: to, Sum: sum, Most: mostPacked, Say: say}.Fetch(ctx)
	const later = "Try again later, or bring the archive here and name the file."
	switch kind := errkind.Of(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errkind.New(errkind.Timeout, "%s: %w", s.At, context.Cause(ctx)).Do(later)
	case kind == errkind.NotFound:
		return errkind.New(kind, "%w", err).Do("Correct its source.")
	case kind == errkind.Refused:
		return errkind.New(kind, "%w", err).Do("Name an archive of sources that is served to everybody.")
	default:
		return errkind.New(errkind.Unreachable, "%w", err).Do(cmp.Or(errkind.Action(err), later))
	}
}

// copy brings the archive from a file of this controller.
func (s Source) copy(ctx context.Context, site, to string, sum hash.Hash, _ func(string)) error {
	at := folder.Path(site, s.At)
	in, err := os.Open(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errkind.New(errkind.NotFound, "there is no file %s", at).Do("Bring the archive of its sources there; docs/drivers.md says which.")
	case err != nil:
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return errkind.New(errkind.Refused, "%s is no file", at).Do("Name a source archive (.tar.gz).")
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(meter.WithContext(ctx, in), mostPacked+1))
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	if n > mostPacked {
		return errkind.New(errkind.Refused, "%s is larger than %d MiB", s.At, mostPacked>>20).Do("Name an archive of sources.")
	}
	return nil
}

// version is the version of the package: the release that the archive's name has, and the
// beginning of the archive's digest, so that another archive is another version.
func (a archive) version() string {
	number := "0"
	if m := releaseNumber.FindStringSubmatch(a.name); m != nil {
		number = m[1]
	}
	return number + "+" + strings.TrimPrefix(a.digest, "sha256:")[:16]
}

// releaseNumber is that of an archive's name: v2.17.6.tar.gz, nccl-tests-2.17.6.tgz.
var releaseNumber = lazyregexp.New(`(?:^|[^0-9a-zA-Z])v?([0-9]{1,6}(?:\.[0-9]{1,6}){0,3})\.t(?:ar\.)?gz$`)

// unpack unpacks the archive into a new folder, which belongs to user. The one folder at
// its top is left out. Nothing is written outside of it.
func (a archive) unpack(ctx context.Context, to string, user int) error {
	f, err := os.Open(a.path)
	if err != nil {
		return err
	}
	defer f.Close()
	unzip, err := gzip.NewReader(f)
	if err != nil {
		return errkind.New(errkind.Invalid, "%s is not compressed with gzip: %w", a.name, err).Do("Name a source archive (.tar.gz).")
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	u := unpacker{root: root, user: user}
	if err := errors.Join(root.Chown(".", user, user), u.all(ctx, tar.NewReader(unzip))); err != nil {
		return fmt.Errorf("unpack %s: %w", a.name, err)
	}
	return nil
}

// unpacker writes the entries of an archive below a folder.
type unpacker struct {
	root    *os.Root
	user    int
	entries int
	size    int64
}

func (u *unpacker) all(ctx context.Context, from *tar.Reader) error {
	for {
		h, err := from.Next()
		switch {
		case err == io.EOF && u.entries == 0:
			return errkind.New(errkind.Invalid, "there is no file in it").Do("Name a source archive (.tar.gz).")
		case err == io.EOF:
			return nil
		case err != nil:
			return errkind.New(errkind.Invalid, "%w", err).Do("Fetch the archive again.")
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		if !filepath.IsLocal(path.Clean(h.Name)) {
			return errkind.New(errkind.Refused, "%q leads outside of the archive", h.Name).Do("Do not use this archive.")
		}
		_, name, below := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag == tar.TypeXGlobalHeader || !below {
			continue // the folder at the top, and what stands beside it
		}
		if u.entries++; u.entries > mostEntries {
			return errkind.New(errkind.Refused, "it has more than %d files", mostEntries)
		}
		if err := u.entry(h, name, from); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
}

// entry writes one entry. What is no file, folder or symbolic link is left out.
func (u *unpacker) entry(h *tar.Header, name string, from io.Reader) error {
	if err := u.folder(path.Dir(name)); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.folder(name)
	case tar.TypeSymlink:
		return errors.Join(u.root.Symlink(h.Linkname, name), u.root.Lchown(name, u.user, u.user))
	case tar.TypeReg:
		if u.size += h.Size; u.size > mostContent {
			return errkind.New(errkind.Refused, "the archive has more than %d GiB", mostContent>>30)
		}
		mode := fs.FileMode(0o644)
		if h.Mode&0o100 != 0 {
			mode = 0o755
		}
		out, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, from)
		return errors.Join(err, out.Chown(u.user, u.user), out.Close(), u.root.Chtimes(name, epoch, epoch))
	}
	return nil
}

// folder makes a folder with those above it.
func (u *unpacker) folder(name string) error {
	if name == "." {
		return nil
	}
	if err := u.folder(path.Dir(name)); err != nil {
		return err
	}
	err := u.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return errors.Join(err, u.root.Lchown(name, u.user, u.user))
}
