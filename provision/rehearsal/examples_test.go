package rehearsal_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/rehearsal"
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

// TestExamples: every example site passes its check and runs unchanged on the
// virtual rack, but for what a plan cannot hold yet; those with a variable of a
// size are reduced by it.
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
			if racing && filepath.Base(dir) == "h100-4su" {
				t.Skip("127 nodes take too long with the race detector")
			}
			vars := map[string]string{}
			if filepath.Base(dir) == "scale" {
				vars["nodes"] = "20"
			}
			checks(t, dir, vars)
			inv := load(t, dir, vars)
			before := listing(t, dir)
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 2})
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
