// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
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
	"etc/fstab":           "LABEL=" + Label + " / ext4 defaults,errors=remount-ro 0 1\n",
	"etc/hostname":        "localhost\n", // mmdebstrap copies the controller's
	"etc/hosts":           "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
	"etc/resolv.conf":     "", // the same
	"etc/machine-id":      "", // made anew at first boot
	"etc/default/locale":  "LANG=C.UTF-8\n",
	"etc/adjtime":         "0.0 0 0.0\n0\nUTC\n",
	"boot/grub/grub.cfg":  grubCfg,
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
		to := filepath.Join(b.dir, "early", filepath.FromSlash(name))
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
	argv = append(argv, b.recipe.Release, b.root)
	return b.run(ctx, b.progress, append(argv, b.recipe.Mirrors...)...)
}

// progress passes on mmdebstrap's own lines about its phases.
func (b *builder) progress(line string) {
	if text, ok := strings.CutPrefix(line, "I: "); ok {
		b.say(text)
	}
}

// settle writes the settings, takes away what must not be the same on two nodes,
// and copies out what later builds need.
func (b *builder) settle(context.Context) error {
	root, err := os.OpenRoot(b.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := removeAll(root); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := writeFile(root, name, settings[name]); err != nil {
			return err
		}
	}
	for _, unit := range masked {
		name := "etc/systemd/system/" + unit
		if err := errors.Join(ignoreAbsent(root.Remove(name)), root.Symlink("/dev/null", name)); err != nil {
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
		if err := copyOut(root, from, b.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// removeAll takes away keys, identities, logs and caches.
func removeAll(root *os.Root) error {
	var all error
	for _, pattern := range []string{
		"etc/ssh/ssh_host_*", "etc/machine-id", "etc/resolv.conf", "etc/hostname", "var/lib/dbus/machine-id", "var/log/*.log", "var/log/apt/*",
		"var/log/journal/*", "var/cache/apt/*.bin", "var/lib/systemd/random-seed", "var/lib/apt/lists/*_*", "var/lib/systemd/credential.secret",
	} {
		names, err := fs.Glob(root.FS(), pattern)
		all = errors.Join(all, err)
		for _, name := range names {
			all = errors.Join(all, root.RemoveAll(name))
		}
	}
	return all
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile writes a file of the root file system; a link that stands there is
// replaced, not followed.
func writeFile(root *os.Root, name, text string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := ignoreAbsent(root.Remove(name)); err != nil {
		return err
	}
	return root.WriteFile(name, []byte(text), 0o644)
}

// copyOut copies one file out of the root file system.
func copyOut(root *os.Root, name, to string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// newestKernel returns the highest release among boot/vmlinuz-RELEASE.
func newestKernel(root fs.FS) (string, error) {
	names, err := fs.Glob(root, "boot/vmlinuz-*")
	if err != nil {
		return "", err
	}
	if len(names) == 0 {
		return "", errkind.New(errkind.NotFound, "no kernel was installed: there is no boot/vmlinuz-*").Do("Name a package that holds a kernel, such as linux-image-amd64.")
	}
	newest := slices.MaxFunc(names, distribution.CompareKernels)
	return strings.TrimPrefix(newest, "boot/vmlinuz-"), nil
}

// treeSize estimates how many bytes a folder takes on ext4: whole blocks, hard
// links once, and an inode each.
func treeSize(dir string) (int64, error) {
	const block, inode = 4096, 256
	var total int64
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if n, ok := inodeOf(info); ok && seen[n] {
			return nil
		} else if ok {
			seen[n] = true
		}
		total += inode + (info.Size()+block-1)/block*block
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("size of the root file system: %w", err)
	}
	return total, nil
}
