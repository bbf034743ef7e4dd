// SPDX-License-Identifier: Apache-2.0

package burnin_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/burnin"
	"github.com/ironrail/ironrail/validate/burnin/cohort"
)

func hardware(vendor, model string) *inventory.Hardware {
	return &inventory.Hardware{GPUs: []inventory.GPU{{Vendor: vendor, Model: model}}}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		model, config string
		least         float64
	}{
		{"MI300X", "target_stress: 70000\n  hot_calls: 1000\n  matrix_size_a: 8192\n", 66500},
		{"Instinct mi300x", "ops_type: dgemm\n", 66500},
		{"MI325X", "target_stress: 70000\n", 66500},
		{"MI308X", "target_stress: 172333\n", 163716.35},
		{"MI350X", "target_stress: 956000\n", 908200},
		{"MI355X", "data_type: bf16_r\n", 908200},
		{"MI250X", "target_stress: 30000\n", 28500},
		{"MI210", "target_stress: 30000\n", 28500},
		{"MI300A", "target_stress: 1\n", 0},
		{"MI100", "target_stress: 1\n", 0},
	} {
		l := burnin.Of(hardware("amd", c.model), 30*time.Minute)
		if l.Least != c.least || !strings.Contains(l.Config, c.config) || (l.Source == "") != (c.least == 0) {
			t.Errorf("%s: at least %g GFLOPS by %q, %s", c.model, l.Least, l.Source, l.Config)
		}
	}
}

// TestScatter: what healthy parts differ by loses nobody, be it each GPU's own or that of a
// rack or a slot.
func TestScatter(t *testing.T) {
	t.Parallel()
	const nodes, racks, gpus = 1000, 125, 8
	r := rand.New(rand.NewPCG(17, 4))
	within := func(share float64) float64 { return 1 + share*(2*r.Float64()-1) }
	for _, by := range []string{"part", "rack", "slot"} {
		rack, slot := make([]float64, racks), make([]float64, gpus)
		for i := range rack {
			rack[i] = within(0.02)
		}
		for i := range slot {
			slot[i] = within(0.04)
		}
		var fleet []cohort.Node
		for i := range nodes {
			n := cohort.Node{Name: fmt.Sprintf("n%d", i), Rates: map[string]burnin.Rate{}}
			for g := range gpus {
				at := fmt.Sprintf("0000:%02x:00.0", 0x10+g)
				clock, rate := within(0.04), within(0.04)
				switch by {
				case "rack":
					clock, rate = rack[i/gpus]*within(0.02), rack[i/gpus]*within(0.02)
				case "slot":
					clock, rate = slot[g]*within(0.04), slot[g]*within(0.04)
				}
				n.GPUs = append(n.GPUs, wire.BurnGPU{Address: at, Core: span(30, 60*within(0.04)), Clock: wire.Span{Least: 345, Most: 1980, Mean: 1750 * clock, Count: 300}})
				n.Rates[at] = burnin.Rate{Mean: 81000 * rate, Best: 82000 * rate}
			}
			fleet = append(fleet, n)
		}
		if _, odd := cohort.CompareNodes(fleet); len(odd) != 0 {
			t.Errorf("4%% of scatter by %s: %d are blamed, first %+v", by, len(odd), odd[0])
		}
		fleet[17].Rates["0000:12:00.0"] = burnin.Rate{Mean: 69000 * slot[2], Best: 70000}
		if by == "rack" {
			fleet[17].Rates["0000:12:00.0"] = burnin.Rate{Mean: 69000, Best: 70000}
		}
		if _, odd := cohort.CompareNodes(fleet); len(odd) != 1 || odd[0].Node != "n17" || !strings.Contains(odd[0].Cause, "it computed ") || !strings.Contains(odd[0].Cause, "GFLOPS on average under load") {
			t.Errorf("by %s: %+v", by, odd)
		}
	}
}
