// SPDX-License-Identifier: Apache-2.0

package distribution

import "strings"

// Boot is how a system of a family starts: its kernels are /boot/vmlinuz-RELEASE, and
// the rest differs.
type Boot struct {
	// Initrd is the name in /boot of the initrd of a kernel; %s is its release.
	Initrd string
	// MakeInitrd is the program, run in the system, that makes the initrd of a kernel,
	// with drivers for any machine; %s is the release.
	MakeInitrd []string
	// KernelLink and InitrdLink lead to the newest kernel and its initrd, where the
	// packages of kernels keep such links; "": they do not.
	KernelLink, InitrdLink string
	// Settings are the files, with their content, that make them keep the links there.
	Settings map[string]string
	// Timers are units that would take locks and processor time on their own.
	Timers []string
}

// linked is that of dpkg's kernels (linux-update-symlinks(1), kernel-img.conf(5)).
var linked = Boot{
	Initrd:     "initrd.img-%s",
	MakeInitrd: []string{"update-initramfs", "-c", "-k", "%s"},
	KernelLink: "/vmlinuz", InitrdLink: "/initrd.img",
	Settings: map[string]string{"etc/kernel-img.conf": "do_symlinks = yes\nlink_in_boot = no\n"},
	Timers:   []string{"apt-daily.timer", "apt-daily-upgrade.timer"},
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
