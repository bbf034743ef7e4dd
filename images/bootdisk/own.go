// SPDX-License-Identifier: Apache-2.0

package bootdisk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/images"
	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
)

// entriesMenu is the menu of GRUB that takes its kernels from entries. What it takes over from
// grub2-mkconfig, which may write another one on the node: load_video, which blscfg calls for
// every entry, the variables next_entry and saved_entry, and the administrator's custom.cfg.
const entriesMenu = `# Written by ironrail; the kernels are in /boot/loader/entries, with their arguments.
` + serialTerminal + `function load_video {
  insmod all_video
}
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${next_entry}" ]; then
  set default="${next_entry}"
  set next_entry=
  save_env next_entry
else
  set default="${saved_entry}"
fi
set timeout=0
if [ -f $prefix/custom.cfg ]; then
  source $prefix/custom.cfg
fi
insmod blscfg
blscfg
`

// CommandLineFile holds the arguments of kernels that are installed (kernel-install(8)): without
// it they would be those of the controller.
const CommandLineFile = "etc/kernel/cmdline"

// DefaultKernelFile says that a kernel that is installed becomes the one that is started
// (grub2-get-kernel-settings).
const DefaultKernelFile = "etc/sysconfig/kernel"

// entriesSettings are the files of every image whose kernels are in entries, as the installer of
// RHEL writes them.
func entriesSettings(l *distribution.Loader, arch inventory.Arch) map[string]string {
	return map[string]string{
		"etc/locale.conf": "LANG=C.UTF-8\n",
		CommandLineFile:   "root=LABEL=" + Label + " ro console=tty0 console=" + platformOf(arch).console + "\n",
		DefaultKernelFile: "UPDATEDEFAULT=yes\nDEFAULTKERNEL=kernel-core\n",
		"etc/default/grub": "GRUB_TIMEOUT=0\nGRUB_DEFAULT=saved\nGRUB_DISABLE_SUBMENU=true\nGRUB_DISABLE_RECOVERY=true\nGRUB_ENABLE_BLSCFG=true\n" +
			"GRUB_CMDLINE_LINUX=\"\"\n",
		l.Menu(): entriesMenu,
	}
}

// EntriesID is what the entries of kernels are named after on every node of the image, in the
// place of the node's machine-id: 32 hex digits. GRUB orders entries by name, and those of the
// image would come before newer ones on half of the nodes.
func (m *Maker) EntriesID() string { return strings.ReplaceAll(m.id("entries").String(), "-", "") }

// takeLoaders takes GRUB and shim of the packages in the root: signed ones for UEFI, and for
// BIOS an image that GRUB's own program makes of its own modules.
func (m *Maker) takeLoaders(ctx context.Context, l *distribution.Loader) error {
	if len(m.Storage) > 0 {
		return errkind.New(errkind.Unsupported, "disk layouts beside the image's own need a GRUB that is made here, and that of %s is its own", m.Family.Title)
	}
	root, err := os.OpenRoot(m.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := errors.Join(m.takeEFI(root, l), m.takeNetwork()); err != nil {
		return err
	}
	if !platformOf(m.Arch).hasBIOS() {
		return nil
	}
	return m.takeBIOS(ctx, root, l)
}

// TakeOwn takes the signed loaders of the packages in the root for a system that is kept in memory: those
// of the network, where nodes boot with Secure Boot.
func (m *Maker) TakeOwn(context.Context) error {
	if !m.SecureBoot {
		return nil
	}
	root, err := os.OpenRoot(m.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	return errors.Join(m.takeEFI(root, m.Family.Boot.Loader), m.takeNetwork())
}

// Programs for UEFI on x86-64, as packages of shim and GRUB name them.
const (
	shimEFI       = "shimx64.efi"
	grubEFI       = "grubx64.efi"
	mokManagerEFI = "mmx64.efi"
)

// takeEFI copies shim, GRUB and MokManager to the removable path and to their vendor's. shim
// starts the GRUB that lies beside it. Without its fallback (fbx64.efi) nothing changes the
// firmware's boot order. GRUB looks for its configuration where its maker has built it in, which is the
// vendor's folder as a rule.
func (m *Maker) takeEFI(root *os.Root, l *distribution.Loader) error {
	found, err := fs.Glob(root.FS(), l.EFI+"/*/"+grubEFI)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(name string) bool { return path.Base(path.Dir(name)) == "BOOT" })
	if len(found) != 1 {
		return errkind.New(errkind.Unsupported, "packages have put GRUB for UEFI into %d folders of /%s, and one is expected", len(found), l.EFI).
			Do("Name repositories of one distribution, with its shim-x64 and grub2-efi-x64.")
	}
	from := path.Dir(found[0])
	for dir, shim := range map[string]string{"EFI/BOOT": "BOOTX64.EFI", "EFI/" + path.Base(from): shimEFI} {
		if err := os.MkdirAll(m.Path(dir), 0o755); err != nil {
			return err
		}
		err := errors.Join(CopyOut(root, from+"/"+shimEFI, m.Path(dir+"/"+shim)), CopyOut(root, from+"/"+grubEFI, m.Path(dir+"/"+grubEFI)),
			ignoreAbsent(CopyOut(root, from+"/"+mokManagerEFI, m.Path(dir+"/"+mokManagerEFI))), os.WriteFile(m.Path(dir+"/grub.cfg"), []byte(stubOf(l)), 0o644))
		if err != nil {
			return err
		}
	}
	if grub, err := m.readGRUB("EFI/BOOT/" + grubEFI); err == nil && plainPrefix.MatchString(grub.Prefix) { // else it looks beside itself
		return m.placeAt(grub)
	}
	return nil
}

// takeNetwork copies the signed loaders to where the network serves them from, for nodes with Secure
// Boot: GRUB of the disk has what the network needs, as that of RHEL has. Where the
// GRUB of the packages looks for its configuration is written as well.
func (m *Maker) takeNetwork() error {
	if !m.SecureBoot {
		return nil
	}
	for from, to := range map[string]string{"BOOTX64.EFI": images.ShimX64File, grubEFI: images.GRUBX64File, mokManagerEFI: images.MOKX64File} {
		b, err := os.ReadFile(m.Path("EFI/BOOT/" + from))
		if err != nil {
			return errkind.New(errkind.NotFound, "the packages brought no signed %s: %w", from, err).Do("Name repositories with the distribution's own shim-x64 and grub2-efi-x64.")
		}
		if err := os.WriteFile(m.Path(to), b, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(m.placeConfig(), m.checkChain())
}

// entriesModules are built into GRUB for BIOS beside those of every image.
var entriesModules = []string{"biosdisk", "blscfg", "loadenv", "vga_text"}

// takeBIOS makes GRUB for BIOS as grub2-install(8) does: modules, early configuration and image
// are in the folder of the platform.
func (m *Maker) takeBIOS(ctx context.Context, root *os.Root, l *distribution.Loader) error {
	dir := l.Folder + "/" + path.Base(l.BIOS)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"*.mod", "*.lst"} {
		names, err := fs.Glob(root.FS(), l.BIOS+"/"+pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			b, err := root.ReadFile(name)
			if err != nil {
				return err
			}
			if err := root.WriteFile(dir+"/"+path.Base(name), b, 0o644); err != nil {
				return err
			}
		}
	}
	early := strings.ReplaceAll(grubEarly, "/boot/grub", "/"+l.Folder)
	if err := root.WriteFile(dir+"/load.cfg", []byte(early), 0o644); err != nil {
		return err
	}
	argv := []string{"chroot", m.Root, l.Make, "-O", path.Base(l.BIOS), "-d", "/" + l.BIOS, "-p", strings.ReplaceAll(grubPrefix, "/boot/grub", "/"+l.Folder), "-c", "/" + dir + "/load.cfg", "-o", "/" + dir + "/" + coreFile}
	if err := m.Run(ctx, nil, slices.Concat(argv, grubModules, entriesModules)...); err != nil {
		return err
	}
	return CopyOut(root, dir+"/"+coreFile, m.Path(coreFile))
}
