// SPDX-License-Identifier: Apache-2.0

package donesite_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ironrail/ironrail/examples/csv-12500/nodes"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision"
)

// site copies the site with a list of so many nodes.
func site(t testing.TB, count int) string {
	t.Helper()
	dir := t.TempDir()
	text, err := os.ReadFile("../../examples/csv-12500/site.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "site.hcl"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := os.Create(filepath.Join(dir, "nodes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	if err := nodes.Write(list, count); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestLongSizes: lists of several lengths make a site without a finding, with each
// switch in a place and a cable at each rail. The last one is 100,000 GPUs. Between
// them the design changes: above 64 leaves (512 nodes) links are halves of ports,
// above 128 (1,024) there are three levels.
func TestLongSizes(t *testing.T) {
	t.Parallel()
	sizes := []int{9, 24, 512, 520, 1000, 1024, 1032, 4096, 5000, 12500}
	if testing.Short() {
		sizes = sizes[:5]
	}
	for _, nodes := range sizes {
		began := time.Now()
		inv, diags, _ := provision.Load(site(t, nodes), inventory.Options{Now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)})
		t.Logf("%d nodes, %d racks, %d switches, %d cables: %v", nodes, len(inv.Racks), len(inv.Switches), len(inv.Cables), time.Since(began))
		for _, d := range diags {
			t.Errorf("%d nodes: [%s] %s: %s", nodes, d.Check, d.Summary, d.Detail)
		}
		if len(inv.Nodes) != nodes {
			t.Errorf("%d nodes of %d", len(inv.Nodes), nodes)
		}
		rails := 0
		for _, c := range inv.Cables {
			if c.From.Node != nil {
				rails++
			}
		}
		if rails != 8*nodes {
			t.Errorf("%d nodes have %d cables at their rails, want %d", nodes, rails, 8*nodes)
		}
	}
}
