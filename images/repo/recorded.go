// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Recorded is a folder with indexes of real repositories, each below the host and the
// path of its URL, as `wget --force-directories` saves them:
//
//	deb.debian.org/debian/dists/bookworm/main/binary-amd64/Packages.xz
//	developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/Packages.gz
//
// apt solves by them what an image or a driver stack would have, without any package.
// Signatures are not looked at: nothing is installed.
type Recorded string

// recordedOptions have apt read indexes without a Release file, and old ones.
var recordedOptions = []string{"-o", "Acquire::AllowInsecureRepositories=true", "-o", "Acquire::Check-Valid-Until=false", "-o", "Acquire::Check-Date=false"}

// System is what an image would have.
type System struct {
	Status  []byte // dpkg's list of installed packages
	Sources []byte // the archives of its distribution that are recorded, as apt sources in the one-line format
}

// System solves the packages of an image of a release, with the essential, required and
// important ones.
func (r Recorded) System(ctx context.Context, codename, arch string, packages []string) (s System, err error) {
	archives, err := r.archives(codename, arch)
	if err != nil {
		return s, err
	}
	work, err := os.MkdirTemp("", "ironrail-solve-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(work) // below the system's folder for such
	none := filepath.Join(work, "none")
	if err := os.WriteFile(none, nil, 0o644); err != nil {
		return s, err
	}
	o := Options{Image: Image{Arch: arch, Status: none, Sources: none, Keyring: none}, Sources: archives}
	run, err := r.readLists(ctx, o, filepath.Join(work, "all"))
	if err != nil {
		return s, err
	}
	if o.Sources, err = ownArchives(ctx, run, archives, codename); err != nil {
		return s, err
	}
	if run, err = r.readLists(ctx, o, filepath.Join(work, "own")); err != nil {
		return s, err
	}
	known, err := solve(ctx, run, append([]string{"?essential", "?priority(required)", "?priority(important)"}, packages...)...)
	if err != nil {
		return s, err
	}
	for _, a := range o.Sources {
		s.Sources = append(s.Sources, a.line("")...)
	}
	s.Status, err = statusOf(ctx, run, known)
	return s, err
}

// Solve returns the packages that a repository of the options would hold.
func (r Recorded) Solve(ctx context.Context, o Options) ([]Known, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "ironrail-solve-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) // as above
	run, err := r.readLists(ctx, o, work)
	if err != nil {
		return nil, err
	}
	return solve(ctx, run, o.Packages...)
}

// archives are the recorded archives that have a release, or its updates.
func (r Recorded) archives(codename, arch string) (list []Source, err error) {
	err = filepath.WalkDir(string(r), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() || filepath.Base(filepath.Dir(path)) != "dists" {
			return err
		}
		if name := d.Name(); name != codename && name != codename+"-updates" && name != codename+"-security" {
			return fs.SkipDir
		}
		root, err := filepath.Rel(string(r), filepath.Dir(filepath.Dir(path)))
		if err != nil {
			return err
		}
		s := Source{URL: "http://" + filepath.ToSlash(root), Suite: d.Name()}
		indexes, err := filepath.Glob(filepath.Join(path, "*", "binary-"+arch))
		for _, i := range indexes {
			s.Components = append(s.Components, filepath.Base(filepath.Dir(i)))
		}
		if len(s.Components) > 0 {
			list = append(list, s)
		}
		if err != nil {
			return err
		}
		return fs.SkipDir
	})
	if err == nil && len(list) == 0 {
		err = errkind.New(errkind.NotFound, "%s has no index of %s for %s", r, codename, arch).
			Do("Save Packages.xz of each component there, below host and path: `wget --force-directories`.")
	}
	return list, err
}

// ownArchives are the archives of the distribution itself: its updates, and those that
// have the package base-files. Vendors use the names of its releases too.
func ownArchives(ctx context.Context, run tool.Runner, all []Source, codename string) ([]Source, error) {
	out, err := run.Output(ctx, "apt-cache", "madison", "base-files")
	if err != nil {
		return nil, err
	}
	own := slices.DeleteFunc(slices.Clone(all), func(s Source) bool {
		file, _ := s.recorded(run.Dir)
		return s.Suite == codename && !bytes.Contains(out, []byte(" "+file+" "+codename+"/"))
	})
	if len(own) == 0 {
		err = errkind.New(errkind.NotFound, "none of the recorded archives of %s has base-files: that of the distribution is not among them", codename)
	}
	return own, err
}

// recorded is the URL of a source's copy in a folder for apt, and its path below it.
func (s Source) recorded(dir string) (file, path string) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return "", ""
	}
	path = filepath.Join("recorded", u.Host, filepath.FromSlash(u.Path))
	return "file:" + filepath.Join(dir, path), path
}

// readLists makes a root for apt in a folder, and reads the recorded indexes of the
// sources.
func (r Recorded) readLists(ctx context.Context, o Options, dir string) (tool.Runner, error) {
	run, err := aptRoot(o, dir)
	if err != nil {
		return run, err
	}
	from, err := filepath.Abs(string(r))
	if err != nil {
		return run, err
	}
	if err := os.Symlink(from, filepath.Join(run.Dir, "recorded")); err != nil {
		return run, err
	}
	list := filepath.Join(run.Dir, "etc/apt/sources.list")
	lines, err := os.ReadFile(list)
	if err != nil {
		return run, err
	}
	if lines, err = r.local(lines, run.Dir); err != nil {
		return run, err
	}
	if err := os.WriteFile(list, lines, 0o644); err != nil {
		return run, err
	}
	return run, run.Run(ctx, nil, slices.Concat([]string{"apt-get", "-q"}, recordedOptions, []string{"update", "--error-on=any"})...)
}

// local has the lines of sources name the copies of their indexes.
func (r Recorded) local(lines []byte, dir string) ([]byte, error) {
	var out strings.Builder
	for line := range strings.Lines(string(dropOptions(lines, func(string) bool { return true }))) {
		f := strings.Fields(line)
		if len(f) < 3 || f[0] != "deb" {
			continue
		}
		s := Source{URL: f[1], Suite: f[2]}
		file, path := s.recorded(dir)
		index := filepath.Join(dir, path, "dists", s.Suite)
		if isFlat(f[1:]) {
			index = filepath.Join(dir, path, s.Suite)
		}
		if _, err := os.Stat(index); err != nil {
			return nil, errkind.New(errkind.NotFound, "the indexes of %s are not in %s", strings.TrimSuffix(s.base(), "/"), r).
				Do("Save its Packages.gz or Packages.xz there, below host and path: `wget --force-directories`.")
		}
		fmt.Fprintf(&out, "deb [trusted=yes] %s %s\n", file, strings.Join(f[2:], " "))
	}
	return []byte(out.String()), nil
}

// solve lists what apt would install.
func solve(ctx context.Context, run tool.Runner, packages ...string) (all []Known, err error) {
	var lines []string
	err = run.Run(ctx, func(line string) { lines = append(lines, line) }, append([]string{"apt-get", "-q", "-y", "--simulate", "install", "--"}, packages...)...)
	if err != nil {
		return nil, errkind.New(errkind.NotFound, "the recorded indexes do not have what is asked for: %w", err).
			Do("Save the indexes of all repositories that the site names, of one day, or correct the packages and versions.")
	}
	for _, line := range lines {
		f := strings.Fields(line) // Inst NAME (VERSION SOURCES [ARCH])
		if len(f) < 4 || f[0] != "Inst" {
			continue
		}
		version := slices.IndexFunc(f, func(w string) bool { return strings.HasPrefix(w, "(") })
		arch := slices.IndexFunc(f, func(w string) bool { return strings.HasPrefix(w, "[") && strings.HasSuffix(w, "])") })
		if version < 0 || arch < 0 {
			return nil, errkind.New(errkind.Invalid, "apt-get says %q, whose version or architecture cannot be read", line)
		}
		name, _, _ := strings.Cut(f[1], ":")
		all = append(all, Known{Name: name, Version: f[version][1:], Arch: strings.Trim(f[arch], "[])")})
	}
	if len(all) == 0 {
		err = errkind.New(errkind.Refused, "the image has all packages already: %s", strings.Join(packages, ", "))
	}
	return all, err
}

// statusOf is dpkg's list of installed packages, if these were installed.
func statusOf(ctx context.Context, run tool.Runner, all []Known) ([]byte, error) {
	argv := []string{"apt-cache", "show", "--no-all-versions", "--"}
	for _, k := range all {
		argv = append(argv, k.Name+"="+k.Version)
	}
	out, err := run.Output(ctx, argv...)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for line := range strings.Lines(string(out)) {
		b.WriteString(line)
		if strings.HasPrefix(line, "Package: ") {
			b.WriteString("Status: install ok installed\n")
		}
	}
	return b.Bytes(), nil
}
