// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
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

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Settings are the files of every image, besides what packages bring, as they are below
// the root. What is different from node to node is written by the agent.
func Settings(f distribution.Family, arch inventory.Arch) map[string]string {
	all := map[string]string{
		"etc/fstab":       "LABEL=" + Label + " / ext4 defaults,errors=remount-ro 0 1\n",
		"etc/hostname":    "localhost\n", // what makes roots copies the builder's
		"etc/hosts":       "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
		"etc/resolv.conf": "", // the same
		"etc/machine-id":  "", // made anew at first boot
		"etc/adjtime":     "0.0 0 0.0\n0\nUTC\n",
	}
	maps.Copy(all, f.Boot.Settings)
	if f.Boot.Loader != nil {
		maps.Copy(all, entriesSettings(f.Boot.Loader, arch))
		return all
	}
	all["etc/default/locale"] = "LANG=C.UTF-8\n"
	all["boot/grub/grub.cfg"] = grubConfig(f, arch)
	// A rail without a cable must not hold up the boot: one interface is enough.
	all["etc/systemd/system/systemd-networkd-wait-online.service.d/ironrail.conf"] = "[Service]\nExecStart=\nExecStart=/lib/systemd/systemd-networkd-wait-online --any --timeout=30\n"
	return all
}

// Settle writes the settings, and takes away what must not be the same on two nodes.
func (m *Maker) Settle(root *os.Root) error {
	if err := cleanTree(root); err != nil {
		return err
	}
	settings := Settings(m.Family, m.Arch)
	maps.Copy(settings, m.Files)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := writeFile(root, name, settings[name]); err != nil {
			return err
		}
	}
	for _, unit := range m.Family.Boot.Timers {
		name := "etc/systemd/system/" + unit
		if err := errors.Join(ignoreAbsent(root.Remove(name)), root.Symlink("/dev/null", name)); err != nil {
			return err
		}
	}
	return nil
}

// cleanTree takes away keys, identities, logs and caches.
func cleanTree(root *os.Root) error {
	var all error
	for _, pattern := range []string{
		"etc/ssh/ssh_host_*", "etc/machine-id", "etc/resolv.conf", "etc/hostname", "var/lib/dbus/machine-id", "var/log/*.log", "var/log/apt/*",
		"var/log/journal/*", "var/cache/apt/*.bin", "var/lib/systemd/random-seed", "var/lib/apt/lists/*_*", "var/lib/systemd/credential.secret",
		"var/cache/dnf/*",
	} {
		names, err := fs.Glob(root.FS(), pattern)
		all = errors.Join(all, err)
		for _, name := range names {
			all = errors.Join(all, root.RemoveAll(name))
		}
	}
	return all
}

// ignoreAbsent is nil for the error of a file that is not there.
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

// CopyOut copies one file out of the root file system.
func CopyOut(root *os.Root, name, to string) error {
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

// NewestKernel returns the highest release among boot/vmlinuz-RELEASE.
func NewestKernel(root fs.FS) (string, error) {
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
