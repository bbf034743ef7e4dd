// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/inventory"
)

var (
	oldMAC = addr.MAC{2, 0, 0, 0, 0, 1}
	newMAC = addr.MAC{2, 0, 0, 0, 0, 2}
)

// What the site's files say counts as soon as somebody has edited them.
func TestReplacementOverFiles(t *testing.T) {
	t.Parallel()
	was := Chassis{"OLD1", "u-old", oldMAC}
	r := Replacement{Chassis: Chassis{"NEW1", "u-new", newMAC}, Was: was}
	unknown := Replacement{Chassis: Chassis{"NEW1", "", newMAC}, Was: was}
	same := Replacement{Chassis: Chassis{"OLD1", "u-new", newMAC}, Was: was}
	for name, c := range map[string]struct {
		r      Replacement
		files  Chassis
		want   Chassis
		stands bool
	}{
		"files as they were":            {r, was, r.Chassis, true},
		"the serial was edited":         {r, Chassis{"NEW1", "u-old", oldMAC}, r.Chassis, true},
		"all was edited":                {r, r.Chassis, r.Chassis, false},
		"a third serial":                {r, Chassis{"NEW2", "u-old", oldMAC}, Chassis{"NEW2", "u-old", oldMAC}, false},
		"another MAC was edited":        {r, Chassis{"NEW1", "u-new", addr.MAC{4}}, Chassis{"NEW1", "u-new", addr.MAC{4}}, false},
		"the UUID is not known":         {unknown, was, Chassis{"NEW1", "", newMAC}, true},
		"a board of the old serial":     {same, was, same.Chassis, true},
		"files without a UUID, edited":  {Replacement{Chassis: r.Chassis, Was: Chassis{"OLD1", "", oldMAC}}, Chassis{"NEW1", "", newMAC}, Chassis{"NEW1", "", newMAC}, false},
		"files without a UUID, not yet": {Replacement{Chassis: r.Chassis, Was: Chassis{"OLD1", "", oldMAC}}, Chassis{"OLD1", "", oldMAC}, r.Chassis, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, stands := c.r.over(c.files); got != c.want || stands != c.stands {
				t.Errorf("%+v, %v", got, stands)
			}
		})
	}
}

func TestReplacementWarning(t *testing.T) {
	t.Parallel()
	at := func(line int) hcl.Range { return hcl.Range{Filename: "nodes.csv", Start: hcl.Pos{Line: line}} }
	n := &inventory.Node{Name: "n7", Serial: "NEW1", BootMAC: newMAC, Ranges: inventory.NodeRanges{Serial: at(8), BootMAC: at(9), UUID: at(10)}}
	r := Replacement{Node: "n7", Chassis: Chassis{"NEW1", "", newMAC}, Reason: "board", By: "kim", At: time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)}
	want := `n7 has serial NEW1 since 2026-11-22 03:00 UTC (board, by kim), and the site's files have the chassis before it: ` +
		`write serial = "NEW1" (nodes.csv:8 says OLD1), no uuid (nodes.csv:10 says u-old), boot_mac = "02:00:00:00:00:02" (nodes.csv:9 says 02:00:00:00:00:01) there`
	if got := r.warning(n, Chassis{"OLD1", "u-old", oldMAC}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.By, r.Reason = "", ""
	if got := r.warning(n, Chassis{"OLD1", "", newMAC}); strings.Contains(got, "()") || strings.Contains(got, "boot_mac") {
		t.Error(got)
	}
}
