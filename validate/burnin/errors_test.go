// SPDX-License-Identifier: Apache-2.0

package burnin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/tool/amdsmi"
	"github.com/ironrail/ironrail/tool/nvidiasmi"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/burnin/cohort"
	"github.com/ironrail/ironrail/validate/gate/look"
)

func pointer[T any](v T) *T { return &v }

// link is a PCIe link of 16 lanes that has counted so many errors.
func link(address, speed string, counted int64) wire.PCILink {
	gts := map[string]float64{"gen4": 16, "gen5": 32}[speed]
	return wire.PCILink{Address: address, Width: pointer(16), MaxSpeed: &gts, Corrected: &counted}
}

func TestLinkErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after look.Seen
		cause         string // empty: no fault
		note          string
	}{
		{"none", look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 3)}}}, look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 3)}}}, "", ""},
		{"as many as PCIe allows", look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 3)}}}, look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 933)}}}, "", ""},
		{"more", look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 3)}}}, look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 963)}}},
			"GPU 0 at a: its PCIe link corrected 32 errors a minute under load; 31 are the most of a good one", ""},
		{"more than half as fast a link may", look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen4", 0)}}}, look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen4", 500)}}},
			"17 errors a minute under load; 16 are the most", ""},
		{"replays that AER does not report",
			look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 0)}}, NVIDIA: &nvidiasmi.Log{GPUs: []nvidiasmi.GPU{{BusID: "a", PCIe: nvidiasmi.PCIe{Replays: pointer[int64](0)}}}}},
			look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 0)}}, NVIDIA: &nvidiasmi.Log{GPUs: []nvidiasmi.GPU{{BusID: "a", PCIe: nvidiasmi.PCIe{Replays: pointer[int64](3000)}}}}},
			"100 errors a minute", ""},
		{"replays of AMD",
			look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 0)}}, AMD: &amdsmi.Report{GPUs: []amdsmi.GPU{{BDF: "a", Metric: &amdsmi.Metric{Replays: pointer[int64](1)}}}}},
			look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 0)}}, AMD: &amdsmi.Report{GPUs: []amdsmi.GPU{{BDF: "a", Metric: &amdsmi.Metric{Replays: pointer[int64](3001)}}}}},
			"100 errors a minute", ""},
		{"nobody counted before", look.Seen{}, look.Seen{Health: wire.Health{PCI: []wire.PCILink{link("a", "gen5", 90000)}}}, "", ""},
		{"HBM", look.Seen{AMD: &amdsmi.Report{GPUs: []amdsmi.GPU{{BDF: "a", Metric: &amdsmi.Metric{Blocks: map[string]amdsmi.ECC{"UMC": {Correctable: pointer[int64](2)}}}}}}},
			look.Seen{AMD: &amdsmi.Report{GPUs: []amdsmi.GPU{{BDF: "a", Metric: &amdsmi.Metric{Blocks: map[string]amdsmi.ECC{"UMC": {Correctable: pointer[int64](14)}}}}}}},
			"", "the memory of GPU 0 at a corrected 12 errors under load: that alone is no fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := nvidia()
			s.Names = map[string]string{"a": "GPU 0 at a", "0000:19:00.0": "GPU 0 at 0000:19:00.0", "0000:3b:00.0": "GPU 1 at 0000:3b:00.0"}
			s.Result.Seconds = 1800
			s.Before, s.After = c.before, c.after
			faults, notes, err := burnin.Judge(burnin.Of(hardware("nvidia", "H100"), long), long, s)
			if err != nil || (len(faults) > 0) != (c.cause != "") || (len(notes) > 0) != (c.note != "") {
				t.Fatalf("%+v, %q, %v", faults, notes, err)
			}
			if c.cause != "" && !strings.Contains(faults[0].Cause, c.cause) || c.note != "" && notes[0] != c.note {
				t.Errorf("%+v, %q", faults, notes)
			}
		})
	}
}

// TestOddLinks: a link that makes errors while the same slot of others makes none is found
// below what PCIe allows; one whose slot makes as many everywhere is not.
func TestOddLinks(t *testing.T) {
	t.Parallel()
	const at = "0000:10:00.0"
	nodes := func(n int, errors ...int64) (list []cohort.Node) {
		for i := range n {
			e := errors[i%len(errors)]
			node := cohort.Node{Name: fmt.Sprintf("n%d", i), LinksTold: 20}
			if e > 0 {
				node.Links = map[string]burnin.LinkErrors{at: {AER: e, PerMinute: float64(e) / 30, Limit: 31}}
			}
			list = append(list, node)
		}
		return list
	}
	for _, c := range []struct {
		name  string
		nodes []cohort.Node
		blame string
	}{
		{"one of ten", nodes(10, 0, 0, 0, 0, 300, 0, 0, 0, 0, 0), "n4"},
		{"few in an hour", nodes(10, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0), ""},
		{"all of them", nodes(10, 300, 280, 310), ""},
		{"three times as many as most", nodes(10, 100, 100, 100, 100, 300, 100, 100, 100, 100, 100), ""},
		{"too few to compare", nodes(3, 300, 0, 0), ""},
		{"found by itself already", nodes(10, 0, 0, 0, 0, 3000, 0, 0, 0, 0, 0), ""},
	} {
		_, odd := cohort.CompareNodes(c.nodes)
		switch {
		case c.blame == "" && len(odd) > 0:
			t.Errorf("%s: %+v", c.name, odd)
		case c.blame != "" && (len(odd) != 1 || odd[0].Node != c.blame || !strings.Contains(odd[0].Cause, "its PCIe link corrected 10.0 errors a minute under load, those in the same slot of other nodes 0.0")):
			t.Errorf("%s: %+v", c.name, odd)
		}
	}
}
