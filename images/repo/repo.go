// SPDX-License-Identifier: Apache-2.0

// Package repo makes apt and dnf repositories of driver stacks: the named packages and
// all that they need beyond what an image has, downloaded once on the controller
// and signed by the controller's own key. Nodes need no other source.
//
// A repository is flat; its files are, below DIR/NAME/DIGEST/:
//
//	InRelease, Packages, Packages.gz             what apt reads
//	repodata/repomd.xml, .asc and what it names  what dnf reads
//	key.asc                                      public key, for signed-by and gpgkey
//	pool/NAME_VERSION_ARCH.deb, pool/FILE.rpm    the packages
//	repo.json                                    what it was made from and what it holds
//
// DIR/NAME/current names the DIGEST that is served. The one before stays until
// the next build, so that a node in the middle of an installation can end it.
package repo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/errkind"
)

// version changes whenever the same options would give other files.
const version = 1

// Image is what a repository is resolved against. The paths are files that are
// kept with the image; see packages debian and rhel.
type Image struct {
	Digest  string // of the image's manifest
	Status  string // dpkg's list of installed packages
	Sources string // apt sources, one-line format
	Keyring string // OpenPGP keys of those sources
	Arch    string // of its packages, as dpkg has it; empty: amd64

	// Of an image of RPM packages alone, which has none of the above but Digest and Arch.
	Database     string // rpm's database
	Repositories string // DnfSources as JSON
}

// isDnf reports whether the image is of RPM packages.
func (i Image) isDnf() bool { return i.Database != "" }

// arch is the architecture of the image's packages.
func (i Image) arch() string { return cmp.Or(i.Arch, defaultArch) }

// defaultArch is the architecture where none is named.
const defaultArch = "amd64"

// Options say what a repository is.
type Options struct {
	Dir      string // of all repositories
	Name     string // of this one; letters, digits and dashes
	Packages []string
	Image    Image
	Key      *Key

	Pins       []Pin    // versions that are taken although newer ones are on offer
	Sources    []Source // beside those of the image
	Components []string // added to the image's own sources, such as non-free
	Added      []Added  // files beside the sources
	Made       Made     // packages that no source has

	Say func(string) // progress in short lines; nil for silence
}

// Repo is a finished repository.
type Repo struct {
	Name     string
	Dir      string            // its files
	Digest   string            // sha256:HEX over the index, which covers every package
	Packages map[string]string // all of them, with version
	Size     int64             // bytes of packages
	Key      []byte            // armored public key
}

// record is repo.json.
type record struct {
	Inputs   string            `json:"inputs"` // digest of the options
	Image    string            `json:"image"`
	Wanted   []string          `json:"wanted"`
	Packages map[string]string `json:"packages"`
	Size     int64             `json:"size"`
}

// File names in a repository.
const (
	inRelease   = "InRelease"
	packages    = "Packages"
	packagesGz  = "Packages.gz"
	publicKey   = "key.asc"
	recordFile  = "repo.json"
	pool        = "pool"
	currentFile = "current"
)

// check refuses options whose text would not be safe in a command or a path.
func (o *Options) check() error {
	if !isWord(o.Name, "-_") {
		return errkind.New(errkind.Refused, "repository %q: a name has lower-case letters, digits and dashes", o.Name)
	}
	if len(o.Packages) == 0 {
		return errkind.New(errkind.Refused, "repository %s: no packages", o.Name)
	}
	for _, p := range slices.Concat(o.Packages, o.Made.Packages) {
		if len(p) < 2 || !isWord(p, "+-.") && !(o.Image.isDnf() && repodata.IsName(p)) {
			return errkind.New(errkind.Refused, "repository %s: %q is no package name", o.Name, p)
		}
	}
	for _, p := range o.Pins {
		if err := p.check(o.Image.isDnf()); err != nil {
			return errkind.New(errkind.Refused, "repository %s: %w", o.Name, err)
		}
	}
	for _, s := range o.Sources {
		if err := s.check(); err != nil {
			return errkind.New(errkind.Refused, "repository %s: %w", o.Name, err)
		}
	}
	if !isWord(o.Image.arch(), "") {
		return errkind.New(errkind.Refused, "repository %s: %q is no architecture", o.Name, o.Image.Arch)
	}
	if o.Key == nil {
		return errkind.New(errkind.Internal, "repository %s: no signing key", o.Name)
	}
	return nil
}

// isWord reports whether s begins with a lower-case letter or digit and continues
// with those and the given signs (Debian Policy 5.6.1 for package names).
func isWord(s, signs string) bool {
	for i, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || i > 0 && strings.ContainsRune(signs, c)) {
			return false
		}
	}
	return s != ""
}

// inputs is the digest of everything that decides the repository, except what
// the sources offer on the day of the build.
func (o *Options) inputs() string {
	wanted := slices.Clone(o.Packages)
	slices.Sort(wanted)
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n%s\n%s\n%s\n", version, o.Name, strings.Join(slices.Compact(wanted), " "), o.Image.Digest, o.Key.fingerprint())
	if o.Image.arch() != defaultArch {
		fmt.Fprintf(h, "%s\n", o.Image.Arch)
	}
	if len(o.Pins)+len(o.Sources)+len(o.Components) > 0 {
		fmt.Fprintf(h, "%q\n%q\n%q\n", o.Pins, o.Sources, o.Components)
	}
	if len(o.Added) > 0 {
		fmt.Fprintf(h, "added %q\n", AddedSums(o.Added))
	}
	if len(o.Made.Packages) > 0 {
		fmt.Fprintf(h, "%q\n%q\n", o.Made.Packages, o.Made.Inputs)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

func (o *Options) logf(format string, args ...any) {
	if o.Say != nil {
		o.Say(fmt.Sprintf(format, args...))
	}
}

// Build makes the repository, unless the one that is there was made of the same
// packages for the same image and is whole. It may take minutes. Of several
// callers, also in other processes, one builds and the others wait.
func Build(ctx context.Context, o Options) (Repo, error) {
	if o.Image.isDnf() {
		return ensureRepo(ctx, o, o.fillDnf)
	}
	return ensureRepo(ctx, o, o.fill(o.fetch))
}

// ensureRepo is Build with packages from anywhere.
func ensureRepo(ctx context.Context, o Options, make filler) (Repo, error) {
	if err := o.check(); err != nil {
		return Repo{}, err
	}
	base := filepath.Join(o.Dir, o.Name)
	if err := os.MkdirAll(base, 0o755); err != nil {
		return Repo{}, fmt.Errorf("repository %s: %w", o.Name, err)
	}
	unlock, err := folder.Lock(ctx, filepath.Join(base, "lock"))
	if err != nil {
		return Repo{}, fmt.Errorf("repository %s: %w", o.Name, err)
	}
	defer unlock()
	if r, found, err := Find(o); err != nil {
		return Repo{}, err
	} else if found && r.Verify(ctx, o.Key) == nil {
		return r, nil
	}
	if err := sweepRepos(base); err != nil {
		return Repo{}, fmt.Errorf("repository %s: %w", o.Name, err)
	}
	if err := buildRepo(ctx, base, make); err != nil {
		return Repo{}, fmt.Errorf("repository %s: %w", o.Name, err)
	}
	r, found, err := Find(o)
	if err == nil && !found {
		err = errkind.New(errkind.Internal, "repository %s is not there after it was built", o.Name)
	}
	return r, err
}

// Find returns the repository that Build made of the same options; false when
// there is none. It does not read the packages: Verify does.
func Find(o Options) (Repo, bool, error) {
	if err := o.check(); err != nil {
		return Repo{}, false, err
	}
	digest, dir, err := currentRepo(filepath.Join(o.Dir, o.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return Repo{}, false, nil
	}
	if err != nil {
		return Repo{}, false, fmt.Errorf("repository %s: %w", o.Name, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, recordFile))
	var rec record
	if err != nil || json.Unmarshal(b, &rec) != nil || rec.Inputs != o.inputs() {
		return Repo{}, false, nil // damaged or of other options: a build replaces it
	}
	return Repo{Name: o.Name, Dir: dir, Digest: digest, Packages: rec.Packages, Size: rec.Size, Key: o.Key.Public()}, true, nil
}

// currentRepo returns the digest and folder of the repository that is served.
func currentRepo(base string) (digest, dir string, err error) {
	b, err := os.ReadFile(filepath.Join(base, currentFile))
	if err != nil {
		return "", "", err
	}
	name := strings.TrimSpace(string(b))
	if !isDigestFolder(name) {
		return "", "", errkind.New(errkind.Corrupt, "%s does not name a digest", filepath.Join(base, currentFile))
	}
	return strings.Replace(name, "-", ":", 1), filepath.Join(base, name), nil
}

// isDigestFolder reports whether name is sha256- and 64 hex digits.
func isDigestFolder(name string) bool {
	sum, ok := strings.CutPrefix(name, "sha256-")
	return ok && len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
}

// sweepRepos removes what crashed builds left, and every finished repository but the
// one that is served.
func sweepRepos(base string) error {
	_, keep, err := currentRepo(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && errkind.Of(err) != errkind.Corrupt {
		return err
	}
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(base, e.Name())
		if path == keep || !isDigestFolder(e.Name()) && !strings.HasPrefix(e.Name(), "build-") {
			continue
		}
		if err := folder.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
