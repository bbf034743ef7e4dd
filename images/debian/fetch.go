// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/internal/folder"
	"github.com/ironrail/ironrail/images/internal/tool"
	"github.com/ironrail/ironrail/internal/errkind"
)

// Fetch implements images.Downloader: package lists and packages, and nothing of the
// signed loaders, which are fetched while the disk is made.
func (r Recipe) Fetch(ctx context.Context, dir string, say func(string)) error {
	r.downloads = dir
	b := builder{recipe: r, disk: bootdisk.Maker{Dir: dir, Say: say, Arch: r.arch()}}
	defer b.dropKeys()
	for _, s := range []step{{"checking tools", b.checkTools}, {"writing the keys of the archive", b.writeKeys}, {"reading the package lists", b.readLists}, {"fetching packages", b.fetchAll}} {
		say(s.what)
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("image %s: %s: %w", r.Block, s.what, err)
		}
	}
	return nil
}

// WithDownloads implements images.Downloader.
func (r Recipe) WithDownloads(dir string) images.Recipe {
	r.downloads = dir
	return r
}

// downloads is the folder of what is fetched.
func (b *builder) downloads() string { return cmp.Or(b.recipe.downloads, b.disk.Path("downloads")) }

// Names in the folder of one reading of the lists.
const (
	planDir   = "plan"     // the folder, in that of downloads
	planRoot  = "root"     // mmdebstrap's, without any package
	planConf  = "apt.conf" // mmdebstrap's, by which apt works on that root
	planIndex = "index"    // becomes indexDir
)

// saveConf runs in mmdebstrap's shell. It is the same for every recipe.
const saveConf = `cp "$MMDEBSTRAP_APT_CONFIG" ` + planConf

// readLists reads the archives' signed lists and lists the packages of the image by them.
// Without the archives, those of an earlier reading are taken, if all their packages
// are there.
func (b *builder) readLists(ctx context.Context) error {
	c, err := openCache(b.downloads(), b.disk.Say)
	if err != nil {
		return err
	}
	err = b.readArchives(ctx, &c)
	if err == nil || ctx.Err() != nil || !c.whole(ctx) {
		return err
	}
	b.disk.Say(fmt.Sprintf("the package lists cannot be read anew; those that were fetched before are taken: %s", causeOf(err)))
	return nil
}

// readArchives is readLists of the archives. mmdebstrap itself decides which ones they are and who
// signs them.
func (b *builder) readArchives(ctx context.Context, c *cache) error {
	plan, err := filepath.Abs(c.path(planDir))
	if err != nil {
		return err
	}
	if err := errors.Join(removeFolder(plan), os.MkdirAll(filepath.Join(plan, planIndex), 0o755)); err != nil {
		return err
	}
	root := filepath.Join(plan, planRoot)
	argv := b.mmdebstrap(root, "custom", "--skip=cleanup", "--setup-hook="+saveConf)
	if err := (tool.Runner{Dir: plan}).Run(ctx, nil, argv...); err != nil {
		return err
	}
	files, err := b.listPackages(ctx, tool.Runner{Dir: plan, Env: []string{"APT_CONFIG=" + filepath.Join(plan, planConf), "DEBIAN_FRONTEND=noninteractive"}})
	if err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(root, "var/lib/apt/lists"), filepath.Join(plan, planIndex, listsDir)); err != nil {
		return err
	}
	if err := c.replaceIndex(filepath.Join(plan, planIndex), files); err != nil {
		return err
	}
	return removeFolder(plan)
}

// listPackages lists what apt would fetch for the image. mmdebstrap installs the essential
// packages before the others, so that it may take a few others; a set that apt
// does not find is none, for mmdebstrap says why in its own words.
func (b *builder) listPackages(ctx context.Context, apt tool.Runner) ([]aptFile, error) {
	release := b.recipe.Release
	base := fmt.Sprintf("?narrow(?or(?archive(^%s$),?codename(^%s$)),?architecture(%s),?or(?essential,?priority(required)))", release, release, b.recipe.arch())
	argv := []string{"apt-get", "-q", "-y", "--print-uris", "-o", "Acquire::ForceHash=SHA256", "install", "--", base}
	said, err := apt.Output(ctx, append(argv, b.recipe.include()...)...)
	if ctx.Err() != nil {
		return nil, err
	}
	if err != nil {
		b.disk.Say(fmt.Sprintf("the packages are not fetched beforehand: %s", causeOf(err)))
		return nil, nil
	}
	return parseURIs(string(said)), nil
}

// causeOf is one line of an error: the first that apt calls one, where apt said more.
func causeOf(err error) string {
	lines := strings.Split(err.Error(), "\n")
	if n := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "E: ") }); n >= 0 {
		return strings.TrimPrefix(lines[n], "E: ")
	}
	return lines[0]
}

// removeFolder removes a folder that may not be there.
func removeFolder(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return folder.Remove(dir)
}

// fetchAll fetches the packages that are listed.
func (b *builder) fetchAll(ctx context.Context) error {
	c, err := openCache(b.downloads(), b.disk.Say)
	if err != nil {
		return err
	}
	if len(c.files) == 0 {
		return errkind.New(errkind.NotFound, "no package is listed that a web server has")
	}
	return c.fetch(ctx)
}

// fetchPackages is fetchAll of a build: what is not fetched is left to mmdebstrap, which may know
// a way to the archive. A package that is another one than the archive signed is not.
func (b *builder) fetchPackages(ctx context.Context) error {
	err := b.fetchAll(ctx)
	if err == nil || ctx.Err() != nil || errkind.Of(err) == errkind.Mismatch {
		return err
	}
	b.disk.Say(fmt.Sprintf("apt fetches what is missing: %s", causeOf(err)))
	return nil
}
