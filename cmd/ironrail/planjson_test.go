// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/ironrail/ironrail/engine/plan"
)

// TestPlanAsJSON holds `plan --json`, which other people's programs read, to a golden
// file, and to what --out saves: fields are added, and none goes or changes its name.
func TestPlanAsJSON(t *testing.T) {
	t.Parallel()
	const path = "testdata/plan-json.golden"
	var b bytes.Buffer
	p := samplePlan("(outside)")
	p.Orphaned = []plan.OrphanedNode{{Node: "n9"}}
	a := newApp(&b, &b)
	a.json = true
	if err := a.printJSON(p); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s differs; run with -update and look at the difference. Got:\n%s", path, b.String())
	}
}
