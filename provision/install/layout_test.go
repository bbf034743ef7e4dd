// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// room are the disks of a mirror and a data disk, all blank.
func room() (a, b, data wire.Disk) {
	disk := func(name, pci, serial, wwn string) wire.Disk {
		return wire.Disk{Name: name, Path: "/dev/" + name, PCI: pci, Type: "nvme", Model: "PM9A3", Serial: serial, WWN: wwn, Size: 960e9, Sector: 512}
	}
	return disk("nvme0n1", "0000:01:00.0", "SYS1", "eui.0000000000000001"), disk("nvme1n1", "0000:02:00.0", "SYS2", "eui.0000000000000002"), disk("nvme2n1", "0000:03:00.0", "DATA1", "eui.0000000000000003")
}

// mirrored is a node with a mirror and a data disk.
func mirrored(raid int) *inventory.Node {
	n := nodeOn(inventory.Disk{Name: "os", Type: "nvme", Count: 2}, inventory.Disk{Name: "data", Type: "nvme", Count: 1, PCI: "0000:03:00.0"})
	n.Disks = &inventory.DiskLayout{Name: "os", On: "os", RAID: raid, Root: inventory.FileSystem{Name: "root", Filesystem: "xfs"}, Data: []inventory.FileSystem{{Name: "scratch", Mount: "/scratch", On: "data"}}}
	if raid < 0 {
		n.Hardware.Disks[0].Count = 1
	}
	return n
}

// TestChooseDisks: all disks of a layout are certain, or none is erased.
func TestChooseDisks(t *testing.T) {
	t.Parallel()
	a, b, data := room()
	with := func(d wire.Disk, content, marker string) wire.Disk {
		d.Content, d.Marker = content, marker
		return d
	}
	const key = "n1/a/write"
	last := lastInstall{key: key, last: &a, all: []LayoutDisk{{"os", a, true}, {"os", b, true}, {"data", data, true}}}
	ours := func(d wire.Disk) wire.Disk { return with(d, "GPT; p3 mdraid member", key) }
	spare, again := b, b
	spare.Serial, spare.WWN = "NEW2", "eui.0000000000000009"
	again.Serial, again.WWN = a.Serial, a.WWN
	extra := b
	extra.Path, extra.Name, extra.Serial, extra.WWN, extra.PCI = "/dev/nvme3n1", "nvme3n1", "X", "eui.0000000000000008", "0000:04:00.0"
	for _, c := range []struct {
		name  string
		raid  int
		disks []wire.Disk
		known lastInstall
		want  string // serial numbers, "!" after those that are the node's own
		kind  errkind.Kind
		says  []string
	}{
		{"blank", 1, []wire.Disk{a, b, data}, lastInstall{}, "SYS1 SYS2 DATA1", 0, nil},
		{"without RAID", -1, []wire.Disk{a, data}, lastInstall{}, "SYS1 DATA1", 0, nil},
		{"one is gone", 1, []wire.Disk{a, data}, lastInstall{}, "", errkind.Mismatch, []string{"1 of 2 disks fit", `disk "os"`, "DATA1"}},
		{"one too many", 1, []wire.Disk{a, b, extra, data}, lastInstall{}, "", errkind.Refused, []string{"3 disks fit", "SYS1", "SYS2", "serial X"}},
		{"the data disk is gone", 1, []wire.Disk{a, b}, lastInstall{}, "", errkind.Mismatch, []string{"0 of 1 disks fit", `disk "data"`}},
		{"one holds data", 1, []wire.Disk{a, with(b, "ext4 label thesis", ""), data}, lastInstall{}, "", errkind.Refused, []string{"SYS2", "thesis", "--disk SYS2`", "Nothing was erased"}},
		{"the data disk holds data", 1, []wire.Disk{a, b, with(data, "ext4 label thesis", "")}, lastInstall{}, "", errkind.Refused, []string{"DATA1", "thesis", "--disk DATA1`"}},
		{"two hold data and one is named", 1, []wire.Disk{with(a, "x", ""), with(b, "x", ""), data}, lastInstall{named: "SYS1"}, "", errkind.Refused, []string{"1 disk of disk_layout", "--disk SYS1,SYS2`"}},
		{"both are named", 1, []wire.Disk{with(a, "x", ""), with(b, "x", ""), data}, lastInstall{named: "SYS1, eui.0000000000000002"}, "SYS1! SYS2! DATA1", 0, nil},
		{"a disk of no block is named", 1, []wire.Disk{a, b, data}, lastInstall{named: "X"}, "", errkind.NotFound, []string{`"X"`, "SYS1"}},
		{"reinstall", 1, []wire.Disk{ours(a), ours(b), ours(data)}, last, "SYS1! SYS2! DATA1!", 0, nil},
		{"reinstall without a state", 1, []wire.Disk{ours(a), ours(b), ours(data)}, lastInstall{}, "SYS1! SYS2! DATA1!", 0, nil},
		{"reinstall without RAID, the data disk is marked too", -1, []wire.Disk{ours(a), ours(data)}, lastInstall{key: key}, "SYS1! DATA1!", 0, nil},
		{"reinstall without RAID, the state knows", -1, []wire.Disk{ours(a), ours(data)}, lastInstall{key: key, last: &a, all: []LayoutDisk{{"os", a, true}, {"data", data, true}}}, "SYS1! DATA1!", 0, nil},
		{"a new disk", 1, []wire.Disk{ours(a), spare, ours(data)}, last, "SYS1! NEW2 DATA1!", 0, nil},
		{"a new disk with data", 1, []wire.Disk{ours(a), with(spare, "x", ""), ours(data)}, last, "", errkind.Refused, []string{"NEW2"}},
		{"another node has used one", 1, []wire.Disk{ours(a), with(b, "x", "n7/b/write"), ours(data)}, last, "", errkind.Refused, []string{"SYS2", "n7/b/write"}},
		{"one disk over two paths", 1, []wire.Disk{a, again, data}, lastInstall{}, "", errkind.Refused, []string{"twice", "over 2 paths"}},
	} {
		got, err := chooseDisks(mirrored(c.raid), wire.Hardware{Disks: c.disks}, c.known)
		var words []string
		for _, d := range got {
			word := d.Disk.Serial
			if d.Ours {
				word += "!"
			}
			words = append(words, word)
		}
		if text := strings.Join(words, " "); err == nil && text != c.want || (err == nil) != (c.kind == 0) || err != nil && errkind.Of(err) != c.kind {
			t.Errorf("%s: %q, %v", c.name, text, err)
			continue
		}
		for _, word := range c.says {
			if !strings.Contains(err.Error()+errkind.Action(err), word) {
				t.Errorf("%s: %v: %s: does not say %q", c.name, err, errkind.Action(err), word)
			}
		}
	}
	wipe, stay := disksToWipe(mirrored(1), wire.Hardware{Disks: []wire.Disk{ours(a), with(b, "x", ""), ours(data), extra}}, last)
	if len(wipe) != 3 || len(stay) != 1 || stay[0].Serial != "X" {
		t.Errorf("a node that leaves: %v, and %v stay", wipe, stay)
	}
}

// TestLayoutInput: the form for the image's own disk is that of older versions, and what is
// preserved is no reason to install a node again.
func TestLayoutInput(t *testing.T) {
	t.Parallel()
	whole := &inventory.DiskLayout{On: "os", RAID: -1, Root: inventory.FileSystem{Size: 200e9, Filesystem: "ext4"}}
	if got := layoutInput(whole); got != "on os, root 200000000000" {
		t.Errorf("%q", got)
	}
	l := *mirrored(1).Disks
	was := layoutInput(&l)
	l.Preserve = []string{"label:scratch"}
	if got := layoutInput(&l); got != was || got != "on os, root 0 xfs, raid 1, scratch ext4 0 at /scratch on data" {
		t.Errorf("%q, and was %q", got, was)
	}
	for _, c := range []struct {
		kind string
		is   *inventory.DiskLayout
		want string
	}{
		{"debian", whole, `write image hpc to disk "os" and read it back`},
		{"raw", whole, `write the disk image hpc as it is to disk "os" and read it back`},
		{"raw", &l, `make disk_layout ` + l.Name + ` (RAID 1 of disks "os": root xfs, scratch ext4 on disk "data"), put the files of image hpc onto the layout and read them back`},
	} {
		n := &inventory.Node{Image: &inventory.Image{Block: inventory.Block{Name: "hpc", Kind: c.kind}}, Disks: c.is}
		if got := writeWords(n); got != c.want {
			t.Errorf("%q", got)
		}
	}
	l.Groups, l.Root.Group, l.Root.Size = []inventory.VolumeGroup{{Name: "vg0"}, {Name: "vg1", Size: 7, On: "data"}}, "vg0", 5
	l.Data = []inventory.FileSystem{{Name: "scratch", Mount: "/scratch", On: "data", Group: "vg1"}}
	if got := layoutInput(&l); got != "on os, root 5 xfs in volume group vg0, volume group vg0 0, volume group vg1 7 on data, raid 1, scratch ext4 0 at /scratch in volume group vg1 on data" {
		t.Errorf("%q", got)
	}
	if got := layoutWords(&l); got != `RAID 1 of disks "os": root xfs in volume group vg0, scratch ext4 in volume group vg1 on disk "data"` {
		t.Errorf("%q", got)
	}
	l.Data[0].Encryption = inventory.EncryptionTPM2 // another place is made for it, so that it is another layout
	if got := layoutInput(&l); !strings.HasSuffix(got, "scratch ext4 0 at /scratch in volume group vg1 encrypted tpm2 on data") {
		t.Errorf("%q", got)
	}
	if got := layoutWords(&l); !strings.HasSuffix(got, `scratch ext4 in volume group vg1 left blank, to be encrypted on disk "data"`) {
		t.Errorf("%q", got)
	}
	l = *mirrored(1).Disks
	if got := layoutWords(&l); got != `RAID 1 of disks "os": root xfs, scratch ext4 on disk "data"` {
		t.Errorf("%q", got)
	}
}
