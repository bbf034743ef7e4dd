// SPDX-License-Identifier: Apache-2.0

package rhel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Deadlines. dnf stops by itself where a mirror gives nothing for half a minute; whole images
// have 500 packages.
const (
	dnfLimit     = time.Hour
	programLimit = 15 * time.Minute
)

// Folders and files of a build, in that of the maker.
const (
	confDir   = "dnf"      // of dnf's and rpm's configuration
	confFile  = "dnf.conf" // in it
	reposDir  = "repos"    // in it
	varsDir   = "vars"     // in it, empty
	homeDir   = "home"     // in it: rpm reads macros from there
	cacheDir  = "packages" // in the folder of downloads
	fetchRoot = "root"     // of a fetch, beside its configuration: nothing is installed in it
)

// On the node, below the root: repositories, and the keys of their packages.
const (
	nodeRepos = "etc/yum.repos.d"
	nodeKeys  = "etc/pki/rpm-gpg"
)

// id is what a repository is called by dnf.
func id(a inventory.PackageRepository) string { return "ironrail-" + a.Name }

// keyFile is the file of its keys on the node.
func keyFile(a inventory.PackageRepository) string { return nodeKeys + "/RPM-GPG-KEY-" + id(a) }

// repoFile is the configuration of a repository (dnf.conf(5)). Each package has to be signed by
// one of its keys; what its index says of digests is compared in any case.
func repoFile(a inventory.PackageRepository, key string) string {
	return fmt.Sprintf("# Written by ironrail: a repository that this image was made from.\n[%[1]s]\nname=%[1]s\nbaseurl=%[2]s\nenabled=1\ngpgcheck=1\ngpgkey=file://%[3]s\n", id(a), a.URL, key)
}

// dnfConf is the configuration of dnf on the controller: nothing of its own counts.
func dnfConf(release string) string {
	return strings.Join([]string{
		"[main]", "gpgcheck=1", "localpkg_gpgcheck=1", "assumeyes=1", "best=1", "install_weak_deps=0", "keepcache=1", "skip_if_unavailable=0",
		"module_platform_id=platform:el" + release, "plugins=0", "protected_packages=", "retries=3", "timeout=30", "tsflags=nodocs",
		"",
	}, "\n")
}

// macros are rpm's on the controller, in the place of Debian's, whose database is in the home of
// the user (rpm-common 4.18 of Debian 12).
func macros(database string) string {
	return "%_dbpath /" + database + "\n%_db_backend sqlite\n"
}

// configureDnf writes what dnf and rpm work by on the controller.
func (b *builder) configureDnf(context.Context) error {
	at := func(elem ...string) string { return filepath.Join(append([]string{b.disk.Dir, confDir}, elem...)...) }
	for _, dir := range []string{at(reposDir), at(homeDir), at(varsDir), b.cache()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	release := b.recipe.release().Version
	files := map[string]string{
		at(confFile):              dnfConf(release),
		at(homeDir, ".rpmmacros"): macros(releases[release]),
	}
	for _, a := range b.recipe.Repositories {
		key := at(a.Name + ".asc")
		files[key], files[at(reposDir, id(a)+".repo")] = a.Key, repoFile(a, key)
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// enclosed is the script that starts a program with what scriptlets of packages need mounted
// below a root, seen by it alone: nothing is left mounted, whatever ends it. It is the same for
// every recipe.
const enclosed = `set -e
root=$1
shift
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
mount -t sysfs -o nosuid,nodev,noexec sysfs "$root/sys"
mount -t tmpfs -o nosuid,mode=755 dev "$root/dev"
mount -t tmpfs -o nosuid,nodev,mode=755 run "$root/run"
mknod -m 666 "$root/dev/null" c 1 3
mknod -m 666 "$root/dev/zero" c 1 5
mknod -m 666 "$root/dev/full" c 1 7
mknod -m 666 "$root/dev/random" c 1 8
mknod -m 666 "$root/dev/urandom" c 1 9
mknod -m 666 "$root/dev/tty" c 5 0
ln -s /proc/self/fd "$root/dev/fd"
mkdir "$root/dev/shm"
exec "$@"`

// enclose is the command line that runs a program in that way.
func enclose(root string, argv ...string) []string {
	return append([]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", enclosed, "sh", root}, argv...)
}

// cache is the folder of what dnf downloads.
func (b *builder) cache() string {
	return filepath.Join(cmp.Or(b.recipe.downloads, b.disk.Dir), cacheDir)
}

// dnf is its command line for a root. Folders are named there, since those of a configuration
// are taken to lie below the root (dnf(8), --installroot).
func (b *builder) dnf(root string, args ...string) []string {
	conf := filepath.Join(b.disk.Dir, confDir)
	argv := []string{"dnf", "--config=" + filepath.Join(conf, confFile), "--installroot=" + root, "--releasever=" + b.recipe.Release,
		"--setopt=reposdir=" + filepath.Join(conf, reposDir), "--setopt=varsdir=" + filepath.Join(conf, varsDir), "--setopt=cachedir=" + b.cache()}
	return append(argv, args...)
}

// runDnf runs dnf, and says what it is at.
func (b *builder) runDnf(ctx context.Context, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, dnfLimit)
	defer cancel()
	runner := tool.Runner{Dir: b.disk.Dir, Env: []string{"HOME=" + filepath.Join(b.disk.Dir, confDir, homeDir)}}
	return explain(runner.Run(ctx, func(line string) {
		switch {
		case line == "Downloading Packages:":
			b.disk.Say("dnf: downloading packages")
		case line == "Running transaction", strings.Contains(line, "scriptlet failed"): // dnf goes on after that
			b.disk.Say("dnf: " + line)
		}
	}, argv...))
}

// explain says what to do about an error of dnf.
func explain(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("dnf: %w", err)
	text := err.Error()
	for _, c := range []struct {
		said string
		kind errkind.Kind
		do   string
	}{
		{"GPG check FAILED", errkind.Mismatch, "A package does not have the signature of a key of its repository. Give the key that signs it, as the distribution publishes it, or name another mirror. Nothing of it was installed."},
		{"checksum doesn't match", errkind.Mismatch, "The mirror, or a cache before it, gives another file than the index of the repository describes: name another mirror. Nothing of it was installed."},
		{"No match for argument", errkind.NotFound, "The repositories have no such package: correct packages and kernel of the image, or name the repository that has it (AppStream beside BaseOS)."},
		{"Unable to find a match", errkind.NotFound, "The repositories have no such package: correct packages and kernel of the image, or name the repository that has it (AppStream beside BaseOS)."},
		{"Failed to download metadata", errkind.Unreachable, "Look whether the url of the repository is the folder with repodata/repomd.xml, and whether this controller reaches it."},
	} {
		if strings.Contains(text, c.said) {
			return errkind.New(c.kind, "%w", err).Do(c.do)
		}
	}
	return err
}

// fetch has dnf fetch the packages of an empty root, and install none.
func (b *builder) fetch(ctx context.Context) error {
	root := filepath.Join(b.disk.Dir, confDir, fetchRoot)
	err := os.MkdirAll(root, 0o755)
	if err == nil {
		err = b.runDnf(ctx, b.dnf(root, append([]string{"--downloadonly", "install"}, b.recipe.include()...)...))
	}
	return errors.Join(err, os.RemoveAll(filepath.Join(b.disk.Dir, confDir)))
}

// install has dnf install the packages.
func (b *builder) install(ctx context.Context) error {
	return b.runDnf(ctx, enclose(b.disk.Root, b.dnf(b.disk.Root, append([]string{"install"}, b.recipe.include()...)...)...))
}
