// SPDX-License-Identifier: Apache-2.0

package distribution

import (
	"path"
	"slices"
	"strings"
)

// Boot is how a system of a family starts: its kernels are /boot/vmlinuz-RELEASE, and
// the rest differs.
type Boot struct {
	// Initrd is the name in /boot of the initrd of a kernel; %s is its release.
	Initrd string
	// MakeInitrd is the program, run in the system, that makes the initrd of a kernel,
	// with drivers for any machine; %s is the release.
	MakeInitrd []string
	// RemakeInitrds is the program, run on a node, that makes the initrds of all its kernels
	// anew, by what is configured there.
	RemakeInitrds []string
	// Omit is what keeps modules out of initrds, where settings of modprobe alone do not; nil:
	// they do.
	Omit *Omission
	// KernelLink and InitrdLink lead to the newest kernel and its initrd, where the
	// packages of kernels keep such links; "": they do not.
	KernelLink, InitrdLink string
	// Settings are the files, with their content, that make them keep the links there.
	Settings map[string]string
	// Timers are units that would take locks and processor time on their own.
	Timers []string
	// Loader is GRUB of the family's own packages, which starts kernels by entries of the
	// Boot Loader Specification; nil: the controller's GRUB is taken, which has no command
	// for them, and starts the links.
	Loader *Loader
}

// Omission is a file of settings that keeps modules out of initrds.
type Omission struct {
	File string // %s is a name of whoever writes it
	Line string // %s is the modules, with spaces between them
}

// Loader is GRUB as packages of a family have it, with names below the root.
type Loader struct {
	Folder string // with its menu grub.cfg and its variables grubenv
	Make   string // program, run in the system, that makes an image of it
	BIOS   string // folder with its modules and its boot.img for BIOS
	EFI    string // folder with a folder for each vendor: shim, MokManager and GRUB, signed
}

// Menu is the menu of GRUB below the root.
func (l *Loader) Menu() string { return l.Folder + "/grub.cfg" }

// entries is that of RHEL and its rebuilds: kernel-install(8) puts kernels, initrds and entries
// into /boot, by the plugins of dracut and grub2-common. dnf-makecache.timer takes dnf's lock.
var entries = Boot{
	Initrd:     "initramfs-%s.img",
	MakeInitrd: []string{"dracut", "--force", "--no-hostonly", "--kver", "%s"},
	// Without --hostonly dracut takes no file of /etc/modprobe.d along (dracut 057, 90kernel-modules).
	RemakeInitrds: []string{"dracut", "--regenerate-all", "--force"}, Omit: &Omission{"/etc/dracut.conf.d/ironrail-%s.conf", "omit_drivers+=\" %s \""},
	Timers: []string{"dnf-makecache.timer"},
	Loader: &Loader{Folder: "boot/grub2", Make: "grub2-mkimage", BIOS: "usr/lib/grub/i386-pc", EFI: "boot/efi/EFI"},
}

// linked is that of dpkg's kernels (linux-update-symlinks(1), kernel-img.conf(5)).
var linked = Boot{
	Initrd:     "initrd.img-%s",
	MakeInitrd: []string{"update-initramfs", "-c", "-k", "%s"}, RemakeInitrds: []string{"update-initramfs", "-u", "-k", "all"},
	KernelLink: "/vmlinuz", InitrdLink: "/initrd.img",
	Settings: map[string]string{"etc/kernel-img.conf": "do_symlinks = yes\nlink_in_boot = no\n"},
	Timers:   []string{"apt-daily.timer", "apt-daily-upgrade.timer"},
}

// linkedInBoot is that of Ubuntu, whose kernels keep their links in /boot where nothing says
// otherwise: listings of systems of 24.04 with kernels 6.8 and 6.17 have /boot/vmlinuz ->
// vmlinuz-RELEASE, and no kernel-img.conf. Written out, it holds for Debian's linux-base too.
// What Ubuntu reads and reports on its own is off beside apt's timers: motd-news asks a
// server of Canonical's (base-files), apt-news and esm-cache those of Ubuntu Pro
// (ubuntu-pro-client), update-notifier-download fetches firmware and fonts.
var linkedInBoot = Boot{
	Initrd:     linked.Initrd,
	MakeInitrd: linked.MakeInitrd, RemakeInitrds: linked.RemakeInitrds,
	KernelLink: "/boot/vmlinuz", InitrdLink: "/boot/initrd.img",
	Settings: map[string]string{"etc/kernel-img.conf": "do_symlinks = yes\nlink_in_boot = yes\n"},
	Timers: append(slices.Clone(linked.Timers), "motd-news.timer", "apt-news.service", "esm-cache.service", "ua-timer.timer",
		"update-notifier-download.timer", "update-notifier-motd.timer"),
}

// Links are the links to a kernel and its initrd, by name below the root, with where they
// lead from the folder that they are in; none where the family keeps none.
func (b Boot) Links(release string) map[string]string {
	links := map[string]string{}
	for link, to := range map[string]string{b.KernelLink: b.KernelFile(release), b.InitrdLink: b.InitrdFile(release)} {
		if link == "" {
			continue
		}
		link = strings.TrimPrefix(link, "/")
		if path.Dir(link) == path.Dir(to) {
			to = path.Base(to)
		}
		links[link] = to
	}
	return links
}

// KernelFile is the path of a kernel below the root.
func (b Boot) KernelFile(release string) string { return "boot/vmlinuz-" + release }

// InitrdFile is the path of the initrd of a kernel below the root.
func (b Boot) InitrdFile(release string) string {
	return "boot/" + strings.ReplaceAll(b.Initrd, "%s", release)
}

// InitrdCommand is the argument vector that makes the initrd of a kernel.
func (b Boot) InitrdCommand(release string) (argv []string) {
	for _, a := range b.MakeInitrd {
		argv = append(argv, strings.ReplaceAll(a, "%s", release))
	}
	return argv
}
