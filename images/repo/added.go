// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/dnf"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Added is a package file that is on offer beside those of the sources.
type Added struct {
	File string // .deb or .rpm
	Sum  string // SHA-256, in hex
}

// Proof is why a package file may be added: one of both.
type Proof struct {
	Sum string // SHA-256 that its vendor publishes, in hex
	Key []byte // OpenPGP public key, in ASCII armor, that an .rpm is signed with
}

// Formats of package files, by the end of their names.
const (
	debSuffix = ".deb"
	rpmSuffix = ".rpm"
)

// Inspect compares a package file with its proof, and returns what it says to be, with its
// digest.
func Inspect(ctx context.Context, file string, p Proof) (c Content, err error) {
	format := filepath.Ext(file)
	if format != debSuffix && format != rpmSuffix {
		return c, errkind.New(errkind.Refused, "%s is neither a .deb nor an .rpm", file)
	}
	if file, err = filepath.Abs(file); err != nil {
		return c, err
	}
	_, sum, err := folder.Sum(file)
	if err != nil {
		return c, err
	}
	switch {
	case p.Sum != "" && !strings.EqualFold(strings.TrimPrefix(p.Sum, "sha256:"), sum):
		return c, errkind.New(errkind.Mismatch, "%s has SHA-256 %s, not %s", file, sum, p.Sum).Do("Fetch it again, and compare the digest with what its vendor publishes.")
	case p.Sum != "":
	case format == debSuffix:
		return c, errkind.New(errkind.Refused, "%s has no signature of its own, as no .deb has", file).Do("Give --checksum, as its vendor publishes it.")
	default:
		if err := checkSignature(ctx, file, p.Key); err != nil {
			return c, err
		}
	}
	if format == debSuffix {
		c, err = inspectDeb(ctx, file)
	} else {
		c, err = inspectRPM(ctx, file)
	}
	c.Digest = "sha256:" + sum
	return c, err
}

// inspectDeb reads the control file of a .deb.
func inspectDeb(ctx context.Context, file string) (Content, error) {
	control, err := tool.Runner{}.Output(ctx, "dpkg-deb", "--field", file)
	if err != nil {
		return Content{}, err
	}
	s, err := parseStanza(control)
	return Content{Name: s.name, Version: s.version, Arch: s.arch}, err
}

// inspectRPM reads the header of an .rpm.
func inspectRPM(ctx context.Context, file string) (c Content, err error) {
	out, err := tool.Runner{}.Output(ctx, "rpm", "--query", "--nosignature", "--queryformat", "%{NAME}\t%{EPOCHNUM}\t%{VERSION}\t%{RELEASE}\t%{ARCH}", "--package", file)
	if err != nil {
		return c, err
	}
	f := strings.Split(string(out), "\t")
	if len(f) != 5 || !repodata.IsName(f[0]) || !repodata.IsVersion(f[2]+"-"+f[3]) {
		return c, errkind.New(errkind.Invalid, "%s says to be %q", file, out)
	}
	p := repodata.Package{Name: f[0], Epoch: f[1], Version: f[2], Release: f[3]}
	return Content{Name: p.Name, Version: p.EVR(), Arch: f[4]}, nil
}

// checkSignature compares the signature of an .rpm with a key, by rpm with no other key.
func checkSignature(ctx context.Context, file string, key []byte) error {
	if err := signature.CheckKey(string(key)); err != nil {
		return errkind.New(errkind.Refused, "the key %w", err).Do("Give the key that signs the package, as its vendor publishes it, in ASCII armor; or --checksum.")
	}
	dir, err := os.MkdirTemp("", "ironrail-key-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // below the system's folder for such
	at := filepath.Join(dir, "key.asc")
	if err := os.WriteFile(at, key, 0o600); err != nil {
		return err
	}
	run := tool.Runner{Env: []string{"HOME=" + dir}} // whose macros of rpm are none
	database := "--dbpath=" + filepath.Join(dir, "db")
	if err := run.Run(ctx, nil, "rpmkeys", database, "--import", at); err != nil {
		return err
	}
	out, err := run.Output(ctx, "rpmkeys", database, "--define", "_pkgverify_level all", "--checksig", file)
	if err != nil || !strings.Contains(string(out), "signatures OK") {
		return errkind.New(errkind.Mismatch, "%s has no signature of this key: %q, %v", file, strings.TrimSpace(string(out)), err).Do("Give the key that signs it, as its vendor publishes it; or --checksum.")
	}
	return nil
}

// copyAdded copies the added files of a format into the pool of a folder, and reports whether there
// are any. One that is another than it was is refused.
func (o Options) copyAdded(to, format string) (found bool, err error) {
	for _, a := range o.Added {
		if filepath.Ext(a.File) != format {
			continue
		}
		if _, sum, err := folder.Sum(a.File); err != nil || sum != a.Sum {
			return false, errkind.New(errkind.Corrupt, "added package %s is not what was added: %w", a.File, errors.Join(err, fmt.Errorf("it has SHA-256 %s, not %s", sum, a.Sum))).Do("Add it again: `ironrail repo add`.")
		}
		at := filepath.Join(to, pool, filepath.Base(a.File))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return false, err
		}
		if err := copyFile(at, a.File); err != nil {
			return false, err
		}
		found = true
	}
	return found, nil
}

// quiet are the options of a repository of what was added.
func (o Options) quiet() Options { return Options{Name: "added", Key: o.Key, Image: o.Image} }

// aptAdded makes a repository of the .deb files that were added, and returns it as a source; false
// where there are none.
func (o Options) aptAdded(ctx context.Context, dir string) (Source, bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Source{}, false, err
	}
	from := filepath.Join(dir, "from")
	found, err := o.copyAdded(from, debSuffix)
	if err != nil || !found {
		return Source{}, false, err
	}
	debs, err := filepath.Glob(filepath.Join(from, pool, "*"+debSuffix))
	if err != nil {
		return Source{}, false, err
	}
	stanzas, err := fillPool(ctx, filepath.Join(dir, pool), debs)
	if err != nil {
		return Source{}, false, err
	}
	if _, err := writeIndex(o.quiet(), dir, stanzas); err != nil {
		return Source{}, false, err
	}
	return Source{URL: "file:" + dir, Suite: "./", Key: o.Key.Public()}, true, nil
}

// dnfAdded is aptAdded of the .rpm files.
func (o Options) dnfAdded(ctx context.Context, dir string) (dnf.Repository, bool, error) {
	found, err := o.copyAdded(dir, rpmSuffix)
	if err != nil || !found {
		return dnf.Repository{}, false, err
	}
	if _, err := o.quiet().indexDnf(ctx, dir); err != nil {
		return dnf.Repository{}, false, err
	}
	return dnf.Repository{ID: "added", URL: "file://" + dir, Key: string(o.Key.Public()), SignedIndex: true, Hotfixes: true}, true, nil
}

// AddedSums are the digests of what was added, sorted: they decide what a repository holds.
func AddedSums(list []Added) (sums []string) {
	for _, a := range list {
		sums = append(sums, a.Sum)
	}
	slices.Sort(sums)
	return sums
}

// IsSum reports whether a text is a SHA-256 in hex, with sha256: before it or without.
func IsSum(text string) bool {
	b, err := hex.DecodeString(strings.TrimPrefix(text, "sha256:"))
	return err == nil && len(b) == 32
}
