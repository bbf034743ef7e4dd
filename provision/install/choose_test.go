// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// twoDisks are a system disk and a data disk that nothing but the serial number
// tells apart, the data disk at the lower PCI address where lower says so.
func twoDisks(lower bool) (system, data wire.Disk, hw wire.Hardware) {
	system = wire.Disk{Name: "nvme1n1", Path: "/dev/nvme1n1", PCI: "0000:02:00.0", Type: "nvme", Model: "PM9A3", Serial: "SYS1", WWN: "eui.0000000000000001", Bay: "1", Size: 960e9}
	data = wire.Disk{Name: "nvme0n1", Path: "/dev/nvme0n1", PCI: "0000:01:00.0", Type: "nvme", Model: "PM9A3", Serial: "DATA1", WWN: "eui.0000000000000002", Bay: "0", Size: 960e9, Content: "GPT; p1 ext4 label data"}
	if !lower {
		system.Name, data.Name = data.Name, system.Name
		system.Path, data.Path = data.Path, system.Path
		system.PCI, data.PCI = data.PCI, system.PCI
		system.Bay, data.Bay = data.Bay, system.Bay
	}
	return system, data, wire.Hardware{Identity: wire.Identity{Serial: "SN1"}, Disks: []wire.Disk{system, data}}
}

func nodeOn(d inventory.Disk, more ...inventory.Disk) *inventory.Node {
	n := site().Nodes[0]
	n.Hardware.Disks = append([]inventory.Disk{d}, more...)
	return n
}

var anyNVMe = inventory.Disk{Name: "os", Type: "nvme", Count: 1}

// TestChooseDisk: the disk that is erased is the only one that fits, or is known
// by its serial number or marker, or was named; all else is refused by naming both.
func TestChooseDisk(t *testing.T) {
	t.Parallel()
	for _, lower := range []bool{true, false} {
		system, data, hw := twoDisks(lower)
		installed := system
		installed.Content, installed.Marker = "GPT; p1 ext4 label ironrail-root", "n1/n1-1/write"
		after := func(disks ...wire.Disk) wire.Hardware { return wire.Hardware{Identity: hw.Identity, Disks: disks} }
		spare := system
		spare.Serial, spare.WWN = "NEW1", "eui.0000000000000003"
		used := spare
		used.Content = "mdraid member label host:0"
		clone := data
		clone.Marker = "n1/n1-1/write"
		foreign := system
		foreign.Content, foreign.Marker = "GPT", "n7/n7-1/write"
		big := data
		big.Size = 8e12
		last := lastInstall{last: &system, key: "n1/n1-1/write"}
		sized := anyNVMe
		sized.Size = unit.Limit[unit.Bytes]{Op: unit.Between, Value: 900e9, Upper: 2e12}
		placed := anyNVMe
		placed.Bay = data.Bay
		cases := []struct {
			name  string
			n     *inventory.Node
			hw    wire.Hardware
			known lastInstall
			want  string   // serial; "": refused
			ours  bool     // a reinstall may erase what lies there
			says  []string // of the refusal
		}{
			{"first install, two fit", nodeOn(anyNVMe), hw, lastInstall{}, "", false, []string{"SYS1", "DATA1", `install_disk = `, "bay = ", "ext4 label data", "blank"}},
			{"first install, one fits by size", nodeOn(sized), after(system, big), lastInstall{}, "SYS1", false, nil},
			{"first install, one fits and holds data", nodeOn(anyNVMe), after(data), lastInstall{}, "", false, []string{"DATA1", "ext4 label data", "--disk DATA1"}},
			{"first install, another node's system", nodeOn(anyNVMe), after(foreign), lastInstall{}, "", false, []string{"n7/n7-1/write"}},
			{"first install, named", nodeOn(anyNVMe), hw, lastInstall{named: "SYS1"}, "SYS1", true, nil},
			{"named by WWN as lsblk has it", nodeOn(anyNVMe), hw, lastInstall{named: "0x0000000000000001"}, "SYS1", true, nil},
			{"named, and not there", nodeOn(anyNVMe), hw, lastInstall{named: "GONE"}, "", false, []string{"GONE", "SYS1", "DATA1"}},
			{"reinstall by serial", nodeOn(anyNVMe), after(data, installed), last, "SYS1", true, nil},
			{"reinstall by serial, the marker is gone", nodeOn(anyNVMe), hw, last, "SYS1", true, nil},
			{"reinstall, another node has used the disk since", nodeOn(anyNVMe), after(foreign), last, "", false, []string{"SYS1", "n7/n7-1/write"}},
			{"reinstall by marker", nodeOn(anyNVMe), after(data, installed), lastInstall{}, "SYS1", true, nil},
			{"reinstall, marker of the last write elsewhere", nodeOn(anyNVMe), after(clone, system), last, "", false, []string{"SYS1", "DATA1"}},
			{"reinstall, two carry the marker", nodeOn(anyNVMe), after(clone, installed), lastInstall{}, "", false, []string{"SYS1", "DATA1"}},
			{"reinstall, disk replaced by a blank one", nodeOn(anyNVMe), after(spare), last, "NEW1", false, nil},
			{"reinstall, disk replaced by a used one", nodeOn(anyNVMe), after(used), last, "", false, []string{"NEW1", "SYS1", "mdraid member", "--disk NEW1"}},
			{"reinstall, disk gone and a data disk there", nodeOn(anyNVMe), after(data), last, "", false, []string{"DATA1", "SYS1"}},
			{"reinstall, disk gone, blank one and data disk", nodeOn(anyNVMe), after(spare, data), last, "", false, []string{"DATA1", "NEW1"}},
			{"reinstall, a data disk in the bay of the block", nodeOn(placed), after(data, installed), last, "", false, []string{"SYS1", "DATA1"}},
			{"reinstall, another is named", nodeOn(anyNVMe), after(data, installed), lastInstall{named: "DATA1", last: &system, key: last.key}, "DATA1", true, nil},
		}
		for _, c := range cases {
			got, err := chooseDisk(c.n, c.hw, c.known)
			if err != nil {
				got.disk = wire.Disk{}
			}
			if got.disk.Serial != c.want || got.ours != c.ours && err == nil {
				t.Errorf("lower %v, %s: disk %q, ours %v, %v; want %q, %v", lower, c.name, got.disk.Serial, got.ours, err, c.want, c.ours)
			}
			if c.want != "" {
				continue
			}
			text := ""
			if err != nil {
				text = err.Error() + " " + errkind.Action(err)
			}
			for _, word := range c.says {
				if !strings.Contains(text, word) {
					t.Errorf("lower %v, %s: %q does not say %q", lower, c.name, text, word)
				}
			}
			if !strings.Contains(text, "Nothing was erased") && errkind.Action(err) == "" {
				t.Errorf("%s: no action: %v", c.name, err)
			}
		}
	}
}

// TestCompareDisks: count means exactly, and a disk belongs to one block.
func TestCompareDisks(t *testing.T) {
	t.Parallel()
	system, data, hw := twoDisks(true)
	more := data
	more.Name, more.Path, more.PCI, more.Serial, more.WWN, more.Bay = "nvme2n1", "/dev/nvme2n1", "0000:03:00.0", "DATA2", "", "2"
	three := wire.Hardware{Disks: []wire.Disk{more, system, data}}
	placed := anyNVMe
	placed.Bay = "1"
	rest := func(count int) inventory.Disk {
		return inventory.Disk{Name: "data", Type: "nvme", Model: "PM9A3", Count: count}
	}
	cases := []struct {
		name  string
		n     *inventory.Node
		hw    wire.Hardware
		known lastInstall
		want  []string // of the one fault; nil: none
	}{
		{"too many", nodeOn(anyNVMe), hw, lastInstall{}, []string{"2 disks fit", "SYS1", "DATA1", "PM9A3", "960GB", "bay 0", "0000:02:00.0", "ext4 label data", "blank"}},
		{"too many, and the last install tells", nodeOn(anyNVMe), hw, lastInstall{last: &system}, nil},
		{"too many, and it is named", nodeOn(anyNVMe), hw, lastInstall{named: "SYS1"}, nil},
		{"too few", nodeOn(rest(3)), hw, lastInstall{}, []string{"2 of 3 disks"}},
		{"as many", nodeOn(rest(2)), hw, lastInstall{}, nil},
		{"a placed one and the rest", nodeOn(placed, rest(2)), three, lastInstall{}, nil},
		{"the rest is more than it says", nodeOn(placed, rest(1)), three, lastInstall{}, []string{"2 disks fit disk \"data\"", "count = 2"}},
		{"the system disk and the rest", nodeOn(anyNVMe, rest(2)), three, lastInstall{last: &system}, nil},
	}
	for _, c := range cases {
		fs := compareDisks(c.n, c.hw, c.known)
		if c.want == nil && len(fs) == 0 {
			continue
		}
		if c.want == nil || len(fs) != 1 {
			t.Errorf("%s: %+v", c.name, fs)
			continue
		}
		for _, word := range c.want {
			if text := fs[0].Found + " " + fs[0].Action; !strings.Contains(text, word) {
				t.Errorf("%s: %q does not say %q", c.name, text, word)
			}
		}
	}
	n := nodeOn(anyNVMe, rest(2))
	if fs := compareDisks(n, three, lastInstall{}); len(fs) == 0 || fs[len(fs)-1].Part != "disk" || !strings.Contains(fs[len(fs)-1].Found, `fits disk "os" and disk "data"`) {
		t.Errorf("two blocks: %+v", fs)
	}
}

// TestWipedDisks: a node that leaves loses the disks that are known to be its own.
func TestWipedDisks(t *testing.T) {
	t.Parallel()
	system, data, hw := twoDisks(true)
	foreign := data
	foreign.Marker = "n7/n7-1/write"
	for _, c := range []struct {
		name  string
		n     *inventory.Node
		hw    wire.Hardware
		known lastInstall
		want  string
	}{
		{"a data disk fits the same block", nodeOn(anyNVMe), hw, lastInstall{last: &system}, "SYS1"},
		{"the system disk is gone, a data disk fits", nodeOn(anyNVMe), wire.Hardware{Disks: []wire.Disk{data}}, lastInstall{last: &system}, ""},
		{"two fit and none is known", nodeOn(anyNVMe), hw, lastInstall{}, ""},
		{"all are declared", nodeOn(inventory.Disk{Name: "os", Type: "nvme", Count: 2}), hw, lastInstall{last: &system}, "DATA1 SYS1"},
		{"another node's disk is declared", nodeOn(inventory.Disk{Name: "os", Type: "nvme", Count: 2}), wire.Hardware{Disks: []wire.Disk{system, foreign}}, lastInstall{last: &system}, "SYS1"},
	} {
		c.n.Disks, c.n.Retired = nil, true
		var got []string
		disks, _ := disksToWipe(c.n, c.hw, c.known)
		for _, d := range disks {
			got = append(got, d.Serial)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %q; want %q", c.name, s, c.want)
		}
	}
}
