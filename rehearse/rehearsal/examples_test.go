// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/fabric/topology"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/validate/floor"
)

// warned are the checks that an example rightly has warnings of; the others have
// none. Those of mixed are errors that it allows.
var warned = map[string][]string{
	"demo":  {"driver.gpu"},
	"scale": {"driver.gpu"},
	"mixed": {"cooling.rack", "power.one-feed"},
}

// counted is what examples hold: nodes, GPUs, switches, and cables that end in a
// node or a manager, and between switches. Those of h100-4su are the table of the
// reference architecture RA-11333.
var counted = map[string][5]int{
	"hgx-h100":    {4, 32, 3, 40, 0},
	"h100-su":     {32, 256, 14, 320, 256},
	"h100-4su":    {127, 1016, 48, 1020, 1024},
	"nvl72":       {72, 288, 57, 288, 320},
	"mi300x-roce": {16, 128, 12, 128, 256},
	"mixed":       {14, 64, 2, 40, 0},
	"csv-12500":   {24, 192, 5, 192, 96},
}

// TestCountsOfExamples: what the rules of topologies make of the examples.
func TestCountsOfExamples(t *testing.T) {
	t.Parallel()
	for name, want := range counted {
		inv := load(t, "../../examples/"+name, nil)
		s := inv.Summary()
		got := [5]int{s.Nodes, s.GPUs, s.Switches}
		for _, c := range inv.Cables {
			if c.From.Switch != nil && c.To.Switch != nil {
				got[4]++
			} else {
				got[3]++
			}
		}
		if got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// TestUnitsOfExamples: the leaves that nodes end on are of the units that the files
// give, and an all-reduce over each unit of h100-4su is planned.
func TestUnitsOfExamples(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"h100-4su": "1:32 2:32 3:32 4:31", "h100-su": "1:32", "nvl72": "1:18 2:18 3:18 4:18"} {
		inv := load(t, "../../examples/"+name, nil)
		by := map[int]int{}
		given := map[*inventory.Node]int{}
		for _, n := range inv.Nodes {
			given[n], n.ScalableUnit = n.ScalableUnit, 0
		}
		for n, u := range topology.UnitsOf(inv, floor.MainFabric) {
			by[u]++
			if u != given[n] {
				t.Errorf("%s: unit %d by its leaves, %d by the files", n.Name, u, given[n])
			}
		}
		var got []string
		for _, u := range slices.Sorted(maps.Keys(by)) {
			got = append(got, fmt.Sprintf("%d:%d", u, by[u]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: units %v, want %s", name, got, want)
		}
	}
}

// large are sites of 32, 72 and 127 nodes.
var large = []string{"h100-su", "nvl72", "h100-4su"}

// asPlanned are steps that take as long as they are told: by the site, or, to measure a host, by
// the check itself; and those that read and, seldom, switch their node.
var asPlanned = []string{"nics.settings", "validate.burn", "validate.after", "validate.speed", "validate.throughput"}

// TestExamples: every example site passes its check and runs unchanged on the virtual
// rack, where all nodes are accepted; those with a variable of a size are reduced by it.
func TestExamples(t *testing.T) {
	t.Parallel()
	folders, err := filepath.Glob("../../examples/*/site.hcl")
	if err != nil || len(folders) < 3 {
		t.Fatalf("%d example sites: %v", len(folders), err)
	}
	for _, path := range folders {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			if racing && slices.Contains(large, filepath.Base(dir)) {
				t.Skip("too many nodes for the race detector: make test rehearses this site without it")
			}
			vars := map[string]string{}
			if filepath.Base(dir) == "scale" {
				vars["nodes"] = "20"
			}
			checks(t, dir, vars)
			inv := load(t, dir, vars)
			before := listing(t, dir)
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 2, OnPlan: func(_ *plan.Plan, p predict.Prediction) {
				for _, k := range p.Kinds {
					if k.Source != "table" && !slices.Contains(asPlanned, k.Kind) {
						t.Errorf("the prediction's table has no row for %s (%s)", k.Kind, k.Source)
					}
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			if len(sum.Accepted) != len(inv.Nodes) || !sum.AsExpected() {
				t.Errorf("accepted %v of %d, quarantined %+v, findings %+v", sum.Accepted, len(inv.Nodes), sum.Quarantined, sum.Findings)
			}
			if after := listing(t, dir); after != before {
				t.Errorf("the site's folder held %q and holds %q", before, after)
			}
		})
	}
}

// listing names what lies in a folder.
func listing(t *testing.T, dir string) (names string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names += e.Name() + " "
	}
	return names
}

// checks wants a site without errors, and with the warnings that it is known for.
func checks(t *testing.T, dir string, vars map[string]string) {
	t.Helper()
	_, diags, _ := provision.Load(dir, inventory.Options{Variables: vars, Now: today})
	want := warned[filepath.Base(dir)]
	for _, d := range diags {
		if d.Severity == diag.Error || !slices.Contains(want, d.Check) {
			t.Errorf("[%s] %s: %s", d.Check, d.Summary, d.Detail)
		}
	}
	for _, check := range want {
		if !slices.ContainsFunc(diags, func(d inventory.Diagnostic) bool { return d.Check == check }) {
			t.Errorf("no finding of %s any more", check)
		}
	}
}
