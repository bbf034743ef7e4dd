// SPDX-License-Identifier: Apache-2.0

package floor

import (
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// TestShares: a floor that is a share of something is that share of it.
func TestShares(t *testing.T) {
	t.Parallel()
	share, shares := regexp.MustCompile(`^(\d+)% of (?:the data sheet's )?(\d+) GB/s`), 0
	for _, f := range gpuFloors {
		m := share.FindStringSubmatch(f.source)
		if m == nil {
			continue
		}
		percent, _ := strconv.ParseFloat(m[1], 64)
		whole, _ := strconv.ParseFloat(m[2], 64)
		if want := percent / 100 * whole; math.Abs(want-float64(f.least)/gb) > want/100 {
			t.Errorf("%s %s: %v is not %s of %s", f.model, f.measure, f.least, m[1], m[2])
		}
		shares++
	}
	if shares < 10 {
		t.Errorf("%d shares", shares)
	}
}

// TestMemories: every model of which there is a data sheet has a floor for its
// memory, and cards without links between them have none.
func TestMemories(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]float64{"H100 SXM5 80GB": 2850, "H200": 3960, "H200 SXM 141GB": 3960, "A100-SXM4-80GB": 1449, "A100 SXM4 40GB": 1088, "A100": 1088, "B200": 5390, "B300": 5600,
		"GB200": 6290, "GB300": 5600, "MI300X": 4177, "Instinct MI325X": 4200, "MI350X": 5600, "MI355X": 5600, "H20": 0, "L40S": 0} {
		h := &inventory.Hardware{GPUs: []inventory.GPU{{Model: model, Count: 8, Interconnect: "nvswitch"}}}
		if least, source := OfGPU(h, HBMCopy); least != want*gb || (source == "") != (want == 0) {
			t.Errorf("%s: %v from %q, want %v GB/s", model, least, source, want)
		}
		h.GPUs[0].Interconnect = ""
		if !strings.Contains(model, "SXM") {
			want = 0
		}
		if least, _ := OfGPU(h, HBMCopy); least != want*gb {
			t.Errorf("%s without links: %v, want %v GB/s", model, least, want)
		}
	}
}

// A module that stands alone has the memory of its model, a card of that name has not.
func TestLoneModules(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]float64{"NVIDIA H200": 3960, "NVIDIA H200 NVL": 0, "NVIDIA H100 80GB HBM3": 2850, "NVIDIA H100 NVL": 0, "NVIDIA H100 PCIe": 0, "NVIDIA A100-SXM4-80GB": 1449, "NVIDIA A100 80GB PCIe": 0} {
		h := &inventory.Hardware{GPUs: []inventory.GPU{{Model: model, Count: 1}}}
		if least, _ := OfGPU(h, HBMCopy); least != want*gb {
			t.Errorf("%s: %v, want %v GB/s", model, least, want)
		}
		if least, _ := OfGPU(h, PeerRead); least != 0 {
			t.Errorf("%s reads from another GPU at %v", model, least)
		}
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
		percent, why := rateAt(wireShare, &tt.fabric)
		if got := payloadOf(&tt.fabric); got != tt.payload || percent != tt.percent || (why == "") != (percent == wireShare) {
			t.Errorf("%s: %d bytes, %d%% (%q), want %d and %d%%", tt.name, got, percent, why, tt.payload, tt.percent)
		}
	}
}
