// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
)

func TestWithout(t *testing.T) {
	t.Parallel()
	spare := []span{{10, 20}, {30, 40}}
	for _, c := range []struct {
		in   span
		want []span
	}{
		{span{0, 5}, []span{{0, 5}}}, {span{0, 50}, []span{{0, 10}, {20, 30}, {40, 50}}}, {span{12, 18}, nil}, {span{15, 35}, []span{{20, 30}}}, {span{20, 30}, []span{{20, 30}}}, {span{5, 5}, nil},
	} {
		if got := without(c.in, spare); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
	}
}

func TestLabelled(t *testing.T) {
	t.Parallel()
	all := []kept{
		{disk: 0, content: content{label: "scratch", uuid: "u", array: "a"}}, {disk: 1, content: content{array: "a"}}, {disk: 2, content: content{label: "", array: "b"}},
		{disk: 3, content: content{label: "other"}}, {disk: 4},
	}
	got := fmt.Sprint(labelled(all, "scratch"))
	if want := fmt.Sprint([]kept{{disk: 0, content: content{label: "scratch", uuid: "u", array: "a"}}, {disk: 1, content: content{label: "scratch", uuid: "u", array: "a"}}}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The members of an array of which only the first has the header are encrypted as that one is.
func TestSameEncryption(t *testing.T) {
	t.Parallel()
	for _, luks := range []bool{false, true} {
		all := labelled([]kept{{disk: 0, content: content{label: "scratch", uuid: "u", array: "a", luks: luks}}, {disk: 1, content: content{array: "a"}}}, "scratch")
		j := &job{layout: wire.Layout{Disks: make([]wire.LayoutDisk, 2)}}
		for _, encryption := range []string{"", wire.EncryptionTPM2} {
			err := j.sameEncryption(wire.Volume{Label: "scratch", Encryption: encryption}, all)
			if want := luks != (encryption != ""); len(all) != 2 || want != (errkind.Of(err) == errkind.Refused) || want != (err != nil) {
				t.Errorf("LUKS %v, encryption %q: %v", luks, encryption, err)
			}
		}
	}
}

// inGroup puts the root of a layout into a volume group on its array.
func inGroup(l *wire.Layout) {
	group := l.Volumes[0]
	group.Use, group.Name, group.Filesystem, group.Label, group.Mount = wire.VolumeGroup, "vg0", "lvm", "", ""
	root := l.Volumes[0]
	root.RAID, root.Array, root.Members, root.Group = -1, "", nil, "vg0"
	l.Volumes = []wire.Volume{group, root}
}

func TestCheckLayoutRefuses(t *testing.T) {
	t.Parallel()
	good := func() wire.Layout {
		return wire.Layout{
			Disks:   []wire.LayoutDisk{{Disk: wire.Disk{Path: "/dev/vda"}, Partitions: []wire.LayoutPartition{{Number: 3}}}, {Disk: wire.Disk{Path: "/dev/vdb"}, Partitions: []wire.LayoutPartition{{Number: 3}}}},
			Volumes: []wire.Volume{{Use: wire.VolumeRoot, Name: "root", Label: "ironrail-os", Filesystem: "xfs", Mount: "/", RAID: 1, UUID: guid(1, 1), Array: guid(1, 2), Members: []wire.Member{{Disk: 0, Partition: 3}, {Disk: 1, Partition: 3}}}},
		}
	}
	grouped := good()
	inGroup(&grouped)
	if err := errors.Join(checkLayout(good()), checkLayout(grouped)); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*wire.Layout){
		"option as a label": func(l *wire.Layout) { l.Volumes[0].Label = "-f" },
		"label with a path": func(l *wire.Layout) { l.Volumes[0].Label = "a/b" },
		"identifier":        func(l *wire.Layout) { l.Volumes[0].UUID = "x" },
		"no array":          func(l *wire.Layout) { l.Volumes[0].Array = "" },
		"way out":           func(l *wire.Layout) { l.Volumes[0].Mount = "/../etc" },
		"relative":          func(l *wire.Layout) { l.Volumes[0].Mount = "srv" },
		"file system":       func(l *wire.Layout) { l.Volumes[0].Filesystem = "btrfs" },
		"level":             func(l *wire.Layout) { l.Volumes[0].RAID = 0 },
		"no member":         func(l *wire.Layout) { l.Volumes[0].Members = nil },
		"foreign member":    func(l *wire.Layout) { l.Volumes[0].Members[1].Disk = 2 },
		"no partition":      func(l *wire.Layout) { l.Volumes[0].Members[1].Partition = 4 },
		"no root":           func(l *wire.Layout) { l.Volumes[0].Use = wire.VolumeData },
		"group of no name":  func(l *wire.Layout) { l.Volumes = append(l.Volumes, wire.Volume{Use: wire.VolumeGroup, Name: "-f"}) },
		"no such group":     func(l *wire.Layout) { l.Volumes[0].Group, l.Volumes[0].RAID, l.Volumes[0].Members = "vg0", -1, nil },
		"group and members": func(l *wire.Layout) { inGroup(l); l.Volumes[1].Members = l.Volumes[0].Members },
		"half an extent":    func(l *wire.Layout) { inGroup(l); l.Volumes[1].Size = 1 << 20 },
		"swap in a group":   func(l *wire.Layout) { inGroup(l); l.Volumes[1].Use = wire.VolumeSwap },
		"two take the rest": func(l *wire.Layout) {
			inGroup(l)
			l.Volumes = append(l.Volumes, wire.Volume{Use: wire.VolumeData, Name: "x", Label: "x", Filesystem: "xfs", Mount: "/x", RAID: -1, UUID: guid(1, 1), Group: "vg0"})
		},
		"one disk twice": func(l *wire.Layout) { l.Disks[1].Disk.Path = "/dev/vda" },
	} {
		l := good()
		change(&l)
		if err := checkLayout(l); errkind.Of(err) != errkind.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStarts: a BIOS starts no disk with sectors of 4096 bytes; one with data may have them.
func TestStarts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sector       int
		bios, system bool
		want         bool
	}{{512, true, true, true}, {4096, true, true, false}, {4096, false, true, true}, {4096, true, false, true}, {520, false, false, false}} {
		j := job{Maker: Maker{BIOS: c.bios}}
		if err := j.starts(wire.LayoutDisk{System: c.system}, c.sector); (err == nil) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
