// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
	"github.com/ironrail/ironrail/inventory/unit"
)

// volumeGroupName is what a volume group may be called: less than LVM takes, since its folder is
// /dev/NAME.
var volumeGroupName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]{0,30}$`)

// deviceNames begin what the kernel and udev call devices, in /dev, where a volume group
// has its folder.
var deviceNames = []string{
	"autofs", "block", "bsg", "btrfs", "bus", "char", "console", "core", "cpu", "cuse", "disk", "dm", "dri", "fb", "fd", "full", "fuse", "hd", "hpet", "hugepages", "hwrng", "infiniband", "initctl", "input", "ipmi",
	"kfd", "kmsg", "kvm", "log", "loop", "mapper", "mcelog", "md", "mem", "mqueue", "mst", "nbd", "net", "null", "nvidia", "nvme", "nvram", "port", "ppp", "ptmx", "ptp", "pts", "ram", "random", "rfkill", "rtc", "sd", "sg", "shm", "snapshot", "snd", "sr",
	"stderr", "stdin", "stdout", "tpm", "tty", "uhid", "uinput", "urandom", "usb", "userfaultfd", "vcs", "vd", "vfio", "vga_arbiter", "vhost", "watchdog", "xvd", "zero",
}

// reservedVolumes are what LVM calls volumes of its own by (lvm(8), VALID NAMES).
var reservedVolumes = []string{"_cdata", "_cmeta", "_corig", "_cpool", "_cvol", "_imeta", "_iorig", "_mimage", "_mlog", "_pmspare", "_rimage", "_rmeta", "_tdata", "_tmeta", "_vdata", "_vorigin", "_wcorig"}

// checkVolumeGroups looks at the volume groups of a layout, and at what says to be in one.
func (l *loader) checkVolumeGroups(d *DiskLayout, body *language.Body) {
	bodies := body.Blocks("volume_group")
	for i, g := range d.Groups {
		l.checkVolumeGroup(d, g, bodies[i].Named)
	}
	if r := body.Block("root"); r != nil && l.knowsGroup(d, r, d.Root) {
		if g, _ := d.Group(d.Root.Group); g.On != "" && g.On != d.On {
			l.diags.Add("disk.layout", r.Range("volume_group"), "Root on a disk that nothing starts", fmt.Sprintf("The root is in volume_group %q, which is on disk %q; the firmware starts the disks of the layout, %q. Leave on out of the volume group.", g.Name, g.On, d.On)).Also("the volume group", g.Decl).In(d.Decl)
		}
	}
	for i, b := range body.Blocks("data") {
		f := d.Data[i]
		if !l.knowsGroup(d, b, f) {
			continue
		}
		if b.Given("on") {
			l.diags.Add("disk.layout", b.Range("on"), "Disk of a volume in a group", fmt.Sprintf("data %q is where volume_group %q is. Leave on out here, and write it in the volume_group block.", f.Name, f.Group)).In(d.Decl)
		}
		reserved := slices.ContainsFunc(reservedVolumes, func(r string) bool { return strings.Contains(f.Name, r) }) || strings.HasPrefix(f.Name, "snapshot") || strings.HasPrefix(f.Name, "pvmove")
		if reserved || f.Name == "root" || f.Name == "swap" {
			l.diags.Add("disk.layout", b.Named, "Name that a logical volume cannot have", fmt.Sprintf("data %q is a logical volume of that name, which is one of LVM's or of the layout's own. Give it another name.", f.Name)).In(d.Decl)
		}
	}
}

// knowsGroup reports whether a file system is in a volume group of its layout.
func (l *loader) knowsGroup(d *DiskLayout, b *language.Body, f FileSystem) bool {
	if !b.Given("volume_group") {
		return false
	}
	_, ok := d.Group(f.Group)
	if !ok && b.Right("volume_group") {
		var known []string
		for _, g := range d.Groups {
			known = append(known, g.Name)
		}
		l.diags.Add("reference.unknown", b.Range("volume_group"), "Unknown volume group", fmt.Sprintf("disk_layout %q has no volume_group block %q.%s", d.Name, f.Group, diag.DidYouMean(f.Group, known))).In(d.Decl)
	}
	return ok
}

// checkVolumeGroup looks at one volume group.
func (l *loader) checkVolumeGroup(d *DiskLayout, g VolumeGroup, named hcl.Range) {
	taken := slices.ContainsFunc(deviceNames, func(n string) bool {
		rest, ok := strings.CutPrefix(g.Name, n)
		return ok && (strings.Trim(rest, "0123456789") == "" || len(n) == 2 && len(rest) < 3) // sda, but not sdata
	})
	switch {
	case !volumeGroupName.MatchString(g.Name):
		l.diags.Add("disk.layout", named, "Wrong name of a volume group", fmt.Sprintf("%q is no name for a volume group: it begins with a letter and has letters, digits and underscores, 31 at most.", g.Name)).In(d.Decl)
	case taken || g.Name == "root" || g.Name == "swap" || slices.ContainsFunc(d.Data, func(f FileSystem) bool { return f.Name == g.Name }):
		l.diags.Add("disk.layout", named, "Name of a volume group that is taken", fmt.Sprintf("A volume group has its folder in /dev and its array in /dev/md; %q is the name of a device, or of another part of the layout. Give it a name such as \"vg0\".", g.Name)).In(d.Decl)
	}
	l.checkGroupRoom(d, g, named)
}

// checkGroupRoom looks at what is in a volume group.
func (l *loader) checkGroupRoom(d *DiskLayout, g VolumeGroup, named hcl.Range) {
	var sum unit.Bytes
	used, open := false, false
	for _, f := range append([]FileSystem{d.Root}, d.Data...) {
		if f.Group == g.Name {
			used, open = true, open || f.Size == 0
			sum += f.Size
		}
	}
	switch {
	case !used:
		l.diags.Add("disk.layout", named, "Volume group without volumes", fmt.Sprintf("Nothing is in volume_group %q. Write volume_group = %q in root or in a data block, or take the block out.", g.Name, g.Name)).In(d.Decl)
	case g.Size > 0 && (sum > g.Size || open && sum == g.Size):
		l.diags.Add("disk.layout", g.Decl, "Volume group that is too small", fmt.Sprintf("volume_group %q has %s, and its volumes take %s. Give it more, or leave its size out where nothing comes after it on the disk.", g.Name, g.Size, sum)).In(d.Decl)
	}
}
