// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/inventory/language"
)

// checkDisks looks at the disk blocks of one hardware block: those that name one
// disk and count several, and pairs of which one takes in all that the other does.
func (l *loader) checkDisks(h *Hardware, b *language.Body) {
	bodies := b.Blocks("disk")
	for i, d := range h.Disks {
		for _, name := range []string{"serial", "wwn", "bay", "by_path"} {
			if d.Count > 1 && bodies[i].Given(name) {
				l.diags.Add("disk.serial", bodies[i].Range(name), "Name of one disk for several", fmt.Sprintf("Disk %q of hardware %q counts %d disks, and %s names one. Write a block for each, or leave %s out.", d.Name, h.Name, d.Count, name, name)).In(d.Decl)
			}
		}
		for _, other := range h.Disks[:i] {
			wide, narrow := other, d
			if !narrow.within(wide) {
				wide, narrow = d, other
			}
			if narrow.Rank() != wide.Rank() || !narrow.within(wide) {
				continue
			}
			l.diags.Add("disk.overlap", d.Decl, "Disks that fit two blocks",
				fmt.Sprintf("Every disk that fits disk %q of hardware %q fits disk %q too, and nothing says which is which. Give %q a size, a model or a slot (pci, bay, by_path) that the others have not.", narrow.Name, h.Name, wide.Name, wide.Name)).Also("the other block", other.Decl)
		}
	}
}

// within reports whether every disk that fits d fits w too.
func (d Disk) within(w Disk) bool {
	bus := w.Type == "" || w.Type == d.Type || isSCSI(w.Type) && isSCSI(d.Type)
	same := func(want, is string) bool { return want == "" || strings.EqualFold(want, is) }
	return bus && d.Size.Within(w.Size) && (w.Model == "" || d.Model != "" && strings.Contains(d.Model, w.Model)) && same(w.Serial, d.Serial) &&
		same(NormalWWN(w.WWN), NormalWWN(d.WWN)) && same(w.PCI, d.PCI) && same(w.Bay, d.Bay) && same(w.ByPath, d.ByPath)
}

// isSCSI reports whether disks of a type are told from others of these types by
// nothing that a ramdisk sees.
func isSCSI(kind string) bool { return kind == "sata" || kind == "sas" }

// checkInstallDisks looks at what says which very disk is installed on: for one
// node only, and where several disks fit, for each.
func (l *loader) checkInstallDisks() {
	users, named := map[*Hardware][]*Node{}, map[string]*Node{}
	type pair struct {
		h *Hardware
		d *DiskLayout
	}
	reported := map[pair]bool{}
	for _, n := range l.inv.Nodes {
		if n.InstallDisk != "" {
			if first := named[strings.ToLower(n.InstallDisk)]; first != nil {
				l.diags.Add("disk.serial", n.Ranges.InstallDisk, "Disk of two nodes", fmt.Sprintf("install_disk %q is of %s and of %s. A serial number is of one disk; compare both with what `lsblk -o NAME,SERIAL` says there.", n.InstallDisk, n.Name, first.Name)).Also("used first here", first.Ranges.InstallDisk).In(n.Decl)
			}
			named[strings.ToLower(n.InstallDisk)] = n
			if n.Disks == nil {
				l.diags.Add("disk.serial", n.Ranges.InstallDisk, "Disk of a node that is not installed", fmt.Sprintf("Node %q has install_disk and no disk layout: nothing is installed on that disk. Set disks in its role, or take install_disk out.", n.Name)).In(n.Decl)
			}
		}
		if n.Hardware == nil {
			continue
		}
		users[n.Hardware] = append(users[n.Hardware], n)
		if p := (pair{n.Hardware, n.Disks}); n.Disks != nil && n.InstallDisk == "" && !reported[p] {
			reported[p] = true
			l.checkAmbiguous(n)
		}
	}
	for _, h := range l.inv.Hardware {
		if nodes := users[h]; len(nodes) > 1 {
			l.checkShared(h, nodes)
		}
	}
}

// checkAmbiguous warns of a layout without RAID on a block of several disks. It is
// no error: of nodes that are installed already it is known on which, and what this
// ironrail does not plan must not keep it from showing a site that runs.
func (l *loader) checkAmbiguous(n *Node) {
	d, ok := n.Hardware.Disk(n.Disks.On)
	if !ok || d.Count <= 1 || n.Disks.RAID >= 0 {
		return
	}
	l.diags.Add("disk.ambiguous", l.place(n.Disks, "on"), "Layout on one of several equal disks",
		fmt.Sprintf("disk_layout %q is on disk %q, of which hardware %q has %d, and nothing says on which: no plan installs a node of which it is not known from an earlier install. Say where it is (pci, bay or by_path) in a disk block of its own with count = 1, or give each node install_disk, the serial number of its disk; node %q has none.", n.Disks.Name, d.Name, n.Hardware.Name, d.Count, n.Name)).
		Also("the disks", d.Decl).In(n.Disks.Decl).Warn()
}

// checkShared reports serial numbers and World Wide Names in a block of several nodes.
func (l *loader) checkShared(h *Hardware, nodes []*Node) {
	for i, d := range h.Disks {
		b := l.bodies[h].Blocks("disk")[i]
		for _, of := range [][2]string{{"serial", d.Serial}, {"wwn", d.WWN}} {
			name, is := of[0], of[1]
			if is == "" {
				continue
			}
			l.diags.Add("disk.serial", b.Range(name), "One disk in several nodes",
				fmt.Sprintf("Disk %q of hardware %q has a %s, and %d nodes are of that hardware, %s and %s among them: only one can have that disk. Write install_disk = %q in its node instead.", d.Name, h.Name, name, len(nodes), nodes[0].Name, nodes[1].Name, is)).
				Also("a node", nodes[0].Decl).In(d.Decl)
		}
	}
}

// Rank says which of several blocks a disk belongs to that fits more than one: the
// one that names it (2), then one that says where it is (1), then any.
func (d Disk) Rank() int {
	switch {
	case d.Identified():
		return 2
	case d.Placed():
		return 1
	}
	return 0
}
