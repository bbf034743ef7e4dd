// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
)

// checkDiskless looks at nodes that keep their system in memory: nothing is asked for that needs a
// disk, or that would take the memory away.
func (l *loader) checkDiskless() {
	reported := map[hcl.Range]bool{}
	add := func(n *Node, at hcl.Range, summary, format string, args ...any) {
		if at.Filename == "" {
			at = n.Decl
		}
		if reported[at] {
			return
		}
		reported[at] = true
		l.diags.Add("image.diskless", at, summary, fmt.Sprintf(format, args...)).Also("the image, which is kept in memory", n.Image.Decl).In(n.Decl)
	}
	for _, n := range l.inv.Nodes {
		if !n.Diskless() {
			continue
		}
		if n.Disks != nil {
			at := hcl.Range{}
			if n.Role != nil && n.Role.Disks == n.Disks {
				at = l.place(n.Role, "disks")
			}
			add(n, at, "Disk layout of a system in memory", "Image %q is kept in memory, and disk_layout %q would have node %q be written to disk. Take disks out of its role, or take an image of another kind.", n.Image.Name, n.Disks.Name, n.Name)
		}
		for _, d := range n.Drivers {
			if d.Kind == "doca" {
				add(n, d.Decl, "DOCA on a system in memory", "Driver %q replaces the modules that the NICs of node %q run with, which takes a restart: nothing is left of a system in memory. Take the driver out of its role, so that the kernel's own modules are used, or take an image of another kind.", d.Name, n.Name)
			}
		}
		if h := n.Hardware; h != nil && h.Kexec {
			add(n, l.place(h, "kexec"), "kexec of a system in memory", "Image %q of node %q runs under the kernel of the ramdisk: nothing is left to start by kexec. Take kexec out of hardware %q.", n.Image.Name, n.Name, h.Name)
		}
		if h := n.Hardware; h != nil && l.bodies[h] != nil && l.bodies[h].Given("boot_order") {
			add(n, l.place(h, "boot_order"), "Boot order of a node without a system on disk", "Node %q boots from the network each time, which its BMC is asked for. Take boot_order out of hardware %q.", n.Name, h.Name)
		}
	}
}
