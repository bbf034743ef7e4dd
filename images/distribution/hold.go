// SPDX-License-Identifier: Apache-2.0

package distribution

import "github.com/ironrail/ironrail/internal/wire"

// KernelPackages are the packages that are held so that the kernel stays as it is: those
// with a kernel or its modules, and those that lead to the newest one. Headers are none
// of them: those for another kernel do no harm, and driver stacks bring the right ones.
//
// They are the same whatever the image is, since an image of somebody else does not say
// what it is made of: names of one distribution match nothing in another.
func KernelPackages() *wire.KernelPackages {
	return &wire.KernelPackages{
		Dpkg: []string{
			"linux-image-*", "linux-modules-*", // Debian and Ubuntu
			"linux-generic*", "linux-virtual*", "linux-lowlatency*", "linux-nvidia*", // Ubuntu's metapackages, by flavour
			"linux-aws*", "linux-azure*", "linux-gcp*", "linux-oracle*", "linux-kvm*",
		},
		Dnf: []string{
			"kernel", "kernel-core", "kernel-modules*", "kernel-64k", "kernel-64k-core", "kernel-64k-modules*",
			"kernel-uek", "kernel-uek-core", "kernel-uek-modules*", // Oracle's
		},
	}
}
