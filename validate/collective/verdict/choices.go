// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"fmt"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/grouprun"
)

// likeness is what runs have in common that should use the same: of the algorithm the scope,
// the operation, the hardware and the number of nodes, of the library nothing but the test.
type likeness struct {
	what        string
	scope, does string
	hardware    *inventory.Hardware
	nodes       int
}

// choices are what a run used, by what they are called in sentences. The library chooses its
// algorithm by the size, the number of ranks and the links that it sees (NCCL's
// src/graph/tuning.cc), which are the same on nodes that are alike.
var choices = []struct {
	what  string
	of    func(*grouprun.Run) string
	alike func(*grouprun.Run) likeness
}{
	{"version of the library", func(b *grouprun.Run) string { return b.Got.Library }, func(*grouprun.Run) likeness { return likeness{what: "library"} }},
	{"algorithm", func(b *grouprun.Run) string { return b.Got.Algorithm }, func(b *grouprun.Run) likeness {
		return likeness{"algorithm", b.Scope, b.Does, b.Nodes[0].Hardware, len(b.Nodes)}
	}},
}

// judgeChoices judges runs that used another version of the library, or another algorithm,
// than three quarters of at least four runs like them: an image that is not that of the
// others, or links that the library does not see there. What most use is kept for runs that
// are made once more.
func (c *Test) judgeChoices(runs []*grouprun.Run) {
	for _, what := range choices {
		count := map[likeness]map[string]int{}
		for _, b := range runs {
			if k := what.alike(b); b.Err == nil && what.of(b) != "" {
				if count[k] == nil {
					count[k] = map[string]int{}
				}
				count[k][what.of(b)]++
			}
		}
		for k, values := range count {
			if v := mostOf(values); v != "" {
				c.common[k] = v
			}
		}
		for _, b := range runs {
			common, is := c.common[what.alike(b)], what.of(b)
			if odd := common != "" && is != "" && is != common; odd && b.Why == "" && b.Err == nil {
				b.Why = fmt.Sprintf("%s %q, and that of such runs is %q", what.what, is, common)
			}
		}
	}
}

// mostOf returns the value that three quarters of four runs or more have; "" where there is
// none.
func mostOf(values map[string]int) (common string) {
	all, most := 0, 0
	for v, n := range values {
		if all += n; n > most {
			common, most = v, n
		}
	}
	if all < cohortLeast || 4*most < 3*all {
		return ""
	}
	return common
}
