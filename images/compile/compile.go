// SPDX-License-Identifier: Apache-2.0

// Package compile makes packages of programs from source archives, once, on the
// controller: in a root file system of the distribution of the nodes, with the compilers
// that the site's repositories have, as a user without rights and without a network. What
// comes out is a package of the distribution, so that nodes compile nothing and need no
// compiler.
package compile

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Root is the root file system in which programs are compiled.
type Root struct {
	Suite      string // codename of the distribution's release; of RPM packages "", since the image says its release
	Arch       inventory.Arch
	Image      repo.Image    // whose sources and keyring packages come from
	Sources    []repo.Source // beside those
	Components []string      // added to those of the image
	Pins       []repo.Pin
	Packages   []string // what is there to compile with
}

// rpm reports whether the root is one of RPM packages.
func (r Root) rpm() bool { return r.Image.Repositories != "" }

// Program is one package that comes out.
type Program struct {
	Package string // its name
	About   string // in a few words
	Depends []string
	Source  Source
	Steps   [][]string // commands, in the top folder of the sources; argv[0] is an absolute path
	Env     []string   // of these, NAME=VALUE
	Files   []Files
}

// Files are files that the steps make.
type Files struct {
	Glob   string // of path.Match, below the top folder of the sources; all that matches is packed
	Trim   string // taken from the end of each name, where it is there
	Suffix string // put to the end of each
}

// Limits of one build.
const (
	rootLimit = time.Hour
	stepLimit = time.Hour
)

// builder is the user that compiles, by number: nobody of Debian and RHEL, who owns no
// file of a root file system.
const builder = 65534

// epoch is the time of all files of a package: 2025-01-01 00:00:00 UTC.
var epoch = time.Unix(1735689600, 0)

// Build makes the packages of programs in dir, an absolute path to an empty folder, and
// returns the paths of the .deb files in the order of the programs. It says in short
// lines how far it is. site is the folder that paths of source archives start at.
func Build(ctx context.Context, dir, site string, r Root, programs []Program, say func(string)) ([]string, error) {
	if os.Geteuid() != 0 {
		return nil, errkind.New(errkind.Refused, "programs are compiled as root, who alone can make a root file system for that").Do("Run the build as root.")
	}
	b := build{dir: dir, root: filepath.Join(dir, "root"), of: r, say: say}
	archives := make([]archive, len(programs))
	for i, p := range programs { // all of them before the root file system, which takes minutes
		say("reading the sources of " + p.Package)
		a, err := p.Source.read(ctx, site, filepath.Join(dir, p.Package+".tar.gz"), say)
		if err != nil {
			return nil, fmt.Errorf("sources of %s: %w", p.Package, err)
		}
		archives[i] = a
	}
	if err := b.bootstrap(ctx); err != nil {
		return nil, fmt.Errorf("root file system to compile in: %w", err)
	}
	var debs []string
	for i, p := range programs {
		say("compiling " + p.Package)
		deb, err := b.program(ctx, p, archives[i])
		if err != nil {
			return nil, fmt.Errorf("compile %s: %w", p.Package, err)
		}
		debs = append(debs, deb)
	}
	return debs, nil
}

// build is one build in progress.
type build struct {
	dir, root string
	of        Root
	say       func(string)
}

// bootstrap makes the root file system.
func (b build) bootstrap(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rootLimit)
	defer cancel()
	packages := slices.Clone(b.of.Packages)
	slices.Sort(packages)
	packages = slices.Compact(packages)
	b.say("installing what is compiled with: " + strings.Join(packages, ", "))
	if b.of.rpm() {
		work, err := filepath.Abs(filepath.Join(b.dir, "install"))
		if err != nil {
			return err
		}
		return repo.InstallRoot(ctx, work, b.root, b.of.Image, repo.Beside{Sources: b.of.Sources, Pins: b.of.Pins}, packages, b.say)
	}
	sources, err := b.of.Image.ListSources(b.of.Sources, b.of.Components, b.dir)
	if err != nil {
		return err
	}
	keyring, err := filepath.Abs(b.of.Image.Keyring)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"sources.list": sources, "preferences": repo.Preferences(b.of.Pins)} {
		if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o644); err != nil {
			return err
		}
	}
	argv := []string{"mmdebstrap", "--mode=root", "--variant=apt", "--architectures=" + string(b.of.Arch), "--format=directory",
		"--include=" + strings.Join(packages, ","), "--keyring=" + keyring, `--aptopt=APT::Sandbox::User "root"`,
		"--setup-hook=copy-in preferences /etc/apt", "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/doc/*"}
	argv = append(argv, b.of.Suite, b.root, "sources.list")
	err = tool.Runner{Dir: b.dir}.Run(ctx, tool.MmdebstrapPhases(b.say), argv...)
	if errkind.Of(err) == errkind.Unsupported {
		return errkind.New(errkind.Unsupported, "%w", err).Do("Install it: apt-get install mmdebstrap")
	}
	return err
}

// work is where a program is compiled, below the root.
func work(p Program) string { return "/build/" + p.Package }

// program compiles one program and packs it.
func (b build) program(ctx context.Context, p Program, a archive) (string, error) {
	if err := os.MkdirAll(filepath.Join(b.root, "build"), 0o755); err != nil {
		return "", err
	}
	to := filepath.Join(b.root, filepath.FromSlash(work(p)))
	if err := a.unpack(ctx, to, builder); err != nil {
		return "", err
	}
	for _, argv := range p.Steps {
		if err := b.step(ctx, p, argv); err != nil {
			return "", err
		}
	}
	return b.pack(ctx, p, a, to)
}

// step runs one command of a build in a jail. Its lines are kept for an error alone: a
// compiler says thousands.
func (b build) step(ctx context.Context, p Program, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	env := append([]string{"HOME=" + work(p), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", epoch.Unix())}, p.Env...)
	r := tool.Runner{Dir: work(p), Env: env, Jail: &tool.Jail{Root: b.root, User: builder}}
	err := r.Run(ctx, nil, argv...)
	if err != nil && ctx.Err() == nil {
		return errkind.New(errkind.Refused, "%w", err).
			Do("Take sources that go with the toolkit of the site's driver stack, or the other way round; what the compiler said last is above.")
	}
	return err
}
