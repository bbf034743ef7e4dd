package rehearsal_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/ironrail/ironrail/provision/rehearsal"
)

// TestExamples: every example site runs unchanged on the virtual rack.
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
			vars := map[string]string{}
			if filepath.Base(dir) == "scale" {
				vars["nodes"] = "20"
			}
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
