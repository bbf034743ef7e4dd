// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
	"time"
)

// Phase is the wall time of one stage on one node, from the start of its first
// step to the end of its last. Waiting between steps is in it.
type Phase struct {
	Node  string // empty for groups and the site
	Stage string
	Steps int
	Wall  time.Duration
}

// Phases returns the phases of a run in the order in which they began on each
// node; nodes are sorted by name, groups and the site last. Steps that did not
// start are not counted.
func Phases(steps []Step) []Phase {
	type span struct {
		Phase
		from, to time.Time
	}
	var spans []span
	for _, s := range steps {
		if s.Started.IsZero() {
			continue
		}
		end := s.Started.Add(time.Duration(s.Took))
		i := slices.IndexFunc(spans, func(p span) bool { return p.Node == s.Node && p.Stage == s.Stage })
		if i < 0 {
			spans = append(spans, span{Phase{Node: s.Node, Stage: s.Stage}, s.Started, end})
			i = len(spans) - 1
		}
		p := &spans[i]
		p.Steps++
		if s.Started.Before(p.from) {
			p.from = s.Started
		}
		if end.After(p.to) {
			p.to = end
		}
	}
	slices.SortStableFunc(spans, func(a, b span) int {
		return cmp.Or(compareBools(a.Node == "", b.Node == ""), cmp.Compare(a.Node, b.Node), a.from.Compare(b.from), cmp.Compare(a.Stage, b.Stage))
	})
	var out []Phase
	for _, s := range spans {
		s.Wall = s.to.Sub(s.from)
		out = append(out, s.Phase)
	}
	return out
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
