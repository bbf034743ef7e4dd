// SPDX-License-Identifier: Apache-2.0

package raw

import (
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
	"github.com/ironrail/ironrail/images/modalias"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/roottree"
	"github.com/ironrail/ironrail/internal/sysdisk"
	"github.com/ironrail/ironrail/inventory"
)

// takesLayouts reports whether the files of a system that an image says to be are put onto
// disk layouts: its packages keep links to the newest kernel, which the menu starts.
func takesLayouts(os string) bool {
	f, _ := distribution.Find(os)
	return os == "" || f.Boot.KernelLink != "" // what it does not say is seen when it is built
}

// onto reports whether the image has to have a second form, for disk layouts.
func (r Recipe) onto() bool { return len(r.Storage) > 0 }

// maker makes the loaders of layouts. Its family is known once the system was looked at.
func (b *builder) maker() *bootdisk.Maker {
	return &bootdisk.Maker{Dir: b.dir, Seed: b.recipe.Digest(), Say: b.say, Family: b.family, Arch: inventory.AMD64, Storage: b.recipe.Storage}
}

// checkLayouts looks whether the files of the image can be put onto the disk layouts of
// its nodes. All that is missing is one error.
func (b *builder) checkLayouts(root fs.FS) error {
	if !b.recipe.onto() {
		return nil
	}
	if b.family.Boot.KernelLink == "" {
		return errkind.New(errkind.Unsupported, "the files of images of Debian and Ubuntu are put onto disk layouts; this one is of %s", b.system).
			Do("Give its nodes a disk_layout of one ext4 root on one disk, for which the disk image is written as it is.")
	}
	var missing, add []string
	for _, p := range bootdisk.Programs(b.recipe.Storage) {
		if !distribution.Holds(root, "usr/sbin/"+p.Name) && !distribution.Holds(root, "sbin/"+p.Name) {
			missing, add = append(missing, fmt.Sprintf("%s (/usr/sbin/%s)", p.Name, p.Name)), append(add, p.Package)
		}
	}
	if len(missing) > 0 {
		return errkind.New(errkind.Unsupported, "the image lacks %s, which disk layouts of its nodes need", strings.Join(missing, ", ")).
			Do("Install in the image: " + strings.Join(add, " ") + ", and run update-initramfs -u there. Nothing was erased.")
	}
	for _, m := range b.fstab {
		p, err := sysdisk.Find(b.parts, m.Device)
		if err != nil || p.Number == b.root.Number || slices.Contains([]string{"/", "/boot", "/boot/efi", "none", "swap"}, m.Dir) {
			continue
		}
		return errkind.New(errkind.Unsupported, "/etc/fstab line %d, %s: what is on partition %d would not come onto a disk layout, which takes the root file system and /boot", m.Line, m.Dir, p.Number).
			Do("Move it into the root file system of the image; or give its nodes a disk_layout of one ext4 root on one disk.")
	}
	return nil
}

// checkKernel looks whether the system, once it lies on such a layout, finds its root: by
// the modules of its kernel, and by what is in its initrd.
func (b *builder) checkKernel(root, boot fs.FS) error {
	if !b.recipe.onto() {
		return nil
	}
	f, err := os.Open(b.path(images.DriversFile))
	if err != nil {
		return err
	}
	defer f.Close()
	drivers, err := modalias.Parse(f)
	if err != nil {
		return err
	}
	builtin, err := fs.ReadFile(root, "lib/modules/"+b.kernel+"/modules.builtin")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	name := b.initrd(b.kernel)
	in, err := boot.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	initrd, err := initrdNames(in)
	if errors.Is(err, errPacking) {
		b.say("/boot/" + name + " is packed in a way that is not read here: not judged whether it finds a root on a disk layout")
		initrd = nil
	} else if err != nil {
		return errkind.New(errkind.Corrupt, "/boot/%s: %w", name, err).Do("Run update-initramfs -u in the image.")
	}
	return lacks(b.recipe.Storage, name, drivers, string(builtin), initrd)
}

// part is what a layout needs of the system that starts on it.
type part struct {
	storage string   // of inventory.StorageRAID and so on
	modules []string // any one of them
	program string   // that has to be in the initrd; "": none
	without string   // what the initrd could not do
	has     string   // what the layouts have
}

var parts = []part{
	{inventory.StorageRAID, []string{"raid1", "raid10"}, "mdadm", "assemble the array that the root is on", "are on arrays"},
	{inventory.StorageLVM, []string{"dm-mod"}, "lvm", "activate the volume group that the root is in", "have volume groups"},
	{inventory.StorageXFS, []string{"xfs"}, "", "mount a root on XFS", "have XFS"},
}

// lacks says what of a layout a kernel cannot do, or its initrd cannot find the root on.
// Nothing is in an initrd that is nil: it was not read.
func lacks(storage []string, name string, drivers *modalias.List, builtin string, initrd []string) error {
	if err := kernelLacks(storage, drivers); err != nil || initrd == nil {
		return err
	}
	hasModule := func(m string) bool {
		return strings.Contains(builtin, "/"+m+".ko") || slices.ContainsFunc(initrd, func(n string) bool { return strings.Contains(n, "/"+m+".ko") })
	}
	const again = "Run update-initramfs -u in the image, with MODULES=most."
	for _, p := range parts {
		missing := ""
		switch {
		case !slices.Contains(storage, p.storage):
		case p.program != "" && !slices.ContainsFunc(initrd, func(n string) bool { return n == "sbin/"+p.program || n == "usr/sbin/"+p.program }):
			missing = p.program
		case !slices.ContainsFunc(p.modules, hasModule):
			missing = "module " + strings.Join(p.modules, " or ")
		}
		if missing != "" {
			return errkind.New(errkind.Unsupported, "/boot/%s has no %s in it: it could not %s", name, missing, p.without).Do(again)
		}
	}
	return nil
}

// kernelLacks says what of a layout a kernel has no module for.
func kernelLacks(storage []string, drivers *modalias.List) error {
	for _, p := range parts {
		if slices.Contains(storage, p.storage) && !slices.ContainsFunc(p.modules, drivers.HasModule) {
			return errkind.New(errkind.Unsupported, "the kernel has no module %s, and disk layouts of its nodes %s", strings.Join(p.modules, " or "), p.has).
				Do("Install in the image a kernel that has it, such as linux-image-amd64 (Debian) or linux-image-generic (Ubuntu).")
		}
	}
	return nil
}

// packLoaders makes what the firmware starts on a disk layout: the loaders of the image's
// own disk look for its partitions.
func (b *builder) packLoaders(ctx context.Context) error { return b.maker().PackLoaders(ctx) }

// packTree packs the files of the image, /boot among them, with a menu that finds another
// root and the links that it starts the kernel by.
func (b *builder) packTree(ctx context.Context) error {
	maker := b.maker()
	boot := maker.Family.Boot
	files := []roottree.File{{Name: "boot/grub/grub.cfg", Text: bootdisk.ForeignMenu(maker.Family, maker.Arch)}}
	for name, text := range boot.Settings {
		files = append(files, roottree.File{Name: name, Text: text})
	}
	for name, to := range boot.Links(b.kernel) {
		files = append(files, roottree.File{Name: name, Link: to})
	}
	slices.SortFunc(files, func(x, y roottree.File) int { return strings.Compare(x.Name, y.Name) })
	skip := []string{"lost+found", "boot/lost+found"}
	for _, f := range files {
		skip = append(skip, f.Name)
	}
	return b.mounted(ctx, b.root, func(root fs.FS) error {
		return b.withBoot(ctx, root, func(fs.FS) error {
			parts := []roottree.Part{{Dir: b.mountDir(b.root), Skip: skip}}
			if p, apart, err := b.bootPart(); err != nil {
				return err
			} else if apart {
				parts[0].Skip = append(slices.Clone(skip), "boot")
				parts = append(parts, roottree.Part{Dir: b.mountDir(p), At: "boot", Skip: skip})
			}
			return maker.PackParts(ctx, b.root.Size(), parts, files)
		})
	})
}
