// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"path"
	"slices"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/wire"
)

// What a layout may hold that ends up in arguments and files.
var (
	plainLabel = lazyregexp.New(`^[A-Za-z0-9_.][A-Za-z0-9_.-]{0,15}$`)
	plainGUID  = lazyregexp.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	plainPath  = lazyregexp.New(`^/[A-Za-z0-9_./-]*$`)
	plainGroup = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_]{0,30}$`)
)

// checkLayout looks at every value before anything is touched.
func checkLayout(l wire.Layout) error {
	bad := func(what, value string) error {
		return errkind.New(errkind.Internal, "layout of the disks: %s %q is not usable", what, value)
	}
	roots := 0
	for i, v := range l.Volumes {
		if what, value := checkGroup(l.Volumes[:i], v); what != "" {
			return bad(what, value)
		}
		if what, value := checkVolume(l, v); what != "" {
			return bad(what, value)
		}
		if v.Use == wire.VolumeRoot {
			roots++
		}
	}
	if roots != 1 {
		return bad("root", "")
	}
	seen := map[string]bool{}
	for _, d := range l.Disks {
		if d.Disk.Path == "" || seen[d.Disk.Path] {
			return bad("disk", d.Disk.Path)
		}
		seen[d.Disk.Path] = true
	}
	return nil
}

// checkVolume says what of a volume is not usable, and its value; "" where all is.
func checkVolume(l wire.Layout, v wire.Volume) (what, value string) {
	if v.Use != wire.VolumeGroup {
		if what, value := checkFileSystem(v); what != "" {
			return what, value
		}
	}
	switch {
	case !plainGUID.MatchString(v.UUID), v.RAID >= 0 && !plainGUID.MatchString(v.Array):
		return "identifier", v.UUID
	case v.Group != "":
		return "", "" // it has no members, see checkGroup
	case !slices.Contains([]int{-1, 1, 10}, v.RAID), len(v.Members) == 0, v.RAID < 0 && len(v.Members) != 1:
		return "array", v.Name
	}
	for _, m := range v.Members {
		if m.Disk < 0 || m.Disk >= len(l.Disks) || !slices.ContainsFunc(l.Disks[m.Disk].Partitions, func(p wire.LayoutPartition) bool { return p.Number == m.Partition }) {
			return "member of", v.Name
		}
	}
	return "", ""
}

// checkFileSystem says what of a file system, or swap, is not usable.
func checkFileSystem(v wire.Volume) (what, value string) {
	switch {
	case !plainLabel.MatchString(v.Name), !plainLabel.MatchString(v.Label):
		return "label", v.Label
	case v.Use != wire.VolumeSwap && (!plainPath.MatchString(v.Mount) || path.Clean(v.Mount) != v.Mount):
		return "mount", v.Mount
	case !slices.Contains([]string{"ext4", "xfs", "swap"}, v.Filesystem):
		return "file system", v.Filesystem
	case v.Encryption != "" && (v.Encryption != wire.EncryptionTPM2 || v.Use != wire.VolumeData):
		return "encryption", v.Encryption
	}
	return "", ""
}

// checkGroup says what of a volume group or a logical volume is not usable. before are the
// volumes before it, of which its group is one.
func checkGroup(before []wire.Volume, v wire.Volume) (what, value string) {
	switch {
	case v.Use == wire.VolumeGroup && (!plainGroup.MatchString(v.Name) || groupOf(before, v.Name) >= 0):
		return "volume group", v.Name
	case v.Group == "":
		return "", ""
	case v.Use != wire.VolumeRoot && v.Use != wire.VolumeData, v.RAID >= 0, len(v.Members) > 0, v.Size < 0, v.Size%wire.ExtentSize != 0:
		return "logical volume", v.Name
	case groupOf(before, v.Group) < 0, slices.ContainsFunc(before, func(b wire.Volume) bool { return b.Group == v.Group && (b.Name == v.Name || b.Size == 0) }):
		return "place in a volume group of", v.Name
	}
	return "", ""
}

// groupOf is the index of a volume group; -1 where there is none of the name.
func groupOf(all []wire.Volume, name string) int {
	return slices.IndexFunc(all, func(v wire.Volume) bool { return v.Use == wire.VolumeGroup && v.Name == name })
}

// clone copies a layout, so that what is kept can be entered.
func clone(l wire.Layout) wire.Layout {
	l.Disks, l.Volumes = slices.Clone(l.Disks), slices.Clone(l.Volumes)
	for i := range l.Disks {
		l.Disks[i].Partitions = slices.Clone(l.Disks[i].Partitions)
	}
	return l
}

// partition is an entry of a table with sectors of a size.
func partition(p wire.LayoutPartition, sector int64) gpt.Partition {
	return gpt.Partition{Number: p.Number, Type: p.Type, GUID: p.GUID, Name: p.Name, First: uint64(p.Start / sector), Last: uint64((p.Start+p.Size)/sector) - 1, Sector: sector}
}
