// SPDX-License-Identifier: Apache-2.0

package disklayout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/gpt"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

const gib = 1 << 30

func disk(name string, size int64) Disk {
	return Disk{Disk: wire.Disk{Name: name, Serial: "S-" + name, Size: size, Sector: 512}}
}

// text is a layout in short lines.
func text(l wire.Layout) string {
	var b strings.Builder
	for _, d := range l.Disks {
		fmt.Fprintf(&b, "%s", d.Disk.Name)
		for _, p := range d.Partitions {
			fmt.Fprintf(&b, " p%d %s %d+%d", p.Number, p.Name, p.Start/mib, p.Size/mib)
		}
		b.WriteString("\n")
	}
	for _, v := range l.Volumes {
		fmt.Fprintf(&b, "%s raid %d %s %s %q keep %v on", v.Name, v.RAID, v.Filesystem, v.Label, v.Mount, v.Keep)
		for _, m := range v.Members {
			fmt.Fprintf(&b, " %s/p%d", l.Disks[m.Disk].Disk.Name, m.Partition)
		}
		if v.Group != "" {
			fmt.Fprintf(&b, " %s, %d MiB", v.Group, v.Size/mib)
		}
		if v.Encryption != "" {
			b.WriteString(" encrypted " + v.Encryption)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestCompute(t *testing.T) {
	t.Parallel()
	root := inventory.FileSystem{Name: "root", Filesystem: "ext4", Mount: "/"}
	sized := root
	sized.Size, sized.Filesystem = 4*gib, "xfs"
	scratch := inventory.FileSystem{Name: "scratch", Filesystem: "xfs", Mount: "/scratch"}
	lake := scratch
	lake.Name, lake.On, lake.Mount = "lake", "flash", "/lake"
	four := []Disk{disk("a", 8*gib), disk("b", 8*gib), disk("c", 8*gib), disk("d", 8*gib)}
	for _, c := range []struct {
		name string
		in   Input
		want string
	}{
		{"xfs on one disk of a machine without a BIOS", Input{Layout: &inventory.DiskLayout{On: "os", RAID: -1, Root: inventory.FileSystem{Name: "root", Filesystem: "xfs"}}, System: []Disk{disk("a", 8*gib)}}, `
a p2 esp 2+64 p3 root 66+8125
root raid -1 xfs ironrail-os "/" keep false on a/p3
`},
		{"a mirror of unequal disks", Input{BIOS: true, Layout: &inventory.DiskLayout{On: "os", RAID: 1, Swap: gib, Root: sized, Data: []inventory.FileSystem{scratch, lake}, Preserve: []string{"label:scratch"}},
			System: []Disk{disk("a", 8*gib), disk("b", 9*gib)}, Data: map[string][]Disk{"flash": {disk("c", 20*gib+5)}}}, `
a p1 bios 1+1 p2 esp 2+64 p3 swap 66+1152 p4 root 1218+4224 p5 data-scratch 5442+2749
b p1 bios 1+1 p2 esp 2+64 p3 swap 66+1152 p4 root 1218+4224 p5 data-scratch 5442+2749
c p1 data-lake 2+20477
swap raid 1 swap swap "" keep false on a/p3 b/p3
root raid 1 xfs ironrail-os "/" keep false on a/p4 b/p4
scratch raid 1 xfs scratch "/scratch" keep true on a/p5 b/p5
lake raid -1 xfs lake "/lake" keep false on c/p1
`},
		{"RAID 10", Input{BIOS: true, Layout: &inventory.DiskLayout{On: "os", RAID: 10, Root: sized}, System: four}, `
a p1 bios 1+1 p2 esp 2+64 p3 root 66+2176
b p1 bios 1+1 p2 esp 2+64 p3 root 66+2176
c p1 bios 1+1 p2 esp 2+64 p3 root 66+2176
d p1 bios 1+1 p2 esp 2+64 p3 root 66+2176
root raid 10 xfs ironrail-os "/" keep false on a/p3 b/p3 c/p3 d/p3
`},
		{"data with the names of ours", Input{Layout: &inventory.DiskLayout{On: "os", RAID: 1, Swap: gib, Root: sized, Data: []inventory.FileSystem{{Name: "root", Size: gib, Mount: "/a"}, {Name: "swap", Mount: "/b"}}},
			System: four[:2]}, `
a p2 esp 2+64 p3 swap 66+1152 p4 root 1218+4224 p5 data-root 5442+1152 p6 data-swap 6594+1597
b p2 esp 2+64 p3 swap 66+1152 p4 root 1218+4224 p5 data-root 5442+1152 p6 data-swap 6594+1597
swap raid 1 swap swap "" keep false on a/p3 b/p3
root raid 1 xfs ironrail-os "/" keep false on a/p4 b/p4
root raid 1 ext4 root "/a" keep false on a/p5 b/p5
swap raid 1 ext4 swap "/b" keep false on a/p6 b/p6
`},
		{"a volume group with the root, and one on another disk", Input{BIOS: true, Layout: &inventory.DiskLayout{On: "os", RAID: -1, Swap: gib, Root: inventory.FileSystem{Name: "root", Size: gib + 1, Group: "vg0"},
			Groups:   []inventory.VolumeGroup{{Name: "vg0", Size: 4 * gib}, {Name: "vg1", On: "flash"}},
			Data:     []inventory.FileSystem{{Name: "home", Mount: "/home", Group: "vg0"}, {Name: "spool", Size: gib, Mount: "/spool"}, {Name: "lake", Filesystem: "xfs", Mount: "/lake", Group: "vg1", On: "flash"}},
			Preserve: []string{"label:home"}},
			System: four[:1], Data: map[string][]Disk{"flash": {disk("e", 20*gib)}}}, `
a p1 bios 1+1 p2 esp 2+64 p3 swap 66+1024 p4 group-vg0 1090+4100 p5 data-spool 5190+1024
e p1 group-vg1 2+20477
swap raid -1 swap swap "" keep false on a/p3
vg0 raid -1 lvm  "" keep false on a/p4
root raid -1 ext4 ironrail-os "/" keep false on vg0, 1028 MiB
home raid -1 ext4 home "/home" keep true on vg0, 0 MiB
spool raid -1 ext4 spool "/spool" keep false on a/p5
vg1 raid -1 lvm  "" keep false on e/p1
lake raid -1 xfs lake "/lake" keep false on vg1, 0 MiB
`},
		{"encrypted data", Input{Layout: &inventory.DiskLayout{On: "os", RAID: -1, Root: inventory.FileSystem{Name: "root", Size: gib}, Groups: []inventory.VolumeGroup{{Name: "vg0"}},
			Data: []inventory.FileSystem{{Name: "home", Mount: "/home", Size: gib, Encryption: inventory.EncryptionTPM2}, {Name: "lake", Mount: "/lake", Group: "vg0", Encryption: inventory.EncryptionTPM2}}}, System: four[:1]}, `
a p2 esp 2+64 p3 root 66+1024 p4 data-home 1090+1024 p5 group-vg0 2114+6077
root raid -1 ext4 ironrail-os "/" keep false on a/p3
home raid -1 ext4 home "/home" keep false on a/p4 encrypted tpm2
vg0 raid -1 lvm  "" keep false on a/p5
lake raid -1 ext4 lake "/lake" keep false on vg0, 0 MiB encrypted tpm2
`},
		{"a volume group on a mirror", Input{Layout: &inventory.DiskLayout{On: "os", RAID: 1, Root: inventory.FileSystem{Name: "root", Group: "vg0"}, Groups: []inventory.VolumeGroup{{Name: "vg0"}}}, System: four[:2]}, `
a p2 esp 2+64 p3 group-vg0 66+8125
b p2 esp 2+64 p3 group-vg0 66+8125
vg0 raid 1 lvm  "" keep false on a/p3 b/p3
root raid -1 ext4 ironrail-os "/" keep false on vg0, 0 MiB
`},
	} {
		c.in.Seed = "n1/a/write"
		got, err := Compute(c.in)
		if err != nil || "\n"+text(got) != c.want {
			t.Errorf("%s: %v\n%s", c.name, err, text(got))
		}
		checkTables(t, got)
	}
}

// checkTables: every disk's table can be made, and no identifier is there twice.
func checkTables(t *testing.T, l wire.Layout) {
	t.Helper()
	seen := map[string]bool{"": true}
	see := func(id string) {
		if id != "" && seen[id] {
			t.Errorf("identifier %s twice", id)
		}
		seen[id] = true
	}
	for _, d := range l.Disks {
		see(d.GUID)
		var parts []gpt.Partition
		for _, p := range d.Partitions {
			see(p.GUID)
			parts = append(parts, gpt.Partition{Number: p.Number, Type: p.Type, GUID: p.GUID, Name: p.Name, First: uint64(p.Start / 512), Last: uint64((p.Start+p.Size)/512) - 1, Sector: 512})
		}
		for _, sector := range []int64{gpt.Sector, gpt.Sector4K} {
			if _, err := gpt.New(d.Disk.Size, sector, d.GUID, parts); err != nil {
				t.Errorf("%s, sectors of %d: %v", d.Disk.Name, sector, err)
			}
		}
	}
	for _, v := range l.Volumes {
		see(v.Array)
		see(v.UUID)
	}
}

func TestComputeIsRepeatable(t *testing.T) {
	t.Parallel()
	in := Input{Layout: &inventory.DiskLayout{On: "os", RAID: 1}, System: []Disk{disk("a", 8*gib), disk("b", 8*gib)}, Seed: "n1/a/write"}
	one, err := Compute(in)
	if err != nil {
		t.Fatal(err)
	}
	two, _ := Compute(in)
	in.Seed = "n1/b/write"
	other, _ := Compute(in)
	if fmt.Sprint(one) != fmt.Sprint(two) || one.Volumes[0].Array == other.Volumes[0].Array || one.Disks[1].Partitions[0].GUID == other.Disks[1].Partitions[0].GUID {
		t.Error("identifiers are those of the write, and of nothing else")
	}
}

// TestComputeGroupTooSmall: logical volumes have what LVM and md leave of the partitions.
func TestComputeGroupTooSmall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		raid int
		size int64 // of the root, MiB; the partition has 8125
		fits bool
	}{{-1, 8120, true}, {-1, 8124, false}, {1, 7992, true}, {1, 7996, false}, {10, 15988, true}, {10, 15992, false}} {
		in := Input{Layout: &inventory.DiskLayout{Name: "os", On: "os", RAID: c.raid, Root: inventory.FileSystem{Name: "root", Size: unit.Bytes(c.size * mib), Group: "vg0"}, Groups: []inventory.VolumeGroup{{Name: "vg0"}}}, System: []Disk{disk("a", 8*gib), disk("b", 8*gib), disk("c", 8*gib), disk("d", 8*gib)}}
		_, err := Compute(in)
		if (err == nil) != c.fits || err != nil && (errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), "the volumes of volume_group vg0 take")) {
			t.Errorf("RAID %d, %d MiB: %v", c.raid, c.size, err)
		}
	}
}

func TestComputeTooSmall(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*inventory.DiskLayout{
		"root": {On: "os", RAID: 1, Root: inventory.FileSystem{Name: "root", Size: 9 * gib}},
		"data": {On: "os", RAID: 1, Root: inventory.FileSystem{Name: "root", Size: 8*gib - 300*mib}, Data: []inventory.FileSystem{{Name: "data", Size: gib, Mount: "/data"}}},
	} {
		_, err := Compute(Input{Layout: l, System: []Disk{disk("a", 20*gib), disk("b", 8*gib)}})
		if errkind.Of(err) != errkind.Mismatch || !strings.Contains(err.Error(), name+" takes") || !strings.Contains(err.Error(), "S-b") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
