// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// checkLayout compares a disk layout with a hardware block whose nodes have it.
func (l *loader) checkLayout(h *Hardware, d *DiskLayout) {
	disk, ok := h.Disk(d.On)
	if !ok {
		l.unknownDisk(h, d, d.On, l.place(d, "on"))
		return
	}
	need := map[int]int{0: 2, 1: 2, 4: 3, 5: 3, 6: 4, 10: 4}
	switch least, known := need[d.RAID]; {
	case d.RAID >= 0 && !known:
		l.diags.Add("disk.raid", l.place(d, "raid"), "Unknown RAID level", fmt.Sprintf("There is no RAID level %d; 0, 1, 4, 5, 6 and 10 can be built.", d.RAID)).In(d.Decl)
	case disk.Count < least:
		l.diags.Add("disk.raid", l.place(d, "raid"), "Too few disks for the RAID", fmt.Sprintf("RAID %d needs %d disks; %q of hardware %q has %d.", d.RAID, least, d.On, h.Name, disk.Count)).Also("the disks", disk.Decl).In(d.Decl)
	}
	l.checkEncryption(h, d)
	for _, b := range slices.Concat(l.bodies[d].Blocks("volume_group"), l.bodies[d].Blocks("data")) {
		if !b.Given("on") {
			continue
		}
		at, on := b.Range("on"), language.Get[string](b, "on")
		switch other, ok := h.Disk(on); {
		case !ok:
			l.unknownDisk(h, d, on, at)
		case on != d.On && other.Count != 1:
			l.diags.Add("disk.layout", at, "Data on one of several disks", fmt.Sprintf("%s %q is on disk %q, of which hardware %q has %d, and nothing says on which. Write a disk block with count = 1 for it, which says where it is (pci, bay or by_path).", b.Type, b.Name, on, h.Name, other.Count)).Also("the disks", other.Decl).In(d.Decl)
		}
	}
}

// checkEncryption looks whether hardware can unlock the encrypted file systems of a layout: by
// PCR 7 of its TPM 2.0, as a boot from disk by UEFI leaves it.
func (l *loader) checkEncryption(h *Hardware, d *DiskLayout) {
	for i, b := range l.bodies[d].Blocks("data") {
		if d.Data[i].Encryption == "" {
			continue
		}
		refuse := func(summary, format string, args ...any) {
			l.diags.Add("disk.encryption", b.Range("encryption"), summary, fmt.Sprintf("data %q is encrypted, ", b.Name)+fmt.Sprintf(format, args...)).Also("the hardware", h.Decl).In(d.Decl)
		}
		if h.TPM != "2.0" {
			refuse("Encryption without a TPM 2.0", "and the TPM of its node unlocks it; hardware %q does not say tpm = \"2.0\".", h.Name)
		}
		if h.Boot == BootBIOS {
			refuse("Encryption on a BIOS", "and bound to PCR 7 of the TPM, which UEFI firmware measures; hardware %q says boot = \"bios\".", h.Name)
		}
		if h.Kexec {
			refuse("Encryption on a node that kexec starts", "and bound to PCR 7 of the TPM; hardware %q says kexec = true, and after kexec PCR 7 is that of the network boot. Remove kexec.", h.Name)
		}
	}
}

func (l *loader) unknownDisk(h *Hardware, d *DiskLayout, name string, at hcl.Range) {
	var known []string
	for _, x := range h.Disks {
		known = append(known, x.Name)
	}
	l.diags.Add("reference.unknown", at, "Unknown disk", fmt.Sprintf("Hardware %q has no disk block %q.%s", h.Name, name, diag.DidYouMean(name, known))).Also("the hardware", h.Decl).In(d.Decl)
}

// setNeeds enters into the images what their nodes need in them: of disk layouts, and
// signed loaders, and an iPXE that tags.
func (inv *Inventory) setNeeds() {
	for _, n := range inv.Nodes {
		if n.Image == nil || n.Retired {
			continue
		}
		n.Image.SecureBoot = n.Image.SecureBoot || n.Hardware != nil && n.Hardware.SecureBoot
		if _, tagged := n.BootVLAN(); tagged {
			n.Image.Tagged = true
		}
		if n.Disks == nil {
			continue
		}
		all := append(slices.Clone(n.Image.Storage), n.Disks.Storage()...)
		slices.Sort(all)
		n.Image.Storage = slices.Compact(all)
	}
}

// The longest labels of file systems, in bytes: mkfs.xfs(8), mke2fs(8).
const (
	longestXFS  = 12
	longestExt4 = 16
)

// checkVolumes looks at what the file systems of a layout are given: a label that fits,
// a place in the tree for each, and on each disk and in each volume group one at most that
// takes the rest, the last.
func (l *loader) checkVolumes(d *DiskLayout, body *language.Body) {
	mounts := map[string]hcl.Range{"/": d.Root.Decl}
	rest := restOf{l: l, d: d, taken: map[string]FileSystem{}}
	rest.add("root", d.Root)
	for i, b := range body.Blocks("data") {
		f := d.Data[i]
		longest := longestExt4
		if f.Filesystem == "xfs" {
			longest = longestXFS
		}
		if len(f.Name) > longest {
			l.diags.Add("disk.layout", b.Named, "Label that is too long", fmt.Sprintf("The name of a data block is the label of its file system; that of %s has %d characters at most, and %q has %d.", f.Filesystem, longest, f.Name, len(f.Name))).In(d.Decl)
		}
		if strings.HasPrefix(f.Name, ownLabels) {
			l.diags.Add("disk.layout", b.Named, "Label of ironrail's own", fmt.Sprintf("Labels that begin with %q are those of the root file system. Give data %q another name.", ownLabels, f.Name)).In(d.Decl)
		}
		if part := systemPart(f.Mount); part != "" {
			l.diags.Add("disk.layout", b.Range("mount"), "Data where the system is", fmt.Sprintf("data %q is mounted at %s: %s belongs to the root file system, without which nothing mounts data disks. Mount it elsewhere, such as below /srv, /home or /var/lib/NAME.", f.Name, f.Mount, part)).In(d.Decl)
		}
		if first, taken := mounts[f.Mount]; taken && f.Mount != "" {
			l.diags.Add("disk.layout", b.Range("mount"), "Two file systems in one place", fmt.Sprintf("data %q is mounted at %s, where another file system of the layout is.", f.Name, f.Mount)).Also("the other one", first).In(d.Decl)
		}
		mounts[f.Mount] = f.Decl
		rest.add("data", f)
	}
}

// checkBelowEncrypted finds data that would be mounted before the encrypted data that it lies in,
// and be hidden by it.
func (l *loader) checkBelowEncrypted(d *DiskLayout, body *language.Body) {
	for i, b := range body.Blocks("data") {
		for _, e := range d.Encrypted() {
			if f := d.Data[i]; f.Encryption == "" && e.Mount != "" && strings.HasPrefix(f.Mount, e.Mount+"/") {
				l.diags.Add("disk.encryption", b.Range("mount"), "Data below encrypted data", fmt.Sprintf("data %q is mounted at %s, below encrypted data %q at %s, which is mounted after it and would hide it. Encrypt both, or mount it elsewhere.", f.Name, f.Mount, e.Name, e.Mount)).Also("the encrypted data", e.Decl).In(d.Decl)
			}
		}
	}
}

// restOf finds what comes after a file system, or a volume group, that takes the rest.
type restOf struct {
	l     *loader
	d     *DiskLayout
	taken map[string]FileSystem // by disk block, "" for the layout's own disks, and by volume group
}

// add enters a file system, and its volume group before the first that is in it.
func (r restOf) add(block string, f FileSystem) {
	g, ok := r.d.Group(f.Group)
	disk := f.On
	if ok {
		disk = g.On
	}
	if disk == r.d.On {
		disk = ""
	}
	if !ok {
		r.enter(disk, "the disk", block, f)
		return
	}
	entered := "entered/" + g.Name
	if _, known := r.taken[entered]; !known {
		r.taken[entered] = f
		r.enter(disk, "the disk", "volume_group", FileSystem{Name: g.Name, Size: g.Size, Decl: g.Decl})
	}
	r.enter("group/"+g.Name, "volume_group "+g.Name, block, f)
}

func (r restOf) enter(key, where, block string, f FileSystem) {
	name := fmt.Sprintf("%s %q", block, f.Name)
	if before, taken := r.taken[key]; taken {
		r.l.diags.Add("disk.layout", f.Decl, "No room is left", fmt.Sprintf("%s comes after %q, which has no size and takes the rest of %s. Give %q a size.", name, before.Name, where, before.Name)).Also("that one", before.Decl).In(r.d.Decl)
	}
	if f.Size == 0 {
		r.taken[key] = f
	}
}

// ownLabels begins the labels of root file systems that ironrail makes.
const ownLabels = "ironrail-"

// systemPart returns the folder of the system that a mount would cover or lie in; "":
// none. Data are mounted late and may be missing, so that nothing that boots a node, or
// that a package manager writes, may lie on them.
func systemPart(mount string) string {
	for _, whole := range []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin", "/sys", "/usr"} {
		if mount == whole || strings.HasPrefix(mount, whole+"/") {
			return whole
		}
	}
	switch mount = path.Clean(mount); mount {
	case "/", "/var", "/var/cache", "/var/lib", "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/systemd", "/var/log", "/var/spool":
		return mount
	}
	return ""
}
