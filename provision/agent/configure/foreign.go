// SPDX-License-Identifier: Apache-2.0

package configure

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/loadercfg"
	"github.com/ironrail/ironrail/internal/sysdisk"
	"github.com/ironrail/ironrail/internal/userdata"
	"github.com/ironrail/ironrail/provision/agent/disk"
	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// isForeign reports whether a system was not made by ironrail: its grub.cfg does not
// take in the file with the node's kernel arguments, or says so, where its files were put
// onto a layout.
func isForeign(root rootfs.Root) bool {
	text, err := fs.ReadFile(root.FS(), grubFile)
	return err != nil || !strings.Contains(string(text), "ironrail.cfg") || strings.Contains(string(text), loadercfg.Foreign)
}

// systemDisk is where a system that ironrail did not make lies, as devices of fstab(5).
type systemDisk struct {
	root string            // for the kernel
	dirs map[string]string // by the folder that they are mounted at
}

// readDisk finds the partitions of a system: the root is the last one, the EFI system
// partition is known by its type, and /boot by what its fstab names.
func readDisk(dev disk.Device, fstab string) (s systemDisk, err error) {
	table, err := gpt.Read(dev, dev.Size())
	if err != nil {
		return s, errkind.New(errkind.Corrupt, "%w", err)
	}
	parts, last := sysdisk.Parts(dev, table), 0
	s.dirs = map[string]string{}
	for i, p := range parts {
		if p.First > parts[last].First {
			last = i
		}
		if p.Type == gpt.EFISystem {
			s.dirs["/boot/efi"] = "PARTUUID=" + p.GUID
		}
	}
	if len(parts) == 0 || parts[last].UUID == "" {
		return s, errkind.New(errkind.Corrupt, "the last partition of the disk has no UUID")
	}
	s.root = "UUID=" + parts[last].UUID
	s.dirs["/"] = s.root
	boot, ok, err := bootPart(parts, fstab)
	if ok {
		s.dirs["/boot"] = "UUID=" + boot.UUID
	}
	return s, err
}

// bootPart finds the file system of /boot, where it is one of its own.
func bootPart(parts []sysdisk.Part, fstab string) (p sysdisk.Part, ok bool, err error) {
	for _, m := range sysdisk.ReadFstab(fstab) {
		if m.Dir != "/boot" {
			continue
		}
		p, err := sysdisk.Find(parts, m.Device)
		if err == nil && p.Kind != sysdisk.Ext4 && p.Kind != sysdisk.XFS {
			err = fmt.Errorf("it is neither ext4 nor xfs")
		}
		if err != nil {
			return p, false, errkind.New(errkind.Corrupt, "/%s line %d: /boot: %w", fstabFile, m.Line, err).Do("Correct it in the image.")
		}
		return p, true, nil
	}
	return p, false, nil
}

// networkFiles are what images bring that would set addresses beside the site's.
var networkFiles = []string{
	"etc/netplan/*.yaml", "etc/netplan/*.yml", "etc/network/interfaces.d/*", "etc/systemd/network/*.network", "etc/udev/rules.d/*cloud-ifupdown*",
	"etc/NetworkManager/system-connections/*", "etc/sysconfig/network-scripts/ifcfg-*",
}

// foreignFiles are the files that a system of somebody else gets beside the settings of
// all: what would set addresses, names and keys at the first boot is off, a rail without
// a cable does not hold up the boot.
var foreignFiles = map[string]string{
	userdata.CloudOff: "Written by ironrail, which sets the host name, the addresses and the keys of this node.\n",
	"etc/systemd/system/systemd-networkd-wait-online.service.d/ironrail.conf": "[Service]\nExecStart=\nExecStart=/lib/systemd/systemd-networkd-wait-online --any --timeout=30\n",
}

// foreign settles a system that ironrail did not make. It does the same when it is done
// again.
func (s settings) foreign(root rootfs.Root, t target) error {
	loader := func() error { return s.foreignDisk(root, t.devs[0]) }
	labels := func() error { return relabel(root) }
	switch {
	case t.memory != nil: // nothing starts it, and a restart for its labels would end it
		loader, labels = func() error { return nil }, func() error { return nil }
	case t.layout != nil:
		loader = func() error { return keepMenu(root) } // the layout has named the file systems
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"networks of the image", func() error { return s.foreignNetworks(root) }},
		{"first boot", func() error { return s.writeForeign(root) }},
		{"disk", loader},
		{"labels", labels},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// foreignNetworks takes away the addresses that the image brings.
func (s settings) foreignNetworks(root rootfs.Root) error {
	for _, pattern := range networkFiles {
		names, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			if name == interfaces.NetplanFile || strings.HasPrefix(name, interfaces.NetworkdPrefix) || strings.HasPrefix(name, interfaces.ManagerPrefix) && interfaces.UsesManager(root) {
				continue
			}
			if err := rootfs.Remove(root, name); err != nil {
				return err
			}
		}
	}
	const loopback = "# Written by ironrail: systemd-networkd sets the addresses of this node.\nauto lo\niface lo inet loopback\n"
	if rootfs.Exists(root, "etc/network/interfaces") {
		if err := rootfs.WriteText(root, "etc/network/interfaces", loopback, 0o644); err != nil {
			return err
		}
	}
	if !rootfs.Exists(root, managerFolder) || interfaces.UsesManager(root) {
		return nil
	}
	text := "# Written by ironrail: systemd-networkd sets the addresses of this node.\n[main]\nno-auto-default=*\n[keyfile]\nunmanaged-devices=" + interfaces.Unmanaged(s.boot(), s.layout) + "\n"
	return rootfs.WriteText(root, managerConf, text, 0o644)
}

// writeForeign switches off what would set the node up a second time.
func (s settings) writeForeign(root rootfs.Root) error {
	for name, text := range foreignFiles {
		switch {
		case strings.Contains(name, "networkd") && interfaces.UsesManager(root):
			continue
		case name == userdata.CloudOff && userdata.FormOf(s.UserData) == userdata.CloudConfig: // it reads the site's seed
			continue
		}
		if err := rootfs.WriteText(root, name, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// menuScripts are what grub-mkconfig(8) makes grub.cfg with: those that may be executed.
const menuScripts = "etc/grub.d"

// ownScript is the one of them that is left on a layout. What it prints is as it was, since
// grub-mkconfig writes the new file beside the old one; comments are its own.
const ownScript, ownScriptText = menuScripts + "/09_ironrail", "#!/bin/sh\n# Written by ironrail: the loaders on the disks of this node start the newest kernel by this menu.\nexec grep -v -e '^#' -e '^$' /boot/grub/grub.cfg\n"

// keepMenu has update-grub, which runs when a kernel is installed, leave the menu as it
// is: its own would load modules of another GRUB than the one on the disks.
func keepMenu(root rootfs.Root) error {
	if !rootfs.Exists(root, menuScripts) {
		return nil
	}
	entries, err := fs.ReadDir(root.FS(), menuScripts)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if err := root.Chmod(menuScripts+"/"+e.Name(), info.Mode().Perm()&^0o111); err != nil {
			return err
		}
	}
	return rootfs.WriteText(root, ownScript, ownScriptText, 0o755)
}

// defaultsFile is read by grub-mkconfig after /etc/default/grub (Debian, Ubuntu).
const defaultsFile = "etc/default/grub.d/99-ironrail.cfg"

// foreignDisk names the file systems by their UUIDs, since every image of a vendor has
// the same labels, and hands the kernel its arguments: now, and whenever the
// configuration of the loader is made again.
func (s settings) foreignDisk(root rootfs.Root, dev disk.Device) error {
	fstab, err := fs.ReadFile(root.FS(), fstabFile)
	if err != nil {
		return err
	}
	is, err := readDisk(dev, string(fstab))
	if err != nil {
		return err
	}
	if err := rootfs.WriteText(root, fstabFile, sysdisk.SetDevices(string(fstab), is.dirs), 0o644); err != nil {
		return err
	}
	if hasEntries(root) {
		return s.entries(root, is.root)
	}
	text := "# Written by ironrail when this node was installed.\nGRUB_CMDLINE_LINUX_DEFAULT=\"" + strings.Join(s.arguments(), " ") + "\"\nGRUB_DISABLE_OS_PROBER=true\n"
	if err := rootfs.WriteText(root, defaultsFile, text, 0o644); err != nil {
		return err
	}
	config, err := fs.ReadFile(root.FS(), grubFile)
	if err != nil {
		return err
	}
	edited, n := editGrub(string(config), is.root, s.arguments(), s.Console != "")
	if n == 0 {
		return errkind.New(errkind.Invalid, "/%s starts no kernel", grubFile).Do("Take an image whose GRUB has its menu in that file.")
	}
	return rootfs.WriteText(root, grubFile, edited, 0o644)
}

// editGrub gives every kernel of a grub.cfg its root and more arguments, and returns how
// many there are. The image's own consoles go where the node has one: the last one is
// /dev/console. Arguments that are there already are not doubled.
func editGrub(text, rootDevice string, more []string, console bool) (edited string, kernels int) {
	var out strings.Builder
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "linux" && words[0] != "linux16" && words[0] != "linuxefi" {
			out.WriteString(line)
			continue
		}
		indent, _, _ := strings.Cut(line, words[0])
		kept := slices.Concat(words[:2], []string{"root=" + rootDevice}, kernelArguments(words[2:], more, console))
		out.WriteString(indent + strings.Join(kept, " ") + "\n")
		kernels++
	}
	return out.String(), kernels
}

// kernelArguments are those of an image with more, without its root, its consoles where
// the node has one, and what hides the messages of a boot.
func kernelArguments(of, more []string, console bool) (kept []string) {
	for _, w := range of {
		name, _, _ := strings.Cut(w, "=")
		if slices.Contains([]string{"root", "quiet", "rhgb", "splash", "$vt_handoff"}, name) || console && name == "console" {
			continue
		}
		kept = append(kept, w)
	}
	for _, w := range more {
		if !slices.Contains(kept, w) {
			kept = append(kept, w)
		}
	}
	return kept
}
