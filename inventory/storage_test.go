// SPDX-License-Identifier: Apache-2.0

package inventory

import "testing"

func TestWhole(t *testing.T) {
	t.Parallel()
	root := FileSystem{Name: "root", Size: 1 << 30}
	xfs := root
	xfs.Filesystem = "xfs"
	for _, c := range []struct {
		d    DiskLayout
		want bool
	}{
		{DiskLayout{RAID: -1, Root: root}, true},
		{DiskLayout{RAID: 0, Root: root}, false},
		{DiskLayout{RAID: 1, Root: root}, false},
		{DiskLayout{RAID: -1, Root: xfs}, false},
		{DiskLayout{RAID: -1, Root: root, Swap: 1}, false},
		{DiskLayout{RAID: -1, Root: root, Preserve: []string{"label:x"}}, false},
		{DiskLayout{RAID: -1, Root: root, Data: []FileSystem{{Name: "x"}}}, false},
	} {
		if c.d.Whole() != c.want {
			t.Errorf("%+v takes the image's disk: %v", c.d, !c.want)
		}
	}
}
