// SPDX-License-Identifier: Apache-2.0

// Package dnf runs dnf of the controller on the root of a system of RHEL, Rocky or Alma, by
// repositories and keys that are named: what the controller has of these does not count.
package dnf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
)

// limit is the deadline of one run. dnf stops by itself where a mirror gives nothing for half
// a minute; whole images have 500 packages.
const limit = time.Hour

// databases are the folders of rpm's database below a root, by major release (rpm's macro
// _dbpath there).
var databases = map[string]string{"9": "var/lib/rpm", "10": "usr/lib/sysimage/rpm"}

// Database returns the folder of rpm's database below the root of a system of a release,
// such as 9 or 9.4; "" where it is not known.
func Database(release string) string { return databases[major(release)] }

func major(release string) string {
	first, _, _ := strings.Cut(release, ".")
	return first
}

// Repository is one that packages come from.
type Repository struct {
	ID, URL string
	Key     string // OpenPGP public keys in ASCII armor
	// SignedIndex has dnf ask for the signature of the index (repodata/repomd.xml.asc), which
	// covers the digest of each package, in the place of one of each package.
	SignedIndex bool
	// Hotfixes takes its packages whatever streams of modules are enabled (module_hotfixes in
	// dnf.conf(5)): versions are chosen by those who name them.
	Hotfixes bool
}

// text is its configuration (dnf.conf(5)), with its keys in a file.
func (r Repository) text(key string) string {
	return fmt.Sprintf("[%[1]s]\nname=%[1]s\nbaseurl=%[2]s\nenabled=1\ngpgcheck=%[3]d\nrepo_gpgcheck=%[4]d\nmodule_hotfixes=%[5]d\ngpgkey=file://%[6]s\n",
		r.ID, r.URL, number(!r.SignedIndex), number(r.SignedIndex), number(r.Hotfixes), key)
}

// number is a switch as dnf.conf(5) has it.
func number(on bool) int {
	if on {
		return 1
	}
	return 0
}

// Work is a folder that dnf and rpm are configured in.
type Work struct {
	Dir     string // an absolute path; nothing else is in it
	Release string // of the system, major or with its minor: $releasever
	Cache   string // folder of what is downloaded, an absolute path
}

// Names in the folder.
const (
	confFile = "dnf.conf"
	reposDir = "repos"
	varsDir  = "vars" // empty
	homeDir  = "home" // rpm reads macros from there
)

// conf is the configuration of dnf.
func (w Work) conf(excluded []string) string {
	lines := []string{
		"[main]", "gpgcheck=1", "localpkg_gpgcheck=1", "assumeyes=1", "best=1", "install_weak_deps=0", "keepcache=1", "skip_if_unavailable=0",
		"module_platform_id=platform:el" + major(w.Release), "plugins=0", "protected_packages=", "retries=3", "timeout=30", "tsflags=nodocs",
	}
	if len(excluded) > 0 {
		lines = append(lines, "excludepkgs="+strings.Join(excluded, ","))
	}
	return strings.Join(append(lines, ""), "\n")
}

// macros are rpm's, in the place of Debian's, whose database is in the home of the user
// (rpm-common 4.18 of Debian 12).
func (w Work) macros() string {
	return "%_dbpath /" + Database(w.Release) + "\n%_db_backend sqlite\n"
}

// Configure writes what dnf and rpm work by. Packages that are excluded, as NAME or
// NAME-EPOCH:VERSION-RELEASE.ARCH, are not seen in the repositories.
func (w Work) Configure(repositories []Repository, excluded []string) error {
	at := func(elem ...string) string { return filepath.Join(append([]string{w.Dir}, elem...)...) }
	for _, dir := range []string{at(reposDir), at(homeDir), at(varsDir), w.Cache} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	files := map[string]string{at(confFile): w.conf(excluded), at(homeDir, ".rpmmacros"): w.macros()}
	for _, r := range repositories {
		key := at(r.ID + ".asc")
		files[key], files[at(reposDir, r.ID+".repo")] = r.Key, r.text(key)
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Command is a command line of dnf for a root. Folders are named there, since those of a
// configuration are taken to lie below the root (dnf(8), --installroot).
func (w Work) Command(root string, args ...string) []string {
	argv := []string{"dnf", "--config=" + filepath.Join(w.Dir, confFile), "--installroot=" + root, "--releasever=" + w.Release,
		"--setopt=reposdir=" + filepath.Join(w.Dir, reposDir), "--setopt=varsdir=" + filepath.Join(w.Dir, varsDir), "--setopt=cachedir=" + w.Cache}
	return append(argv, args...)
}

func (w Work) runner() tool.Runner {
	return tool.Runner{Dir: w.Dir, Env: []string{"HOME=" + filepath.Join(w.Dir, homeDir)}}
}

// Run runs a command line that Command made, for an hour at most. It says what dnf is at.
// An error of what the repositories have says what to do about it.
func (w Work) Run(ctx context.Context, say func(string), argv ...string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return explain(w.runner().Run(ctx, func(line string) {
		switch {
		case line == "Downloading Packages:":
			say("dnf: downloading packages")
		case line == "Running transaction", strings.Contains(line, "scriptlet failed"): // dnf goes on after that
			say("dnf: " + line)
		}
	}, argv...))
}

// Output is Run for what dnf prints to standard output.
func (w Work) Output(ctx context.Context, argv ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := w.runner().Output(ctx, argv...)
	return out, explain(err)
}

// explain says what to do about an error of dnf.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if errkind.Of(err) == errkind.Unsupported {
		return errkind.New(errkind.Unsupported, "%w", err).Do("Install it: apt-get install dnf rpm")
	}
	err = fmt.Errorf("dnf: %w", err)
	text := err.Error()
	for _, c := range []struct {
		said string
		kind errkind.Kind
		do   string
	}{
		{"GPG check FAILED", errkind.Mismatch, "A package does not have the signature of a key of its repository. Give the key that signs it, as its vendor publishes it, or name another mirror. Nothing of it was installed."},
		{"repomd.xml GPG signature verification error", errkind.Mismatch, "The index of a repository does not have the signature of its key. Give the key that signs it, as its vendor publishes it, or name another mirror. Nothing of it was installed."},
		{"checksum doesn't match", errkind.Mismatch, "The mirror, or a cache before it, gives another file than the index of the repository describes: name another mirror. Nothing of it was installed."},
		{"No match for argument", errkind.NotFound, missing},
		{"Unable to find a match", errkind.NotFound, missing},
		{"nothing provides", errkind.NotFound, "Name the repository that has what the package needs in the image block, such as AppStream, CRB or EPEL beside BaseOS."},
		{"Failed to download metadata", errkind.Unreachable, "Look whether the url of the repository is the folder with repodata/repomd.xml, and whether this controller reaches it."},
	} {
		if strings.Contains(text, c.said) {
			return errkind.New(c.kind, "%w", err).Do(c.do)
		}
	}
	return err
}

const missing = "The repositories have no such package: correct the names and versions that the site gives, or name the repository that has it (AppStream beside BaseOS)."

// CopyDatabase makes a root that has nothing but a copy of the database of what is installed, for
// dnf to solve against.
func (w Work) CopyDatabase(root, database string) error {
	at := filepath.Join(root, Database(w.Release))
	b, err := os.ReadFile(database)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "rpmdb.sqlite"), b, 0o644))
}
