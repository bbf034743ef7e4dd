// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"io/fs"
	"slices"

	"github.com/ironrail/ironrail/internal/dpkg"
	"github.com/ironrail/ironrail/inventory"
)

// DiskImage is what a disk image of a distribution that somebody else made has to have, so that
// its system is set up by editing files, and what its system gets then. Images of kind rhel are
// set up in the same way.
type DiskImage struct {
	Releases []string      // that are taken; empty: all
	Required []Requirement // files of it
	Menu     string        // of GRUB, below /boot
	Entries  bool          // the menu takes the kernels from loader/entries below /boot (Boot Loader Specification)
	Drivers  bool          // driver stacks are installed on its system
	// Relabels reports whether its system may have SELinux, which gives labels to what was
	// written from outside at the first boot, and restarts for that.
	Relabels bool
}

// Requirement is something that an image has to have.
type Requirement struct {
	Names []string // of a file below the root, any of them
	What  string
}

// Holds reports whether a root file system has a file.
func Holds(root fs.FS, name string) bool {
	_, err := fs.Stat(root, name)
	return err == nil
}

// Missing says what of it a root file system does not have.
func (d *DiskImage) Missing(root fs.FS) (list []string) {
	for _, r := range d.Required {
		if !slices.ContainsFunc(r.Names, func(name string) bool { return Holds(root, name) }) {
			list = append(list, r.What)
		}
	}
	return list
}

// everywhere are those of every distribution.
var everywhere = []Requirement{
	{[]string{"usr/sbin/sshd"}, "an SSH server (openssh-server), which the node is driven by"},
	{[]string{"etc/fstab"}, "an fstab"},
}

// networkdImage is that of Debian and Ubuntu.
var networkdImage = &DiskImage{
	Required: append([]Requirement{
		{[]string{"usr/lib/systemd/system/systemd-networkd.service", "lib/systemd/system/systemd-networkd.service"}, "systemd-networkd, which the node's addresses are set by"},
		{[]string{"usr/sbin/update-grub"}, "GRUB with update-grub, which keeps the kernel's arguments when a kernel is installed"},
		{[]string{dpkg.StatusFile}, "packages of dpkg"},
	}, everywhere...),
	Menu: "grub/grub.cfg", Drivers: true,
}

// entriesImage is that of RHEL 9 and its rebuilds. systemd-networkd is in none of their
// own repositories.
var entriesImage = &DiskImage{
	Releases: []string{"9"},
	Required: append([]Requirement{
		{[]string{"usr/lib/systemd/system/NetworkManager.service"}, "NetworkManager, which the node's addresses are set by"},
		{[]string{"usr/sbin/grub2-mkconfig"}, "GRUB (grub2-tools)"},
		{[]string{"usr/lib/kernel/install.d/20-grub.install"}, "kernel-install for GRUB (grub2-common), which keeps the kernel's arguments when a kernel is installed"},
		{[]string{"var/lib/rpm/rpmdb.sqlite", "usr/lib/sysimage/rpm/rpmdb.sqlite"}, "packages of rpm"},
	}, everywhere...),
	Menu: "grub2/grub.cfg", Entries: true, Relabels: true,
}

// rebuilds are the names that os-release(5) has for rebuilds of a family.
var rebuilds = map[string]string{"rocky": RHEL, "almalinux": RHEL}

// OfSystem is the release of a system by its os-release(5); false where it is not known.
func OfSystem(osRelease map[string]string) (Release, bool) {
	id := osRelease["ID"]
	if family, ok := rebuilds[id]; ok {
		id = family
	}
	return ParseRelease(id, osRelease["VERSION_ID"])
}

// OfDisks are the families of which disk images are taken.
func OfDisks() (list []Family) {
	return slices.DeleteFunc(Families(), func(f Family) bool { return f.Disk == nil })
}

// OfDisk is what the system of an image has to have, by what its block says; nil: the block
// does not say what it is.
func OfDisk(i *inventory.Image) *DiskImage {
	if i == nil {
		return nil
	}
	f, _ := FamilyOf(i)
	return f.Disk
}

// Takes reports whether an image of a release is taken.
func (d *DiskImage) Takes(r Release) bool {
	return d != nil && (len(d.Releases) == 0 || slices.Contains(d.Releases, r.Version))
}
