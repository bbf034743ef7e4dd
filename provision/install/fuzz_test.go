// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/oob"
)

// FuzzHardware: whatever a ramdisk reports, the disk that is chosen is one that it
// reported, and is blank, carries the node's own marker, or is that of the last install;
// a disk with another's marker is never wiped.
func FuzzHardware(f *testing.F) {
	f.Add([]byte(`{"identity":{"product":"box","serial":"SN1"},"disks":[{"name":"vda","serial":"A","size":4000000000},{"name":"vdb","serial":"B","size":4000000000,"content":"ext4"}]}`), []byte(`{"serial":"A"}`))
	f.Add([]byte(`{"disks":[{"name":"vda","size":4000000000,"marker":"n1/a/write","state":"configured","content":"GPT"},{"name":"vdb","size":4000000000,"marker":"n2/b/write"}]}`), []byte(``))
	f.Add([]byte(`{"disks":[{"name":"x","size":-1},{"name":"x","size":-1,"pci":"?"}],"nics":[{}],"pci":[{"class":"0302"}],"memory":{"modules":[{"slot":"A1"}]}}`), []byte(`{"size":-1}`))
	f.Fuzz(func(t *testing.T, report, last []byte) {
		var hw wire.Hardware
		if json.Unmarshal(report, &hw) != nil {
			return
		}
		n := site().Nodes[0]
		known := lastInstall{key: "n1/a/write"}
		if d := new(wire.Disk); json.Unmarshal(last, d) == nil && (d.Serial != "" || d.WWN != "") {
			known.last = d
		}
		faults := compareHardware(n, hw, known)
		nameSlots(faults, hw, hw)
		compareIdentity(n, hw, oob.Report{Serial: hw.Identity.Serial})
		if c, err := chooseDisk(n, hw, known); err == nil {
			own := strings.HasPrefix(c.disk.Marker, "n1/") || known.last != nil && sameDisk(*known.last, c.disk) && c.disk.Marker == ""
			if blank := c.disk.Content == "" && c.disk.Marker == ""; !blank && !own || c.ours && !own {
				t.Errorf("chosen: %+v, ours %t", c.disk, c.ours)
			}
			if !slices.Contains(hw.Disks, c.disk) {
				t.Errorf("chosen, and not reported: %+v", c.disk)
			}
		}
		wipe, stay := disksToWipe(n, hw, known)
		if len(wipe)+len(stay) != len(hw.Disks) {
			t.Errorf("%d are wiped and %d stay, of %d", len(wipe), len(stay), len(hw.Disks))
		}
		for _, d := range wipe {
			if d.Marker != "" && !strings.HasPrefix(d.Marker, "n1/") {
				t.Errorf("wiped: %+v", d)
			}
		}
	})
}
