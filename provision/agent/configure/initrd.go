// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// initrds are the files with the early user space of an installed system: of Debian and
// its kin, and of Fedora and its own.
var initrds = []string{"boot/initrd.img-*", "boot/initramfs-*.img"}

// addToInitrds puts a file into every initrd of a root file system: an archive behind
// those that are there, whose files the kernel unpacks over theirs. Nothing of the system
// has to run for that, as its own update-initramfs would; when that makes the initrd anew,
// it takes the same file from the root.
func addToInitrds(root rootfs.Root, name, text string) error {
	more, found := archive(name, text), 0
	for _, pattern := range initrds {
		names, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			return err
		}
		for _, file := range names {
			info, err := fs.Stat(root.FS(), file)
			if err != nil || !info.Mode().IsRegular() {
				continue // a link leads to one of the others
			}
			found++
			b, err := fs.ReadFile(root.FS(), file)
			if err != nil {
				return err
			}
			if bytes.HasSuffix(b, more) {
				continue // an earlier run did it
			}
			gap := make([]byte, -len(b)&3) // an archive begins at a multiple of four
			if err := rootfs.Write(root, file, io.MultiReader(bytes.NewReader(b), bytes.NewReader(gap), bytes.NewReader(more)), info.Mode().Perm()); err != nil {
				return err
			}
		}
	}
	if found == 0 {
		return errkind.New(errkind.Invalid, "the system has no initrd in /boot, which has to assemble the array of its root").Do("Build the image again with this version.")
	}
	return nil
}

// archive is a cpio archive of one file and its folders, in the format newc
// (Documentation/driver-api/early-userspace/buffer-format.rst of Linux).
func archive(name, text string) []byte {
	var b bytes.Buffer
	number := 0
	add := func(name string, mode int, content string) {
		number++
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name)
		b.Write(make([]byte, -b.Len()&3))
		b.WriteString(content)
		b.Write(make([]byte, -b.Len()&3))
	}
	var folders []string
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		folders = append([]string{dir}, folders...)
	}
	for _, dir := range folders {
		add(dir, 0o40755, "")
	}
	add(name, 0o100644, text)
	add("TRAILER!!!", 0, "")
	return b.Bytes()
}
