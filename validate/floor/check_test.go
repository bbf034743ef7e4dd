package floor

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/checktest"
)

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	checktest.Run(t, "testdata/diagnostics", inventory.Options{Checks: []inventory.Check{Check}})
}

// Every floor is of something that is measured, in bytes per second.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, f := range gpuFloors {
		if m, ok := measureOf(f.measure); !ok || m.AtMost {
			t.Errorf("%s has a floor of %q, which has none", f.model, f.measure)
		}
		if f.source == "" || f.least < gb {
			t.Errorf("%s %s: %v from %q", f.model, f.measure, f.least, f.source)
		}
	}
	if !slices.IsSortedFunc(Measures, func(a, b Measure) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	}) {
		t.Error("the measures are not sorted")
	}
}

// A chassis of which nothing is known has no floor, whatever is asked.
func TestNoFloor(t *testing.T) {
	t.Parallel()
	c := check{v: &inventory.Validation{AllReduce: &inventory.CollectiveTest{Scope: []string{"node", "all"}}}}
	for _, m := range Measures {
		if least, source := c.floorOf(m.Name, &inventory.Hardware{}); least != 0 || source != "" {
			t.Errorf("%s: %v from %q", m.Name, least, source)
		}
	}
}

// Small packets leave RDMA less of the wire, and a floor asks no more than that.
func TestPackets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		fabric  inventory.Fabric
		payload int
		percent int // of the 96 of full packets
	}{
		{"InfiniBand", inventory.Fabric{Block: inventory.Block{Kind: "infiniband"}}, 4096, 96},
		{"InfiniBand, whatever IP it carries", inventory.Fabric{Block: inventory.Block{Kind: "infiniband"}, MTU: 2044}, 4096, 96},
		{"jumbo frames", inventory.Fabric{Block: inventory.Block{Kind: "roce"}, MTU: 9000}, 4096, 96},
		{"the least that has room for full packets", inventory.Fabric{Block: inventory.Block{Kind: "roce"}, MTU: 4192}, 4096, 96},
		{"a byte less", inventory.Fabric{Block: inventory.Block{Kind: "roce"}, MTU: 4191}, 2048, 94},
		{"Ethernet", inventory.Fabric{Block: inventory.Block{Kind: "roce"}, MTU: 1500}, 1024, 90},
		{"not given", inventory.Fabric{Block: inventory.Block{Kind: "roce"}}, 1024, 90},
		{"IPv6", inventory.Fabric{Block: inventory.Block{Kind: "roce"}, CIDR: netip.MustParsePrefix("fd00::/48")}, 1024, 89},
		{"the least of IPv4", inventory.Fabric{Block: inventory.Block{Kind: "roce"}, MTU: 576}, 256, 74},
		{"smaller than any", inventory.Fabric{Block: inventory.Block{Kind: "roce"}, MTU: 100}, 256, 74},
	}
	for _, tt := range tests {
		percent, why := at(wireShare, &tt.fabric)
		if got := payload(&tt.fabric); got != tt.payload || percent != tt.percent || (why == "") != (percent == wireShare) {
			t.Errorf("%s: %d bytes, %d%% (%q), want %d and %d%%", tt.name, got, percent, why, tt.payload, tt.percent)
		}
	}
}
