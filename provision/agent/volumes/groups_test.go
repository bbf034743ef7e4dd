// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// groupRoom is room with its root, one data file system that is preserved and another one
// in a volume group on the first disk.
func groupRoom(t *testing.T) (*loops, Maker, wire.Layout) {
	t.Helper()
	peertest.Need(t, "pvcreate")
	node, m, l := room(t)
	l.Disks[0].Partitions[3] = part(0, 4, gpt.LinuxLVM, "group-vg0", 98, 140)
	l.Disks[1].Partitions = nil
	for i, size := range []int64{250 * mib, 20 * mib} {
		l.Disks[i].Disk.Size = size
		must(t, os.Truncate(l.Disks[i].Disk.Path, size))
	}
	vol := func(use wire.VolumeUse, name, mount string, size int64) wire.Volume {
		return wire.Volume{Use: use, Name: name, Label: name, Filesystem: "ext4", Mount: mount, RAID: -1, UUID: guid(8, len(name)), Group: "vg0", Size: size * mib}
	}
	l.Volumes = []wire.Volume{l.Volumes[0], {Use: wire.VolumeGroup, Name: "vg0", Filesystem: "lvm", RAID: -1, UUID: guid(7, 7), Members: []wire.Member{{Disk: 0, Partition: 4}}},
		vol(wire.VolumeData, "scratch", "/scratch", 20), vol(wire.VolumeRoot, "root", "/", 60), vol(wire.VolumeData, "srv-1", "/srv", 0)}
	l.Volumes[2].Keep = true
	return node, m, l
}

// The volumes of groupRoom.
const (
	scratchVolume = 2
	rootVolume    = 3
	srvVolume     = 4
)

// TestPeerGroup makes a root and data in a volume group, and makes them again with another
// image: what is preserved stays, the rest does not.
func TestPeerGroup(t *testing.T) {
	node, m, l := groupRoom(t)
	first, already, err := m.Run(t.Context(), l, "n1/a/write", "sha256:1", image(t, "one"))
	if err != nil || already {
		t.Fatalf("%v, already %v", err, already)
	}
	if text := probe(t, l, 0); !strings.Contains(text, "p4 LVM physical volume") {
		t.Errorf("the first disk has %q", text)
	}
	if !has(t, node, first, rootVolume, "one") || has(t, node, first, rootVolume, "srv/of-image") || !has(t, node, first, srvVolume, "of-image") {
		t.Error("the files are not where they belong")
	}
	must(t, Root(t.Context(), node, first, func(r rootfs.Root) error {
		if !rootfs.Exists(r, "one") {
			t.Error("the root that is configured is another one")
		}
		return nil
	}))
	look(t, node, first, scratchVolume, func(r rootfs.Root) { must(t, rootfs.WriteText(r, "precious", "data", 0o600)) })
	allow(l)
	l.Volumes[scratchVolume].UUID, l.Preserve = guid(9, 9), []string{"scratch"}
	second, already, err := m.Run(t.Context(), l, "n1/b/write", "sha256:2", image(t, "two"))
	if err != nil || already || !second.Volumes[scratchVolume].Kept || !second.Volumes[1].Kept || second.Volumes[scratchVolume].UUID != first.Volumes[scratchVolume].UUID {
		t.Fatalf("%v, already %v, %+v", err, already, second.Volumes)
	}
	if !has(t, node, second, rootVolume, "two") || has(t, node, second, rootVolume, "one") || !has(t, node, second, scratchVolume, "precious") {
		t.Error("the second image and the preserved file are not there")
	}
	third, already, err := m.Run(t.Context(), l, "n1/b/write", "sha256:2", image(t, "two"))
	if err != nil || !already || third.Volumes[scratchVolume].UUID != first.Volumes[scratchVolume].UUID || !third.Volumes[1].Kept {
		t.Errorf("the second write again: %v, already %v, %+v", err, already, third.Volumes)
	}
	l.Volumes[scratchVolume].Keep, l.Preserve = false, nil
	if is, _, err := m.Run(t.Context(), l, "n1/c/write", "sha256:2", image(t, "two")); err != nil || has(t, node, is, scratchVolume, "precious") {
		t.Errorf("nothing preserved: %v", err)
	}
}

// TestPeerGroupCutOff cuts a reinstall off at each call; the next run ends it, and what is
// preserved is there.
func TestPeerGroupCutOff(t *testing.T) {
	node, m, l := groupRoom(t)
	_, _, err := m.Run(t.Context(), l, "n1/0/write", "sha256:0", image(t, "zero"))
	must(t, err)
	look(t, node, l, scratchVolume, func(r rootfs.Root) { must(t, rootfs.WriteText(r, "precious", "data", 0o600)) })
	allow(l)
	l.Preserve = []string{"scratch"}
	step := 1
	if testing.Short() {
		step = 5
	}
	for at := 1; ; at += step {
		key := fmt.Sprintf("n1/%d/write", at)
		node.calls, node.fail = 0, at
		_, _, err := m.Run(t.Context(), l, key, "sha256:1", image(t, "one"))
		if err == nil {
			if at < 14 {
				t.Errorf("only %d calls", at)
			}
			break
		}
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		node.calls, node.fail = 0, 0
		is, already, err := m.Run(t.Context(), l, key, "sha256:1", image(t, "one"))
		if err != nil || already || !is.Volumes[scratchVolume].Kept || !has(t, node, is, rootVolume, "one") || !has(t, node, is, scratchVolume, "precious") {
			t.Errorf("cut off at call %d: %v, already %v", at, err, already)
		}
	}
}

// TestPeerGroupRefuses: what cannot stay, or could not be distinguished, is a refusal, and
// no byte is changed.
func TestPeerGroupRefuses(t *testing.T) {
	node, m, l := groupRoom(t)
	_, _, err := m.Run(t.Context(), l, "n1/0/write", "sha256:0", image(t, "zero"))
	must(t, err)
	allow(l)
	l.Preserve = []string{"scratch"}
	before := sums(t, l)
	for want, change := range map[string]func(*wire.Layout){
		"has the name of one on /dev/sdz2, a disk that the layout does not touch": func(*wire.Layout) { node.groups = map[string]string{"vg0": "/dev/sdz2"} },
		"the layout puts it at 99 MiB with 139 MiB": func(l *wire.Layout) {
			l.Disks[0].Partitions[3].Start += mib
			l.Disks[0].Partitions[3].Size -= mib
		},
		"the layout gives it 24 MiB":                                func(l *wire.Layout) { l.Volumes[scratchVolume].Size += 4 * mib },
		"has 116 MiB; the other volumes of the layout need 120 MiB": func(l *wire.Layout) { l.Volumes[rootVolume].Size = 116 * mib },
		"of volume group vg0; the layout makes it scratch of vg1": func(l *wire.Layout) {
			for i, v := range l.Volumes {
				if v.Group != "" {
					l.Volumes[i].Group = "vg1"
				}
			}
			l.Volumes[1].Name = "vg1"
		},
		"it is logical volume scratch of volume group vg0, which the layout does not make it": func(l *wire.Layout) {
			l.Volumes[scratchVolume].Group, l.Volumes[scratchVolume].Members = "", []wire.Member{{Disk: 0, Partition: 3}}
		},
		"write a data block of that name": func(l *wire.Layout) {
			l.Volumes[scratchVolume].Name, l.Volumes[scratchVolume].Label, l.Volumes[scratchVolume].Keep = "x", "x", false
		},
		`partition 4 of disk`: func(l *wire.Layout) { l.Volumes[scratchVolume].Label, l.Preserve = "other", []string{"other"} },
	} {
		node.groups = nil
		x := clone(l)
		change(&x)
		_, _, err := m.Run(t.Context(), x, "n1/1/write", "sha256:1", image(t, "one"))
		if errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), want) || errkind.HasBegun(err) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	if sums(t, l) != before {
		t.Error("a disk was changed")
	}
	node.groups = nil
	f, err := os.OpenFile(l.Disks[0].Disk.Path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	for want, at := range map[string]int64{"whose content is not read here": 98*mib + 4096, `was made for "scratch"`: 98*mib + 512} {
		b := make([]byte, 64)
		_, err = f.ReadAt(b, at)
		must(t, err)
		_, err = f.WriteAt(make([]byte, 64), at)
		must(t, err)
		if _, _, err := m.Run(t.Context(), l, "n1/1/write", "sha256:1", image(t, "one")); errkind.Of(err) != errkind.Refused || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		_, err = f.WriteAt(b, at)
		must(t, err)
	}
}

// TestPeerGroups: a volume group is found on a disk as a whole, and behind the superblock of
// md, and not on disks that are the layout's own.
func TestPeerGroups(t *testing.T) {
	node, m, l := groupRoom(t)
	name := fmt.Sprintf("vg_test_%d", rand.Uint32())
	for i, v := range l.Volumes {
		if v.Group != "" {
			l.Volumes[i].Group = name
		}
	}
	l.Volumes[1].Name = name
	_, _, err := m.Run(t.Context(), l, "n1/0/write", "sha256:0", image(t, "zero"))
	must(t, err)
	must(t, node.Release(t.Context(), []string{l.Disks[0].Disk.Path}))
	device, err := node.Partition(t.Context(), l.Disks[0].Disk.Path, l.Disks[0].Partitions[3])
	must(t, err)
	if got, err := node.OnNode.Groups(t.Context(), nil); err != nil || got[name] != device {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := node.OnNode.Groups(t.Context(), []string{device}); err != nil || got[name] != "" {
		t.Errorf("its own: %v, %v", got, err)
	}
}

// TestArrays: what is on an array is read from its members, as md lays it
// out; also where one is missing, or old.
func TestArrays(t *testing.T) {
	t.Parallel()
	const chunk = 64 << 10
	data := make([]byte, 20*chunk+777)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	for _, disks := range []int{2, 3, 4, 5} {
		rows := make([][]byte, disks) // copies beside each other, as md(4) describes "near"
		for at := 0; at < len(data); at += chunk {
			for copy := range 2 {
				place := at/chunk*2 + copy
				rows[place%disks] = append(rows[place%disks], data[at:min(at+chunk, len(data))]...)
			}
		}
		var all []member
		for i, b := range rows {
			all = append(all, member{array: "a", level: 10, layout: near2, chunk: chunk, disks: disks, role: i, events: 7, data: section(b)})
		}
		for missing := -1; missing < disks; missing++ {
			some := slices.Clone(all)
			if missing >= 0 {
				some[missing].events, some[missing].data = 3, section(make([]byte, len(data)))
			}
			a, ok := assemble(some)
			got := make([]byte, len(data)-1000)
			if _, err := a.ReadAt(got, 1000); err != nil || !ok || !bytes.Equal(got, data[1000:]) {
				t.Errorf("%d disks without %d: %v, %v", disks, missing, ok, err)
			}
		}
		if a, _ := assemble(all[:1]); disks > 2 {
			if _, err := a.ReadAt(make([]byte, 3*chunk), 0); err == nil {
				t.Errorf("%d disks: one member has all", disks)
			}
		}
	}
	if _, ok := assemble([]member{{level: 5, disks: 3, data: section(data)}}); ok {
		t.Error("RAID 5 is read")
	}
	if a, ok := assemble([]member{{level: 1, disks: 2, role: 1, data: section(data)}}); !ok {
		t.Error("one half of a mirror is not read")
	} else if got := make([]byte, 100); !readsAs(a, got, data[500:600], 500) {
		t.Error("a mirror reads other bytes")
	}
}

func section(b []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
}

func readsAs(a array, got, want []byte, at int64) bool {
	_, err := a.ReadAt(got, at)
	return err == nil && bytes.Equal(got, want)
}
