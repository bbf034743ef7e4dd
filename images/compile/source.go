// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Source is an archive of sources: a tar file, compressed with gzip.
type Source struct {
	At       string // URL, or a path that starts at the site's folder
	Checksum string // sha256:HEX; "": whatever a file has
}

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

// read brings the archive to a file, and compares it with its checksum.
func (s Source) read(ctx context.Context, site, to string) (archive, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	in, err := s.open(ctx, site)
	if err != nil {
		return archive{}, err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return archive{}, err
	}
	defer out.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, sum), io.LimitReader(in, mostPacked+1))
	switch {
	case ctx.Err() != nil:
		return archive{}, errkind.New(errkind.Timeout, "%s: %w", s.At, context.Cause(ctx)).Do("Try again later, or bring the archive here and name the file.")
	case err != nil:
		return archive{}, errkind.New(errkind.Unreachable, "%s: %w", s.At, err).Do("Try again later, or bring the archive here and name the file.")
	case n > mostPacked:
		return archive{}, errkind.New(errkind.Refused, "%s is larger than %d MiB", s.At, mostPacked>>20).Do("Name an archive of sources.")
	}
	a := archive{to, "sha256:" + hex.EncodeToString(sum.Sum(nil)), path.Base(s.At)}
	if s.Checksum != "" && a.digest != s.Checksum {
		return archive{}, errkind.New(errkind.Corrupt, "%s is %s, and its checksum in the site's files is %s", s.At, a.digest, s.Checksum).
			Do("Nothing was compiled. Find out which of the two is right: a published archive does not change.")
	}
	return a, out.Close()
}

// open opens the file, or asks for the URL. A proxy is taken from the environment, as apt
// takes it.
func (s Source) open(ctx context.Context, site string) (io.ReadCloser, error) {
	if !s.IsURL() {
		at := s.At
		if !filepath.IsAbs(at) {
			at = filepath.Join(site, filepath.FromSlash(at))
		}
		f, err := os.Open(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, errkind.New(errkind.NotFound, "there is no file %s", at).Do("Bring the archive of its sources there; docs/drivers.md says which.")
		case err != nil:
			return nil, err
		}
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			return nil, errkind.New(errkind.Refused, "%s is no file", at).Do("Name a source archive (.tar.gz).")
		}
		return f, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.At, nil)
	if err != nil {
		return nil, errkind.New(errkind.Refused, "%w", err).Do("Correct its source.")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, errkind.New(errkind.Unreachable, "%s does not answer: %w", req.URL.Host, err).
			Do("Look at the network of this controller and at https_proxy in its environment; or bring the archive here and name the file.")
	}
	if res.StatusCode != http.StatusOK {
		res.Body.Close()
		return nil, errkind.New(errkind.NotFound, "%s: it answers %s", s.At, res.Status).Do("Correct its source.")
	}
	return res.Body, nil
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
