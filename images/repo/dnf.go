// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/dnf"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/internal/durable"
	"github.com/ironrail/ironrail/internal/errkind"
)

// DnfSources are what is kept with an image of RPM packages to resolve further ones by.
type DnfSources struct {
	Release      string          `json:"release"`          // dnf's $releasever
	Kernel       string          `json:"kernel,omitempty"` // release of the newest kernel of the image
	Repositories []DnfRepository `json:"repositories"`
}

// DnfRepository is a repository that such an image was made from.
type DnfRepository struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	Key  string `json:"key"` // that its packages are signed with, in ASCII armor
}

// Kernel is the release of the newest kernel of an image of RPM packages, such as
// 5.14.0-570.12.1.el9_6.x86_64; "" when none is known.
func (i Image) Kernel() (string, error) {
	s, err := i.readDnfSources()
	return s.Kernel, err
}

// readDnfSources reads what was kept with the image.
func (i Image) readDnfSources() (s DnfSources, err error) {
	b, err := os.ReadFile(i.Repositories)
	if err != nil {
		return s, fmt.Errorf("repositories of the image: %w", err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return s, errkind.New(errkind.Corrupt, "%s: %w", i.Repositories, err).Do("Build the image again: `ironrail image build`.")
	}
	if dnf.Database(s.Release) == "" {
		return s, errkind.New(errkind.Unsupported, "release %q has no packages that are served", s.Release).Do("Take an image of release 9 or 10.")
	}
	return s, nil
}

// dnfWork is dnf in a folder for one repository.
type dnfWork struct {
	o            Options
	root         string // as the image is, as far as rpm knows
	work         dnf.Work
	repositories []dnf.Repository
}

// fillDnf resolves the packages against what the image has, fetches all that it lacks, and
// writes the index. dnf compares each package with the signed index of its repository, or with
// its own signature.
func (o Options) fillDnf(ctx context.Context, dir, out string) (digest string, err error) {
	if os.Geteuid() != 0 {
		return "", errkind.New(errkind.Refused, "dnf resolves packages as root alone").Do("Run the build as root.")
	}
	w, err := o.newDnfWork(ctx, dir)
	if err != nil {
		return "", err
	}
	excluded, err := w.exclude(ctx)
	if err != nil {
		return "", err
	}
	if err := w.work.Configure(w.repositories, excluded); err != nil {
		return "", err
	}
	to, err := filepath.Abs(filepath.Join(out, pool))
	if err != nil {
		return "", err
	}
	o.logf("downloading %s and what they need", strings.Join(o.Packages, ", "))
	argv := append([]string{"--downloadonly", "--downloaddir=" + to, "--allowerasing", "install"}, o.Packages...)
	if err := w.work.Run(ctx, func(text string) { o.logf("%s", text) }, w.work.Command(w.root, argv...)...); err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(to, "*.rpm"))
	if err == nil && len(found)+len(o.Made.Packages) == 0 {
		err = errkind.New(errkind.Refused, "the image has all packages already").Do("Take the driver out of the site: there is nothing to install.")
	}
	if err != nil {
		return "", err
	}
	if err := o.addMade(ctx, filepath.Join(dir, "made"), to, found); err != nil {
		return "", err
	}
	return o.indexDnf(ctx, out)
}

// addMade makes the packages that are made here and puts them beside those that were fetched.
func (o Options) addMade(ctx context.Context, dir, pool string, have []string) error {
	made, err := o.make(ctx, dir, have)
	if err != nil || len(made) == 0 {
		return err
	}
	if err := os.MkdirAll(pool, 0o755); err != nil { // nothing was fetched
		return err
	}
	for _, file := range made {
		if err := os.Rename(file, filepath.Join(pool, filepath.Base(file))); err != nil {
			return err
		}
	}
	return nil
}

// Beside are repositories beside those of an image, with the versions that are taken.
type Beside struct {
	Sources []Source
	Pins    []Pin
}

// InstallRoot has dnf install packages into a new root, an absolute path, from the repositories of
// an image of RPM packages and those beside them. dir is a folder for its work. It takes minutes
// and needs root.
func InstallRoot(ctx context.Context, dir, root string, i Image, b Beside, packages []string, say func(string)) error {
	o := Options{Image: i, Sources: b.Sources, Pins: b.Pins, Packages: packages, Say: say}
	w, err := o.newDnfWork(ctx, dir)
	if err != nil {
		return err
	}
	w.root = root
	for _, name := range []string{"dev", "proc", "run", "sys"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o755); err != nil {
			return err
		}
	}
	excluded, err := w.exclude(ctx)
	if err != nil {
		return err
	}
	if err := w.work.Configure(w.repositories, excluded); err != nil {
		return err
	}
	return w.work.Run(ctx, say, dnf.Enclose(root, w.work.Command(root, append([]string{"install"}, packages...)...)...)...)
}

// newDnfWork configures dnf with the repositories of the image and those beside them.
func (o Options) newDnfWork(ctx context.Context, dir string) (w dnfWork, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return w, err
	}
	sources, err := o.Image.readDnfSources()
	if err != nil {
		return w, err
	}
	w = dnfWork{o: o, root: filepath.Join(dir, "root"), work: dnf.Work{Dir: filepath.Join(dir, "dnf"), Release: sources.Release, Cache: filepath.Join(dir, "cache")}}
	var keys strings.Builder
	for _, r := range sources.Repositories {
		w.repositories = append(w.repositories, dnf.Repository{ID: "image-" + r.Name, URL: r.URL, Key: r.Key})
		keys.WriteString(r.Key + "\n")
	}
	for n, s := range o.Sources {
		if len(s.Key) == 0 {
			s.Key = []byte(keys.String())
		}
		signed, err := s.probeDnf(ctx, sources.Release)
		if err != nil {
			return w, fmt.Errorf("%s: %w", s.URL, err)
		}
		w.repositories = append(w.repositories, dnf.Repository{ID: fmt.Sprintf("driver-%d", n), URL: s.URL, Key: string(s.Key), SignedIndex: signed, Hotfixes: true})
	}
	added, found, err := o.dnfAdded(ctx, filepath.Join(dir, "added"))
	if err != nil {
		return w, err
	}
	if found {
		w.repositories = append(w.repositories, added)
	}
	return w, w.work.CopyDatabase(w.root, o.Image.Database)
}

// foreign are packages of another architecture than the image's, which RPM repositories hold
// beside its own.
var foreign = []string{"*.i386", "*.i486", "*.i586", "*.i686"}

// listing has dnf print what repositories offer: name, version and what pins compare.
const listing = "%{name}\t%{epoch}\t%{version}-%{release}\t%{arch}"

// exclude lists the packages on offer that pins do not take.
func (w dnfWork) exclude(ctx context.Context) ([]string, error) {
	if len(w.o.Pins) == 0 {
		return foreign, nil
	}
	if err := w.work.Configure(w.repositories, foreign); err != nil {
		return nil, err
	}
	w.o.logf("reading the package lists")
	out, err := w.work.Output(ctx, w.work.Command(w.root, "--quiet", "repoquery", "--available", "--queryformat", listing)...)
	if err != nil {
		return nil, err
	}
	excluded, err := w.o.excludedBy(string(out))
	return append(excluded, foreign...), err
}

// offered are the versions of a package on offer.
type offered struct {
	versions []string // VERSION-RELEASE, without the epoch
	nevras   []string // NAME-EPOCH:VERSION-RELEASE.ARCH, of the same
}

// excludedBy lists packages that pins do not take, of a list of what is on offer. A package
// that a pattern of a pin names and that has no such version is not touched by it, unless it
// is asked for by its name.
func (o Options) excludedBy(list string) (excluded []string, err error) {
	all := map[string]*offered{}
	for line := range strings.Lines(list) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 4 {
			continue // dnf's own words
		}
		if all[f[0]] == nil {
			all[f[0]] = &offered{}
		}
		all[f[0]].versions = append(all[f[0]].versions, f[2])
		all[f[0]].nevras = append(all[f[0]].nevras, f[0]+"-"+f[1]+":"+f[2]+"."+f[3])
	}
	for name, have := range all {
		pin, pinned := o.pinOf(name)
		if !pinned {
			continue
		}
		takes := func(v string) bool {
			ok, err := path.Match(pin.Version, v)
			return err == nil && ok
		}
		if !slices.ContainsFunc(have.versions, takes) {
			if slices.Contains(o.Packages, name) {
				slices.Sort(have.versions)
				return nil, errkind.New(errkind.NotFound, "the repositories have no %s of version %s; they have %s", name, pin.Version, strings.Join(slices.Compact(have.versions), ", ")).
					Do("Correct the version, or name the repository that has it.")
			}
			continue
		}
		for i, v := range have.versions {
			if !takes(v) {
				excluded = append(excluded, have.nevras[i])
			}
		}
	}
	slices.Sort(excluded)
	return excluded, nil
}

// pinOf is the first pin that names a package.
func (o Options) pinOf(name string) (Pin, bool) {
	for _, p := range o.Pins {
		for _, glob := range p.Packages {
			if ok, err := path.Match(glob, name); err == nil && ok {
				return p, true
			}
		}
	}
	return Pin{}, false
}

// indexTime is the time of all files of an index, in seconds: the same packages make the same
// index.
const indexTime = "1735689600"

// indexDnf has createrepo_c write the index of the packages in the pool, and signs it.
func (o Options) indexDnf(ctx context.Context, out string) (digest string, err error) {
	argv := []string{"createrepo_c", "--quiet", "--no-database", "--general-compress-type=gz", "--checksum=sha256", "--revision=" + indexTime, "--set-timestamp-to-revision", "."}
	if err := (tool.Runner{Dir: out}).Run(ctx, nil, argv...); err != nil {
		if errkind.Of(err) == errkind.Unsupported {
			return "", errkind.New(errkind.Unsupported, "%w", err).Do("Install it: apt-get install createrepo-c")
		}
		return "", err
	}
	return o.signDnf(out)
}

// signDnf signs an index that is written, and writes the record beside it.
func (o Options) signDnf(out string) (digest string, err error) {
	index, err := os.ReadFile(filepath.Join(out, repodata.Index))
	if err != nil {
		return "", err
	}
	signed, err := o.Key.signDetached(index)
	if err != nil {
		return "", err
	}
	for name, b := range map[string][]byte{repodata.Signature: signed, publicKey: o.Key.Public()} {
		if err := durable.Write(filepath.Join(out, name), b, 0o644); err != nil {
			return "", err
		}
	}
	list, err := readPrimary(out)
	if err != nil {
		return "", err
	}
	versions, total := map[string]string{}, int64(0)
	for _, p := range list {
		if was, twice := versions[p.Name]; twice {
			return "", errkind.New(errkind.Conflict, "package %s is there twice: %s and %s", p.Name, was, p.EVR()).Do("Name one version of it, or take one of the repositories out.")
		}
		versions[p.Name], total = p.EVR(), total+p.Size
	}
	o.logf("%d packages, %.1f MiB", len(list), float64(total)/(1<<20))
	return digestOf(index), writeRecord(o, out, versions, total)
}

// readPrimary reads which packages a repository in a folder holds.
func readPrimary(dir string) ([]repodata.Package, error) {
	index, err := os.ReadFile(filepath.Join(dir, repodata.Index))
	if err != nil {
		return nil, err
	}
	files, err := repodata.ParseIndex(index)
	if err != nil {
		return nil, err
	}
	name := repodata.Find(files, repodata.Primary).Name
	if !filepath.IsLocal(name) {
		return nil, errkind.New(errkind.Invalid, "repomd.xml names the file %q", name)
	}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return repodata.ParsePrimary(f)
}

// ProbeDnf asks a source of RPM packages for its index, and compares the signature of that,
// where it has one, with the key: what dnf would refuse later. release is the image's. It
// downloads no package, and takes half a minute at most.
func (s Source) ProbeDnf(ctx context.Context, release string) error {
	_, err := s.probeDnf(ctx, release)
	return err
}

// probeDnf is ProbeDnf, and reports whether the index is signed. One that is not leaves it to
// the signatures of the packages.
func (s Source) probeDnf(ctx context.Context, release string) (signed bool, err error) {
	if err := s.check(); err != nil {
		return false, errkind.New(errkind.Refused, "%w", err).Do("Correct its url.")
	}
	base := strings.NewReplacer("$releasever", release, "$basearch", "x86_64").Replace(strings.TrimSuffix(s.URL, "/")) + "/"
	index, err := fetchFile(ctx, base+repodata.Index)
	if err != nil {
		return false, err
	}
	if _, err := repodata.ParseIndex(index); err != nil {
		return false, errkind.New(errkind.Invalid, "%s: %w", base+repodata.Index, err).
			Do("Look whether something between here and the repository answers in its place, such as a proxy that asks for a login.")
	}
	detached, err := fetchFile(ctx, base+repodata.Signature)
	if errkind.Of(err) == errkind.NotFound {
		return false, nil
	}
	if err != nil || len(s.Key) == 0 {
		return true, err
	}
	keys, err := signature.ReadKeys(s.Key)
	if err == nil {
		_, err = signature.Verify(keys, bytes.NewReader(index), detached, time.Now())
	}
	if err != nil {
		return true, errkind.New(errkind.Corrupt, "its key did not sign its index: %w", err).
			Do("Give the key that signs this repository, as its vendor publishes it, in ASCII armor.")
	}
	return true, nil
}
