// SPDX-License-Identifier: Apache-2.0

package cohort_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/burnin/cohort"
)

// fleet is n nodes of four GPUs. Those at the rear are ten degrees warmer, as they
// are: no GPU may be held against that of another slot.
func fleet(n int) (nodes []cohort.Node) {
	for i := range n {
		node := cohort.Node{Name: fmt.Sprintf("n%d", i), Names: map[string]string{}}
		for g := range 4 {
			at := fmt.Sprintf("0000:%02x:00.0", 0x10+g)
			node.Names[at] = fmt.Sprintf("GPU %d at %s", g, at)
			node.GPUs = append(node.GPUs, wire.BurnGPU{Address: at, Core: span(30, 60+float64(i%3)+float64(10*(g/2))), Power: span(70, 699), Clock: wire.Span{Least: 345, Most: 1980, Mean: 1750 + 15*float64(i%3), Count: 300}})
		}
		nodes = append(nodes, node)
	}
	return nodes
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		nodes int
		spoil func([]cohort.Node)
		want  string // part and a part of the cause; empty: nothing
	}{
		{"alike", 6, func([]cohort.Node) {}, ""},
		{"one GPU", 6, func(l []cohort.Node) { l[4].GPUs[0].Core = span(30, 71) }, "n4 GPU 0 at 0000:10:00.0: it got 71 °C warm under load, 10 more than the median of its slot"},
		{"as warm as the rear ones are", 6, func(l []cohort.Node) { l[4].GPUs[3].Core = span(30, 79) }, ""},
		{"memory that gets warm by itself", 6, func(l []cohort.Node) {
			for i := range l {
				l[i].GPUs[1].Memory = span(40, 80)
			}
			l[5].GPUs[1].Memory = span(40, 91)
		}, "n5 GPU 1 at 0000:11:00.0: its memory got 91 °C warm under load, 11 more than the median of its slot"},
		{"a GPU that draws less", 6, func(l []cohort.Node) { l[1].GPUs[2].Power.Mean = 560 }, "n1 GPU 2 at 0000:12:00.0: it drew 560 W on average under load, 80% of the median of its slot: that alone is no fault"},
		{"a GPU that draws somewhat less", 6, func(l []cohort.Node) { l[1].GPUs[2].Power.Mean = 610 }, ""},
		{"the whole node", 6, func(l []cohort.Node) {
			for g := range 3 {
				l[2].GPUs[g].Core = span(30, 85)
			}
		}, "n2 cooling 3 of 4 GPUs got more than 8 °C warmer"},
		{"the whole node, whose air was found too warm", 6, func(l []cohort.Node) {
			l[2].Cooling = "inlet air"
			for g := range 3 {
				l[2].GPUs[g].Core = span(30, 85)
			}
		}, "n2 cooling 3 of 4 GPUs got more than 8 °C warmer under load than those of other nodes in the same slots, as its inlet air lets expect"},
		{"a slow GPU", 6, func(l []cohort.Node) { l[3].GPUs[1].Clock.Mean = 1500 }, "n3 GPU 1 at 0000:11:00.0: it computed at 1500 MHz on average under load, 85% of the median of its slot"},
		{"a slow GPU that heat held down", 6, func(l []cohort.Node) {
			l[3].GPUs[1].Clock.Mean, l[3].GPUs[1].Held = 1500, map[string]int{"hw_thermal_slowdown": 3}
		}, ""},
		{"a GPU that computes less at the same clock", 6, func(l []cohort.Node) {
			for i := range l {
				l[i].Rates = map[string]burnin.Rate{"0000:11:00.0": {Mean: 50000}}
			}
			l[3].Rates["0000:11:00.0"] = burnin.Rate{Mean: 42000}
		}, "n3 GPU 1 at 0000:11:00.0: it computed 42000 GFLOPS on average under load, 84% of the median of its slot"},
		{"few say how much they compute", 6, func(l []cohort.Node) {
			for i := range 3 {
				l[i].Rates = map[string]burnin.Rate{"0000:11:00.0": {Mean: 50000 / float64(i+1)}}
			}
		}, ""},
		{"a GPU that stands still", 6, func(l []cohort.Node) { l[3].GPUs[1].Clock = wire.Span{Count: 300} }, "n3 GPU 1 at 0000:11:00.0: it computed at 0 MHz on average under load, 0% of the median of its slot"},
		{"a clock within what fleets spread by", 6, func(l []cohort.Node) { l[3].GPUs[1].Clock.Mean = 1640 }, ""},
		{"a slow node", 6, func(l []cohort.Node) {
			for g := range l[3].GPUs {
				l[3].GPUs[g].Clock.Mean = 1200
			}
		}, "n3 GPUs 4 of 4 GPUs computed less than 90% of what those of other nodes"},
		{"too few", 3, func(l []cohort.Node) { l[1].GPUs[0].Core = span(30, 90) }, ""},
		{"nobody saw a sensor", 6, func(l []cohort.Node) {
			for i := range l {
				l[i].GPUs[0].Core = wire.Span{}
			}
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nodes := fleet(c.nodes)
			c.spoil(nodes)
			_, odd := cohort.CompareNodes(nodes)
			if c.want == "" {
				if len(odd) != 0 {
					t.Errorf("%+v", odd)
				}
				return
			}
			if len(odd) != 1 {
				t.Fatalf("%+v", odd)
			}
			o := odd[0]
			got := o.Node + " " + o.Part + " " + o.Cause
			if strings.HasPrefix(o.Cause, o.Part) {
				got = o.Node + " " + o.Cause
			}
			if !strings.HasPrefix(got, c.want) || o.Note != (strings.Contains(c.want, "no fault") || strings.Contains(c.want, "lets expect")) || !o.Note && (o.Action == "" || len(o.Evidence) == 0) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	slots, _ := cohort.CompareNodes(fleet(5))
	if len(slots) != 4 || slots[0].Median != 61 || slots[3].Median != 71 || slots[0].Nodes != 5 || slots[0].Most != 62 {
		t.Errorf("%+v", slots)
	}
}

// span is one that was seen often.
func span(least, most float64) wire.Span {
	return wire.Span{Least: least, Most: most, Mean: most, Count: 360}
}
