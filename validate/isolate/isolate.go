// Package isolate finds the bad part from tests between pairs. Its input is
// which measurements were good and which bad; its answer is the smallest set of
// parts that explains every bad one and contradicts no good one, or all such
// sets when there are several. It is pure and knows no tool.
package isolate

import (
	"cmp"
	"fmt"
	"slices"
)

// Measurement is one transfer over one rail, from one node to another.
type Measurement struct {
	Rail     int
	From, To string
	Bad      bool
}

// Scope is how much of a node a part is.
type Scope uint8

// The scopes, from the widest to the narrowest.
const (
	WholeNode Scope = iota // every rail: the node's own board, memory or software
	Rail                   // one rail in both directions: its NIC, cable or port
	Send                   // one rail, sending only
	Receive                // one rail, receiving only
	Shared                 // one rail of every node: what they share, such as the leaf switch
)

// Part is one suspect. Rail has no meaning for WholeNode, and Node is empty for
// Shared.
type Part struct {
	Node  string
	Scope Scope
	Rail  int
}

// String names the part for a person.
func (p Part) String() string {
	switch p.Scope {
	case WholeNode:
		return "all rails"
	case Send:
		return fmt.Sprintf("rail %d, sending", p.Rail)
	case Receive:
		return fmt.Sprintf("rail %d, receiving", p.Rail)
	case Shared:
		return fmt.Sprintf("what rail %d of all nodes shares", p.Rail)
	}
	return fmt.Sprintf("rail %d", p.Rail)
}

// explains reports whether a fault of p would spoil m.
func (p Part) explains(m Measurement) bool {
	if p.Scope != WholeNode && p.Rail != m.Rail {
		return false
	}
	if p.Scope == Shared {
		return m.From != m.To
	}
	return p.Scope != Receive && m.From == p.Node || p.Scope != Send && m.To == p.Node
}

// Verdict is what the measurements say.
type Verdict struct {
	// Suspects are the parts of all smallest explanations, sorted. Empty when
	// nothing is bad.
	Suspects []Part
	// Ambiguous is true when there are several explanations of the same size, so
	// that not every suspect is bad.
	Ambiguous bool
	// Between are bad measurements that no part explains without contradicting a
	// good one: the path between two nodes that are both good otherwise.
	Between []Measurement
}

// maxSets bounds the explanations that are compared; sites with more faults
// than this bound allows get the greedy explanation, marked ambiguous.
const maxSets = 200_000

// Decode finds the suspects.
func Decode(ms []Measurement) Verdict {
	var bad []Measurement
	for _, m := range ms {
		if m.Bad {
			bad = append(bad, m)
		}
	}
	if len(bad) == 0 {
		return Verdict{}
	}
	parts := candidates(ms)
	var v Verdict
	bad, v.Between = explainable(bad, parts)
	if len(bad) == 0 {
		return v
	}
	s := search{bad: bad, parts: parts, budget: maxSets}
	s.run()
	for _, set := range s.best {
		v.Suspects = append(v.Suspects, set...)
	}
	slices.SortFunc(v.Suspects, compare)
	v.Suspects = slices.Compact(v.Suspects)
	v.Ambiguous = len(s.best) > 1 || s.budget <= 0
	return v
}

// tally is how many measurements a part would spoil.
type tally struct{ bad, good int }

// candidates lists the parts with a bad measurement and no good one. Of parts of
// one node that spoil the same measurements only one stays: a rail rather than
// the node when there is one rail, and a rail rather than its one direction.
func candidates(ms []Measurement) []Part {
	count := count(ms)
	var parts []Part
	of := map[string][]Part{} // the candidates of each node
	for p, t := range count {
		if t.bad > 0 && t.good == 0 {
			parts = append(parts, p)
			of[p.Node] = append(of[p.Node], p)
		}
	}
	slices.SortFunc(parts, compare)
	return slices.DeleteFunc(parts, func(p Part) bool {
		return slices.ContainsFunc(of[p.Node], func(q Part) bool {
			// One of the two holds the other, so that equal numbers are the same ones.
			return preferred(q, p) && nested(p, q) && count[p] == count[q]
		})
	})
}

// count goes through the measurements once and counts for each part that could
// spoil one.
func count(ms []Measurement) map[Part]tally {
	all := map[Part]tally{}
	for _, m := range ms {
		add := func(p Part) {
			t := all[p]
			if m.Bad {
				t.bad++
			} else {
				t.good++
			}
			all[p] = t
		}
		add(Part{m.From, WholeNode, 0})
		add(Part{m.From, Rail, m.Rail})
		add(Part{m.From, Send, m.Rail})
		add(Part{m.To, Receive, m.Rail})
		if m.From != m.To {
			add(Part{"", Shared, m.Rail})
			add(Part{m.To, WholeNode, 0})
			add(Part{m.To, Rail, m.Rail})
		}
	}
	return all
}

// preferred orders names for the same evidence: rail, node, then a direction.
func preferred(q, p Part) bool {
	rank := [...]int{WholeNode: 1, Rail: 0, Send: 2, Receive: 2, Shared: 0}
	return rank[q.Scope] < rank[p.Scope]
}

// nested reports whether one of two parts of a node, of which one is preferred,
// holds the other.
func nested(p, q Part) bool {
	return p.Scope == WholeNode || q.Scope == WholeNode || p.Rail == q.Rail
}

// explainable splits the bad measurements by whether any candidate spoils them.
func explainable(bad []Measurement, parts []Part) (with, without []Measurement) {
	for _, m := range bad {
		if slices.ContainsFunc(parts, func(p Part) bool { return p.explains(m) }) {
			with = append(with, m)
		} else {
			without = append(without, m)
		}
	}
	return with, without
}

// search finds every smallest set of parts that explains all bad measurements.
type search struct {
	bad    []Measurement
	parts  []Part
	budget int
	best   [][]Part
}

func (s *search) run() {
	greedy := s.greedy()
	for size := 1; size < len(greedy); size++ {
		s.cover(nil, size)
		if len(s.best) > 0 {
			return
		}
		if s.budget <= 0 {
			break
		}
	}
	if s.budget > 0 {
		s.cover(nil, len(greedy))
	}
	if len(s.best) == 0 {
		s.best = [][]Part{greedy}
	}
}

// greedy takes the part that explains most, until all is explained.
func (s *search) greedy() []Part {
	var set []Part
	left := s.bad
	for len(left) > 0 {
		best, most := Part{}, 0
		for _, p := range s.parts {
			n := 0
			for _, m := range left {
				if p.explains(m) {
					n++
				}
			}
			if n > most {
				best, most = p, n
			}
		}
		set = append(set, best)
		left = slices.DeleteFunc(slices.Clone(left), best.explains)
	}
	return set
}

// cover extends set by up to size parts: each time by those that explain the
// first measurement still open, so that no useless part ever enters.
func (s *search) cover(set []Part, size int) {
	if s.budget--; s.budget <= 0 {
		return
	}
	i := slices.IndexFunc(s.bad, func(m Measurement) bool {
		return !slices.ContainsFunc(set, func(p Part) bool { return p.explains(m) })
	})
	if i < 0 {
		found := slices.Clone(set)
		slices.SortFunc(found, compare)
		if !slices.ContainsFunc(s.best, func(b []Part) bool { return slices.Equal(b, found) }) {
			s.best = append(s.best, found)
		}
		return
	}
	if size == 0 {
		return
	}
	for _, p := range s.parts {
		if p.explains(s.bad[i]) {
			s.cover(append(slices.Clone(set), p), size-1)
		}
	}
}

func compare(a, b Part) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Rail, b.Rail))
}
