// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"os"
	"os/exec"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// Tool is a program that a build runs, or a file that it reads, with the package that
// has it.
type Tool struct{ Name, Package string }

// DiskTools are those of a maker of disks whose loaders are in the root.
func DiskTools() []Tool {
	return []Tool{{"mke2fs", "e2fsprogs"}, {"mkfs.vfat", "dosfstools"}, {"mcopy", "mtools"}}
}

// Tools are those of a maker of disks for an architecture.
func Tools(arch inventory.Arch) []Tool {
	tools := append(DiskTools(), Tool{"grub-mkimage", "grub-common"})
	for _, l := range platformOf(arch).loaders {
		tools = append(tools, Tool{l.part, l.pkg})
	}
	return tools
}

// Tools are those of what the maker makes.
func (m *Maker) Tools() []Tool {
	if m.InMemory {
		return []Tool{{"mksquashfs", "squashfs-tools"}}
	}
	return Tools(m.Arch)
}

// CheckTools reports everything that is missing on this controller at once.
func CheckTools(tools []Tool) error {
	var missing []string
	for _, t := range tools {
		var err error
		if strings.HasPrefix(t.Name, "/") {
			_, err = os.Stat(t.Name)
		} else {
			_, err = exec.LookPath(t.Name)
		}
		if err != nil {
			missing = append(missing, t.Package)
		}
	}
	if len(missing) > 0 {
		return errkind.New(errkind.Unsupported, "this controller lacks what builds an image: %s", strings.Join(missing, ", ")).
			Do("Install it: apt-get install " + strings.Join(missing, " "))
	}
	if os.Geteuid() != 0 {
		return errkind.New(errkind.Refused, "an image is built as root: its files belong to many users").Do("Run the build as root.")
	}
	return nil
}
