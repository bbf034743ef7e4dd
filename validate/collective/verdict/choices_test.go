// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/nccl"
)

// TestChoices: a run with a library or an algorithm that most of four runs or more do not use
// is bad, and stays so when it is made once more.
func TestChoices(t *testing.T) {
	t.Parallel()
	of := func(m nccl.Measured) *grouprun.Run {
		return &grouprun.Run{Scope: "node", Nodes: []*inventory.Node{{}}, Got: m}
	}
	usual := nccl.Measured{Library: "2.28.9", Algorithm: "NVLS"}
	older, ring, silent := usual, usual, nccl.Measured{}
	older.Library, ring.Algorithm = "2.19.3", "Ring"
	for _, c := range []struct {
		name string
		runs []nccl.Measured
		bad  bool // the first one
	}{
		{"another library", []nccl.Measured{older, usual, usual, usual}, true},
		{"another algorithm", []nccl.Measured{ring, usual, usual, usual}, true},
		{"nothing is said", []nccl.Measured{silent, usual, usual, usual, usual}, false},
		{"too few", []nccl.Measured{older, usual, usual}, false},
		{"half of them", []nccl.Measured{older, older, usual, usual}, false},
	} {
		test := &Test{common: map[likeness]string{}}
		var runs []*grouprun.Run
		for _, m := range c.runs {
			runs = append(runs, of(m))
		}
		test.judgeChoices(runs)
		again := of(c.runs[0])
		test.judgeChoices([]*grouprun.Run{again})
		if (runs[0].Why != "") != c.bad || (again.Why != "") != c.bad || runs[len(runs)-1].Why != "" {
			t.Errorf("%s: %q, again %q, of the last %q", c.name, runs[0].Why, again.Why, runs[len(runs)-1].Why)
		}
	}
}
