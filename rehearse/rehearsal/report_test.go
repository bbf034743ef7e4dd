// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestReport: the report of a rehearsal with a bad GPU and a bad rail has a page for each,
// with serial numbers, places and what vendors' programs collected, names the chain of
// all raw outputs, and fits 80 columns.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var faults []fault.Fault
	for _, text := range []string{"kind=gpu-xid,node=r01-u01,gpu=3", "kind=high-ber,node=r01-u17,port=rail/2"} {
		f, err := fault.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		faults = append(faults, f)
	}
	var in report.Input
	if _, err := rehearsal.Run(context.Background(), load(t, "../../examples/hgx-h100", nil), rehearsal.Options{Seed: 1, Faults: faults, Dir: dir, OnReport: func(made report.Input) error { in = made; return nil }}); err != nil {
		t.Fatal(err)
	}
	if in.Chain == nil || in.Origin == "" || len(in.Racks) == 0 {
		t.Fatalf("chain %v, origin %q, %d racks", in.Chain, in.Origin, len(in.Racks))
	}
	for _, text := range in.Untested { // all of these nodes were in the measurement of their role
		if strings.HasPrefix(text, "what TCP carries") {
			t.Errorf("the report says: %s", text)
		}
	}
	gpu, rail := report.Failed(in, []string{"r01-u01"}), report.Failed(in, []string{"r01-u17"})
	if len(gpu) != 1 || len(rail) != 1 {
		t.Fatalf("%d parts of r01-u01, %d of r01-u17", len(gpu), len(rail))
	}
	has := func(p *report.FailedPart, what string) bool {
		return slices.ContainsFunc(p.Parts(), func(x report.Part) bool {
			return strings.HasPrefix(x.What, what) && (x.Serial != "" || what == "cable")
		})
	}
	var refs []string
	for _, c := range []struct {
		of       *report.FailedPart
		parts    []string
		programs []string
	}{{gpu[0], []string{"GPU 3", "node r01-u01"}, []string{"nvidia-bug-report.sh"}},
		{rail[0], []string{"NIC rail/2", "node r01-u17"}, []string{"mlxlink of mlx5_", "mlxlink --amber_collect of mlx5_"}}} {
		for _, what := range c.parts {
			if !has(c.of, what) {
				t.Errorf("%s: no %s with a serial number in %+v", c.of.Title, what, c.of.Parts())
			}
		}
		if len(c.of.Places()) == 0 || c.of.At.IsZero() || len(c.of.Return) == 0 {
			t.Errorf("%s: places %q, found %s", c.of.Title, c.of.Places(), c.of.At)
		}
		for _, program := range c.programs {
			i := slices.IndexFunc(c.of.Bundles(), func(b report.Bundle) bool { return strings.HasPrefix(b.Program, program) })
			if i < 0 || c.of.Bundles()[i].Ref == "" {
				t.Errorf("%s: nothing of %s in %+v", c.of.Title, program, c.of.Bundles())
				continue
			}
			refs = append(refs, c.of.Bundles()[i].Ref)
		}
	}
	if !slices.ContainsFunc(gpu[0].Bundles(), func(b report.Bundle) bool { return b.Ref == "" && strings.Contains(b.Why, "shows no diagnostic data") }) {
		t.Errorf("it is not said that this maker's BMC collects nothing: %+v", gpu[0].Bundles())
	}
	if missing, err := evidence.Verify(dir+"/state/evidence", *in.Chain, refs); err != nil || missing > 0 {
		t.Errorf("%d missing: %v", missing, err)
	}
	var text, parts bytes.Buffer
	if err := report.Text(&text, in); err != nil {
		t.Fatal(err)
	}
	if _, err := report.PartsText(&parts, in, nil); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String() + parts.String()) {
		if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) > 80 && len(strings.Fields(line)) > 1 {
			t.Errorf("longer than 80 columns: %s", line)
		}
	}
}
