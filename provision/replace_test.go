package provision

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/network"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/bmc"
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

// The boot NIC is chosen only where nothing else can be it.
func TestBootPort(t *testing.T) {
	t.Parallel()
	h := &inventory.Hardware{NICs: []inventory.NIC{{Name: "mgmt", Boot: true, Speed: unit.BitRate(25e9), Ports: []inventory.NICPort{{}}}}}
	port := func(last byte, mbps int) bmc.NIC {
		return bmc.NIC{ID: "p", MAC: addr.MAC{2, 0, 0, 0, 0, last}, Mbps: mbps}
	}
	for name, c := range map[string]struct {
		ports []bmc.NIC
		want  byte // 0: none
	}{
		"none":                    {nil, 0},
		"the only one":            {[]bmc.NIC{port(1, 0)}, 1},
		"the only one that fast":  {[]bmc.NIC{port(1, 400000), port(2, 25000), port(3, 400000)}, 2},
		"two of that speed":       {[]bmc.NIC{port(1, 25000), port(2, 25000)}, 0},
		"one that does not tell":  {[]bmc.NIC{port(1, 25000), port(2, 0)}, 0},
		"none of that speed":      {[]bmc.NIC{port(1, 1000), port(2, 400000)}, 0},
		"speeds of a node off: 0": {[]bmc.NIC{port(1, 0), port(2, 0)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := bootPort(h, c.ports)
			if ok != (c.want != 0) || got.MAC[5] != c.want {
				t.Errorf("%v, %v", got, ok)
			}
		})
	}
}

// Whoever compares nodes with the site compares the chassis that stands there.
func TestDriftLooksAtTheNewChassis(t *testing.T) {
	t.Parallel()
	store := state.NewMemory()
	fence, err := store.Claim(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	n := &inventory.Node{Name: "n7", Serial: "OLD1", BootMAC: oldMAC}
	r := Replacement{Node: "n7", Chassis: Chassis{"NEW1", "u-new", newMAC}, Was: chassisOf(n)}
	p, err := state.PutOf(state.Key{Kind: replacementKind, Name: "n7"}, r)
	if err == nil {
		_, err = store.Append(t.Context(), fence, state.Batch{Puts: []state.Put{p}})
	}
	if err != nil {
		t.Fatal(err)
	}
	s := &Site{Inv: &inventory.Inventory{Nodes: []*inventory.Node{n}}, network: network.NewMemory().At(netip.MustParseAddr("192.0.2.1"))}
	l, err := s.driftLook(t.Context(), store, fence, DriftOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l.close()
	if chassisOf(n) != r.Chassis {
		t.Errorf("%+v", chassisOf(n))
	}
}
