// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/images/internal/aptsource"
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/images/ramdisk"
	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/internal/errkind"
)

// checkSystem compares what the image is with what the site says.
func (b *builder) checkSystem(root fs.FS) error {
	have := distribution.OSRelease(root)
	b.say(fmt.Sprintf("system: %q", have["PRETTY_NAME"]))
	release, _ := distribution.OfSystem(have)
	family, _ := distribution.Find(release.Family)
	if !family.Disk.Takes(release) {
		return errkind.New(errkind.Unsupported, "the image is of %q (os-release: ID=%s, VERSION_ID=%s); images of %s are installed", have["PRETTY_NAME"], have["ID"], have["VERSION_ID"], titles())
	}
	b.system, b.family = release, family
	switch {
	case b.recipe.OS != "":
	case !family.Disk.Drivers:
		return errkind.New(errkind.Refused, "the image is of %s, on which driver stacks are not installed, and its block does not say so: nothing was compared with that", release).
			Do(fmt.Sprintf("Write os = %q and release = %q in the block.", release.Family, release.Version))
	default:
		return nil
	}
	if want, _ := distribution.ParseRelease(b.recipe.OS, b.recipe.Release); want != release {
		return errkind.New(errkind.Mismatch, "the image is of %s, and its block says %s", release, want).Do("Correct os and release, or source and checksum.")
	}
	return nil
}

// ramdisk packs the newest kernel and its modules for the install. It is the kernel that
// the image runs: one without a driver for the boot NIC or the disk never gets as far
// as to erase anything.
func (b *builder) ramdisk(ctx context.Context, root, boot fs.FS) error {
	names, err := fs.Glob(boot, "vmlinuz-*")
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		release := strings.TrimPrefix(name, "vmlinuz-")
		return !distribution.Holds(root, "lib/modules/"+release) || !distribution.Holds(boot, b.initrd(release))
	})
	if len(names) == 0 {
		return errkind.New(errkind.NotFound, "there is no kernel inside: no /boot/vmlinuz-RELEASE with %s and /lib/modules/RELEASE", b.initrd("RELEASE")).Do("Take an image for machines, not one for containers.")
	}
	release := strings.TrimPrefix(slices.MaxFunc(names, distribution.CompareKernels), "vmlinuz-")
	b.kernel = release
	if err := copyOut(boot, "vmlinuz-"+release, b.path(images.KernelFile)); err != nil {
		return err
	}
	drivers, err := os.Create(b.path(images.DriversFile))
	if err != nil {
		return err
	}
	if err := errors.Join(modalias.Collect(drivers, root, release), drivers.Close()); err != nil {
		return err
	}
	out, err := os.Create(b.path(images.InitrdFile))
	if err != nil {
		return err
	}
	defer out.Close()
	size, err := ramdisk.PackModules(ctx, out, root, release, false)
	if err != nil {
		return err
	}
	if b.recipe.onto() {
		if err := bootdisk.PackTools(ctx, out, root, b.recipe.Storage); err != nil {
			return err
		}
	}
	b.say(fmt.Sprintf("install ramdisk of %s: %d modules, %.1f MiB", release, size.Modules, float64(size.Packed)/(1<<20)))
	if len(size.Absent) > 0 {
		b.say("this kernel lacks for the install: " + strings.Join(size.Absent, ", "))
	}
	return out.Close()
}

// initrd is the name in /boot of the initrd of a kernel.
func (b *builder) initrd(release string) string {
	return strings.TrimPrefix(b.family.Boot.InitrdFile(release), "boot/")
}

// keep lists what is installed, and copies out what package repositories for this image are
// resolved against. There are none where no driver stack is installed.
func (b *builder) keep(root fs.FS) error {
	b.installed = installed.Read(root)
	if !b.family.Disk.Drivers {
		return nil
	}
	b.kept = []string{images.StatusFile, images.SourcesFile, images.KeyringFile}
	if err := copyOut(root, dpkg.StatusFile, b.path(images.StatusFile)); err != nil {
		return err
	}
	sources, err := aptsource.Read(root, func(name string) (string, error) {
		text, err := fs.ReadFile(root, name)
		return string(text), err
	})
	if err != nil {
		return err
	}
	keys, err := readKeyrings(root)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(b.path(images.SourcesFile), []byte(sources), 0o644), os.WriteFile(b.path(images.KeyringFile), keys, 0o644))
}

// readKeyrings joins the keyrings of the distribution: a keyring is packets one after
// another (RFC 9580, section 3.6). Armored ones, of third parties, are left out.
func readKeyrings(root fs.FS) ([]byte, error) {
	var all bytes.Buffer
	for _, pattern := range []string{"usr/share/keyrings/*-archive-keyring.gpg", "etc/apt/trusted.gpg.d/*.gpg"} {
		names, err := fs.Glob(root, pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if strings.Contains(name, "removed") {
				continue
			}
			text, err := fs.ReadFile(root, name)
			if err != nil {
				return nil, err
			}
			all.Write(text)
		}
	}
	return all.Bytes(), nil
}
