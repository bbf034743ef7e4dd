// SPDX-License-Identifier: Apache-2.0

// Package memory keeps a system in the memory of a node that has no disk of its own for it: a
// squashfs that is not written to any more, below an overlay that takes what is.
package memory

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// Node is the memory of a node: this very one (OnNode), or that of a virtual one.
type Node interface {
	// Image opens the place of an image of a size, in bytes. What an earlier call of this boot
	// has written there is there. An error of kind Mismatch: the memory does not suffice.
	Image(size int64) (disk.Device, error)
	// Mount makes the root file system of the image usable and calls do. It stays mounted,
	// with what was written to it.
	Mount(ctx context.Context, do func(rootfs.Root) error) error
}

// Reserve is what a node must have of memory beside the image, in bytes: for the system and its
// programs until more is known of them.
const Reserve = 1 << 30

// installFile says which install a system in memory is of; a disk has its marker for that.
const installFile = "etc/ironrail/memory.json"

// fstab is fstab(5) of a system that no disk is mounted for.
const fstab = "# Written by ironrail: the root file system is in memory.\n"

// Prepare writes into a root file system that it runs from memory, and of which install it is.
func Prepare(root rootfs.Root, is wire.InMemory) error {
	text, err := json.Marshal(is)
	if err != nil {
		return err
	}
	if err := rootfs.WriteText(root, installFile, string(text)+"\n", 0o644); err != nil {
		return err
	}
	return rootfs.WriteText(root, "etc/fstab", fstab, 0o644)
}

// Installed reads of which install the running system is; false: it does not run from memory.
func Installed(system sysfs.FS) (is wire.InMemory, ok bool, err error) {
	text := system.Text(installFile)
	if text == "" {
		return is, false, nil
	}
	if err := json.Unmarshal([]byte(text), &is); err != nil {
		return is, false, fmt.Errorf("/%s: %w", installFile, err)
	}
	return is, is.Marker != "", nil
}
