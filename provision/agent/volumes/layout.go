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
)

// checkLayout looks at every value before anything is touched.
func checkLayout(l wire.Layout) error {
	bad := func(what, value string) error {
		return errkind.New(errkind.Internal, "layout of the disks: %s %q is not usable", what, value)
	}
	roots := 0
	for _, v := range l.Volumes {
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
	switch {
	case !plainLabel.MatchString(v.Name), !plainLabel.MatchString(v.Label):
		return "label", v.Label
	case !plainGUID.MatchString(v.UUID), v.RAID >= 0 && !plainGUID.MatchString(v.Array):
		return "identifier", v.UUID
	case v.Use != wire.VolumeSwap && (!plainPath.MatchString(v.Mount) || path.Clean(v.Mount) != v.Mount):
		return "mount", v.Mount
	case !slices.Contains([]string{"ext4", "xfs", "swap"}, v.Filesystem):
		return "file system", v.Filesystem
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
