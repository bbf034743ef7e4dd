// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// twoPaths is a SAS disk with both of its ports cabled to one controller, as the
// kernel shows it without a multipath driver: two disks of one serial number.
func twoPaths() (a, b wire.Disk) {
	a = wire.Disk{Name: "sda", Path: "/dev/sda", PCI: "0000:3b:00.0", Type: "ssd", Model: "KPM6XRUG3T84", Serial: "Z1X0A001", WWN: "naa.58ce38ee20a1b2c3", Bay: "0", Size: 3840755982336,
		ByPath: "pci-0000:3b:00.0-sas-phy0-lun-0"}
	b = a
	b.Name, b.Path, b.ByPath = "sdb", "/dev/sdb", "pci-0000:3b:00.0-sas-phy4-lun-0"
	return a, b
}

// TestDiskOverTwoPaths: a disk that is seen twice is refused as one disk, with what
// to write; a block that names one path takes that one, also when it is reinstalled.
func TestDiskOverTwoPaths(t *testing.T) {
	t.Parallel()
	a, b := twoPaths()
	any := inventory.Disk{Name: "os", Type: "sas", Count: 1}
	onB := any
	onB.ByPath = b.ByPath
	mark := func(d wire.Disk) wire.Disk {
		d.Marker, d.Content = "n1/n1-1/write", "GPT; p1 ext4 label ironrail-root"
		return d
	}
	unnamed := func(d wire.Disk) wire.Disk { d.WWN = ""; return d }
	last := lastInstall{last: &b, key: "n1/n1-1/write"}
	one := []string{"sda and sdb", "serial number Z1X0A001", "one disk", "over 2 paths", "Nothing was erased", "path", `by_path = "pci-0000:3b:00.0-sas-phy0-lun-0" or "pci-0000:3b:00.0-sas-phy4-lun-0"`}
	for _, c := range []struct {
		name  string
		n     *inventory.Node
		disks []wire.Disk
		known lastInstall
		want  string   // kernel name; "": refused
		says  []string // of the refusal
		not   string   // and what it does not
	}{
		{"first install", nodeOn(any), []wire.Disk{a, b}, lastInstall{}, "", append([]string{"naa.58ce38ee20a1b2c3"}, one...), "install_disk ="},
		{"no WWN", nodeOn(any), []wire.Disk{unnamed(a), unnamed(b)}, lastInstall{}, "", []string{"sda and sdb", "serial number Z1X0A001", "or two disks that report one number", "by_path = "}, "one WWN"},
		{"named by its serial number", nodeOn(any), []wire.Disk{a, b}, lastInstall{named: a.Serial}, "", one, "name the other by its WWN"},
		{"reinstall", nodeOn(any), []wire.Disk{mark(a), mark(b)}, last, "", one, "Take one of them out"},
		{"reinstall by marker", nodeOn(any), []wire.Disk{mark(a), mark(b)}, lastInstall{}, "", one, "Take one of them out"},
		{"first install, a path is named", nodeOn(onB), []wire.Disk{a, b}, lastInstall{}, "sdb", nil, ""},
		{"named by its serial number, and a path", nodeOn(onB), []wire.Disk{a, b}, lastInstall{named: a.Serial}, "sdb", nil, ""},
		{"reinstall, a path is named", nodeOn(onB), []wire.Disk{mark(a), mark(b)}, last, "sdb", nil, ""},
		{"reinstall by marker, a path is named", nodeOn(onB), []wire.Disk{mark(a), mark(b)}, lastInstall{}, "sdb", nil, ""},
	} {
		hw := wire.Hardware{Disks: c.disks}
		got, err := chooseDisk(c.n, hw, c.known)
		if c.want != "" {
			if fs := compareDisks(c.n, hw, c.known); err != nil || got.disk.Name != c.want || len(fs) > 0 {
				t.Errorf("%s: %s, %v, %+v; want %s", c.name, got.disk.Name, err, fs, c.want)
			}
			continue
		}
		if errkind.Of(err) != errkind.Refused {
			t.Errorf("%s: %s, %v; want a refusal", c.name, got.disk.Name, err)
			continue
		}
		text := err.Error() + " " + errkind.Action(err)
		for _, word := range c.says {
			if !strings.Contains(text, word) {
				t.Errorf("%s: %q does not say %q", c.name, text, word)
			}
		}
		if c.not != "" && strings.Contains(text, c.not) {
			t.Errorf("%s: %q says %q", c.name, text, c.not)
		}
	}
	fs := compareDisks(nodeOn(any), wire.Hardware{Disks: []wire.Disk{a, b}}, lastInstall{})
	if len(fs) != 1 {
		t.Fatalf("faults %+v", fs)
	}
	for _, word := range one {
		if text := fs[0].Found + " " + fs[0].Action; !strings.Contains(text, word) {
			t.Errorf("the hardware check: %q does not say %q", text, word)
		}
	}
}

// TestDataDisksOverTwoPaths: eight disks behind two controllers each are eight, and
// what is offered is one of the controllers, not a count of sixteen.
func TestDataDisksOverTwoPaths(t *testing.T) {
	t.Parallel()
	data := inventory.Disk{Name: "data", Type: "sas", Count: 8}
	var disks []wire.Disk
	for path, pci := range []string{"0000:3b:00.0", "0000:af:00.0"} {
		for i := range 8 {
			d, _ := twoPaths()
			d.Name = "sd" + string(rune('a'+8*path+i))
			d.Path, d.PCI, d.ByPath = "/dev/"+d.Name, pci, fmt.Sprintf("pci-%s-sas-phy%d-lun-0", pci, i)
			d.Serial, d.WWN, d.Bay = fmt.Sprintf("Z1X0A00%d", i), fmt.Sprintf("naa.58ce38ee20a1b2c%d", i), strconv.Itoa(i)
			disks = append(disks, d)
		}
	}
	n := nodeOn(anyNVMe, data)
	fs := compareDisks(n, wire.Hardware{Disks: disks}, lastInstall{})
	i := slices.IndexFunc(fs, func(f Fault) bool { return f.Part == "disk data" })
	if i < 0 {
		t.Fatalf("faults %+v", fs)
	}
	text := fs[i].Found + " " + fs[i].Action
	for _, word := range []string{"sda and sdi have one serial number Z1X0A000", "sdh and sdp have", `pci = "0000:3b:00.0" or "0000:af:00.0"`, "leave one path to each disk"} {
		if !strings.Contains(text, word) {
			t.Errorf("%q does not say %q", text, word)
		}
	}
	if strings.Contains(text, "count = 16") {
		t.Errorf("%q offers eight disks as sixteen", text)
	}
	data.PCI = "0000:3b:00.0"
	n.Hardware.Disks[1] = data
	if fs := compareDisks(n, wire.Hardware{Disks: disks}, lastInstall{}); slices.ContainsFunc(fs, func(f Fault) bool { return f.Part == "disk data" }) {
		t.Errorf("one of the controllers: %+v", fs)
	}
}
