// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"
)

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

// TestStorage: an image is another one only for layouts that are made.
func TestStorage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level int
		want  string
	}{{-1, "tree xfs"}, {0, ""}, {1, "raid tree xfs"}, {5, ""}, {10, "raid tree xfs"}} {
		d := DiskLayout{RAID: c.level, Root: FileSystem{Name: "root", Filesystem: "xfs"}}
		if got := strings.Join(d.Storage(), " "); got != c.want {
			t.Errorf("RAID %d needs %q, want %q", c.level, got, c.want)
		}
	}
	node := func(retired bool) *Node {
		return &Node{Name: "n1", Image: &Image{}, Retired: retired, Disks: &DiskLayout{RAID: 1}}
	}
	for _, retired := range []bool{false, true} {
		inv := Inventory{Nodes: []*Node{node(retired)}}
		if inv.setNeeds(); (len(inv.Nodes[0].Image.Storage) > 0) == retired {
			t.Errorf("retired %v: %v", retired, inv.Nodes[0].Image.Storage)
		}
	}
}

func TestSystemPart(t *testing.T) {
	t.Parallel()
	for mount, want := range map[string]string{"/usr/local": "/usr", "/etc": "/etc", "/boot/efi": "/boot", "/var": "/var", "/var/lib": "/var/lib", "/": "/", "/user": "", "/var/lib/docker": "", "/srv": "", "/home": "", "/tmp": ""} {
		if got := systemPart(mount); got != want {
			t.Errorf("%s is of %q, want %q", mount, got, want)
		}
	}
}

// TestTaggedImages: an image brings an iPXE that tags where one of its nodes boots on a VLAN.
func TestTaggedImages(t *testing.T) {
	t.Parallel()
	hw := &Hardware{NICs: []NIC{{Name: "mgmt", Boot: true, Ports: []NICPort{{}}}}}
	tagged, plain := &Image{}, &Image{}
	on, off := &Network{VLAN: 20}, &Network{}
	inv := &Inventory{Nodes: []*Node{{Image: tagged, Hardware: hw, BootNetwork: off}, {Image: tagged, Hardware: hw, BootNetwork: on}, {Image: plain, Hardware: hw, BootNetwork: off}, {Image: plain}}}
	inv.setNeeds()
	if !tagged.Tagged || plain.Tagged {
		t.Errorf("tagged %v, plain %v", tagged.Tagged, plain.Tagged)
	}
}

// TestSecureBootOfImages: an image is made for Secure Boot where one of its nodes has it.
func TestSecureBootOfImages(t *testing.T) {
	t.Parallel()
	plain, secure := &Hardware{}, &Hardware{SecureBoot: true}
	shared, other, left := &Image{}, &Image{}, &Image{}
	inv := &Inventory{Nodes: []*Node{
		{Image: shared, Hardware: secure}, {Image: shared, Hardware: plain}, {Image: other, Hardware: plain}, {Image: other},
		{Image: left, Hardware: secure, Retired: true}, {Hardware: secure},
	}}
	inv.setNeeds()
	if !shared.SecureBoot || other.SecureBoot || left.SecureBoot {
		t.Errorf("shared %v, without %v, of a retired node %v", shared.SecureBoot, other.SecureBoot, left.SecureBoot)
	}
}
