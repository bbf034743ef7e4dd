// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"github.com/ironrail/ironrail/internal/natural"
)

// transferCheck is the check of one transfer over one rail, between two nodes.
const transferCheck = "rdma.write_bw"

// railMap is what each node carried over each rail.
type railMap struct {
	Rails []string // as the tests name them, in the order of their numbers
	Nodes []string // in the order of the report
	cells map[string]map[string]railCell
	usual map[string]float64 // median of a rail, in the unit of the measurement
}

// railCell is a rail of a node: the worse of its two ways, each by its best partner, so
// that a bad partner does not count against it.
type railCell struct {
	Measured bool
	Failed   bool    // one way did not pass with any partner
	Value    float64 // in the unit of the measurement
	Percent  float64 // of the limit
	Figure   string
}

// railWay is one way of a rail of a node.
type railWay struct {
	passed         bool
	value, percent float64
	figure         string
}

func (w *railWay) take(m Measurement) {
	p, ok := share(m)
	passed := m.Verdict == Pass || m.Verdict == Allowed
	if !ok {
		p = 0
	}
	if w.figure == "" || passed && !w.passed || passed == w.passed && m.Measured > w.value {
		*w = railWay{passed, m.Measured, p, formatValue(m)}
	}
}

// collectRails reads the transfers of all tests.
func collectRails(in Input) railMap {
	type place struct {
		node, rail string
		sends      bool
	}
	ways := map[place]*railWay{}
	m := railMap{cells: map[string]map[string]railCell{}}
	for _, t := range in.Tests {
		for _, x := range t.Measurements {
			if x.Check != transferCheck || len(x.Nodes) != 2 || x.Verdict == NotJudged {
				continue
			}
			if !slices.Contains(m.Rails, x.Part) {
				m.Rails = append(m.Rails, x.Part)
			}
			for i, n := range x.Nodes {
				at := place{n, x.Part, i == 0}
				if ways[at] == nil {
					ways[at] = &railWay{}
				}
				ways[at].take(x)
			}
		}
	}
	slices.SortFunc(m.Rails, natural.Compare)
	for _, n := range in.Nodes {
		row := map[string]railCell{}
		for _, r := range m.Rails {
			if c := worseOf(ways[place{n.Name, r, true}], ways[place{n.Name, r, false}]); c.Measured {
				row[r] = c
			}
		}
		if len(row) > 0 {
			m.Nodes, m.cells[n.Name] = append(m.Nodes, n.Name), row
		}
	}
	m.findUsual()
	return m
}

// findUsual finds the median of each rail.
func (m *railMap) findUsual() {
	m.usual = map[string]float64{}
	for _, r := range m.Rails {
		var list []float64
		for _, row := range m.cells {
			if c, ok := row[r]; ok {
				list = append(list, c.Value)
			}
		}
		slices.Sort(list)
		m.usual[r] = medianOf(list)
	}
}

// worseOf is the worse of two ways, of which either may be missing.
func worseOf(a, b *railWay) railCell {
	if a == nil || b != nil && (!b.passed && a.passed || b.passed == a.passed && b.value < a.value) {
		a = b
	}
	if a == nil {
		return railCell{}
	}
	return railCell{Measured: true, Failed: !a.passed, Value: a.value, Percent: a.percent, Figure: a.figure}
}
