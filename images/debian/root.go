// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/bootdisk"
)

// dpkgOptions keep documentation and translations out, now and in later upgrades.
// Licences stay.
var dpkgOptions = []string{
	"path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
	"path-exclude=/usr/share/man/*", "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/locale/*",
	"path-exclude=/usr/share/lintian/*",
}

// settings are the files of every image, besides what packages bring. What is
// different from node to node is written by the agent.
var settings = map[string]string{
	"etc/fstab":           "LABEL=" + bootdisk.Label + " / ext4 defaults,errors=remount-ro 0 1\n",
	"etc/hostname":        "localhost\n", // mmdebstrap copies the controller's
	"etc/hosts":           "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
	"etc/resolv.conf":     "", // the same
	"etc/machine-id":      "", // made anew at first boot
	"etc/default/locale":  "LANG=C.UTF-8\n",
	"etc/adjtime":         "0.0 0 0.0\n0\nUTC\n",
	"boot/grub/grub.cfg":  bootdisk.GrubConfig,
	"etc/kernel-img.conf": "do_symlinks = yes\nlink_in_boot = no\n", // GRUB boots /vmlinuz, the newest
	// A rail without a cable must not hold up the boot: one interface is enough.
	"etc/systemd/system/systemd-networkd-wait-online.service.d/ironrail.conf": "[Service]\nExecStart=\nExecStart=/lib/systemd/systemd-networkd-wait-online --any --timeout=30\n",
}

// early are the settings that packages read while they are installed.
var early = []string{"etc/fstab", "etc/kernel-img.conf"}

// masked are the timers that would take locks and processor time on their own.
var masked = []string{"apt-daily.timer", "apt-daily-upgrade.timer"}

// customize runs in mmdebstrap's shell with the root as $1. It is the same for
// every recipe.
const customize = `chroot "$1" systemctl enable systemd-networkd.service`

// bootstrap makes the root file system.
func (b *builder) bootstrap(ctx context.Context) error {
	for _, name := range early {
		to := filepath.Join(b.disk.Dir, "early", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, []byte(settings[name]), 0o644)); err != nil {
			return err
		}
	}
	argv := []string{
		"mmdebstrap", "--mode=root", "--variant=minbase", "--architectures=amd64", "--format=directory",
		"--include=" + strings.Join(b.recipe.include(), ","),
		"--essential-hook=sync-in early /", "--customize-hook=" + customize,
	}
	for _, o := range dpkgOptions {
		argv = append(argv, "--dpkgopt="+o)
	}
	argv = append(argv, b.recipe.Release, b.disk.Root)
	return b.disk.Run(ctx, b.progress, append(argv, b.recipe.Mirrors...)...)
}

// progress passes on mmdebstrap's own lines about its phases.
func (b *builder) progress(line string) {
	if text, ok := strings.CutPrefix(line, "I: "); ok {
		b.disk.Say(text)
	}
}

// settle writes the settings, takes away what must not be the same on two nodes,
// and copies out what later builds need.
func (b *builder) settle(context.Context) error {
	root, err := os.OpenRoot(b.disk.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := bootdisk.CleanTree(root); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := bootdisk.WriteFile(root, name, settings[name]); err != nil {
			return err
		}
	}
	for _, unit := range masked {
		name := "etc/systemd/system/" + unit
		if err := errors.Join(bootdisk.IgnoreAbsent(root.Remove(name)), root.Symlink("/dev/null", name)); err != nil {
			return err
		}
	}
	return b.keep(root)
}

// keep copies out what a package repository for this image is resolved against.
func (b *builder) keep(root *os.Root) error {
	for name, from := range map[string]string{
		images.StatusFile: "var/lib/dpkg/status", images.SourcesFile: "etc/apt/sources.list", images.KeyringFile: "usr/share/keyrings/debian-archive-keyring.gpg",
	} {
		if err := bootdisk.CopyOut(root, from, b.disk.Path(name)); err != nil {
			return err
		}
	}
	return nil
}
