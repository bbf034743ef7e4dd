// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
)

// CleanTree takes away keys, identities, logs and caches.
func CleanTree(root *os.Root) error {
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

// IgnoreAbsent is nil for the error of a file that is not there.
func IgnoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// WriteFile writes a file of the root file system; a link that stands there is
// replaced, not followed.
func WriteFile(root *os.Root, name, text string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := IgnoreAbsent(root.Remove(name)); err != nil {
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
