// SPDX-License-Identifier: Apache-2.0

// Package loadercfg is the short configuration on an EFI system partition by which GRUB
// finds the root file system. It is made with the image and has a fixed size, so that
// the agent can write the one of a node over it without a driver for FAT. It is a leaf:
// the builder and the agent share it.
package loadercfg

import (
	"bytes"
	"fmt"
)

// Folder is where the configuration lies on the partition: grub.cfg.
const Folder = "/EFI/ironrail"

// Size is that of the file, bytes: one sector, which FAT never divides.
const Size = 512

// Foreign is a line of grub.cfg in the root file system that says that the system is not
// one of ironrail's making: GRUB sets it and nobody reads it there.
const Foreign = "set ironrail_system=foreign\n"

// mark begins the file: the agent finds it by this.
const mark = "# ironrail: where the root file system is. This file keeps its size.\n"

// rest goes on in the root file system.
const rest = "set prefix=($root)/boot/grub\nconfigfile $prefix/grub.cfg\n"

// ByLabel finds the root by its label, first on the disk that GRUB came from, so that a
// second disk with an older image cannot be taken while the right one is there.
func ByLabel(label string) ([]byte, error) {
	return pad("regexp --set=1:disk '^(.*),gpt' $root\nsearch --no-floppy --label --set=root --hint=$disk,gpt3 " + label + "\n")
}

// ByUUID finds the root by the UUID of its file system, wherever it is.
func ByUUID(uuid string) ([]byte, error) {
	return pad("search --no-floppy --fs-uuid --set=root " + uuid + "\n")
}

func pad(text string) ([]byte, error) {
	text = mark + text + rest
	if len(text) > Size {
		return nil, fmt.Errorf("configuration of the boot loader has %d bytes, and there is room for %d", len(text), Size)
	}
	return append([]byte(text), bytes.Repeat([]byte("\n"), Size-len(text))...), nil
}

// Replace writes a configuration over the one on an EFI system partition, in memory.
func Replace(esp, text []byte) error {
	const sector = 512
	var found []int
	for at := 0; at+Size <= len(esp); at += sector {
		if bytes.HasPrefix(esp[at:], []byte(mark)) {
			found = append(found, at)
		}
	}
	if len(found) != 1 || len(text) != Size {
		return fmt.Errorf("the EFI system partition of the image has %d configurations of ironrail's loader, and must have one", len(found))
	}
	copy(esp[found[0]:], text)
	return nil
}
