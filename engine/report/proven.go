// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/maturity"
)

// gathered are sentences with whom they are about, each sentence once.
type gathered struct {
	order []string
	who   map[string][]string
}

func (g *gathered) add(sentence, who string) {
	if g.who == nil {
		g.who = map[string][]string{}
	}
	if _, known := g.who[sentence]; !known {
		g.order = append(g.order, sentence)
	}
	if !slices.Contains(g.who[sentence], who) {
		g.who[sentence] = append(g.who[sentence], who)
	}
}

// mostWho is how many a sentence names.
const mostWho = 8

// sentences are all of them, each after whom it is about.
func (g *gathered) sentences() (list []string) {
	for _, s := range g.order {
		who := g.who[s]
		text := strings.Join(who[:min(len(who), mostWho)], ", ")
		if n := len(who) - mostWho; n > 0 {
			text += fmt.Sprintf(" and %d more", n)
		}
		list = append(list, strings.TrimPrefix(text+": "+s, ": "))
	}
	return list
}

// collectNotProven collects what a reader must not take for proven: nodes that are not
// accepted, what was not tested, not judged or allowed to fail, and versions without a
// majority.
func collectNotProven(in Input) []string {
	var g gathered
	for _, n := range in.Nodes {
		switch n.Status {
		case Accepted:
		case NotAccepted:
			g.add("not accepted", n.Name)
		default:
			g.add("not accepted ("+n.Status.String()+")", n.Name)
		}
	}
	if len(in.Tests) == 0 {
		g.add("nothing was measured", "")
	}
	for _, s := range in.Untested {
		g.add(s, "")
	}
	for _, t := range in.Tests {
		for _, s := range t.NotJudged {
			g.add(s, t.Step)
		}
		for _, m := range t.Measurements {
			switch m.Verdict {
			case Allowed:
				g.add(m.Check+" failed and is allowed to: "+m.Why, strings.Join(m.Nodes, " -> "))
			case NotJudged:
				g.add(m.Check+" was not judged: "+m.Why, strings.Join(m.Nodes, " -> "))
			}
		}
	}
	for _, r := range in.Roles {
		for _, row := range r.Rows {
			if row.Value == "" {
				g.add(row.What+": no majority of nodes has the same", "role "+r.Name)
			}
		}
	}
	return g.sentences()
}

// collectProven collects what the tests say about their own reach, and the caveats.
func collectProven(in Input) []string {
	var g gathered
	for _, t := range in.Tests {
		if t.Proves != "" {
			g.add(t.Proves, t.Step)
		}
	}
	list := append(g.sentences(), in.Caveats...)
	if s := maturity.Sentence(in.Maturity); s != "" {
		list = append(list, s)
	}
	return list
}

// kind is all tests with one title.
type kind struct {
	Title string
	Tests []Test
}

// groupByTitle groups tests by their titles, in the order of the tests; a test without one
// is a kind of its own.
func groupByTitle(tests []Test) (list []kind) {
	for _, t := range tests {
		title := t.Title
		if title == "" {
			title = t.Step
		}
		i := slices.IndexFunc(list, func(k kind) bool { return k.Title == title })
		if i < 0 {
			i, list = len(list), append(list, kind{Title: title})
		}
		list[i].Tests = append(list[i].Tests, t)
	}
	return list
}

// all are the measurements of a kind.
func (k kind) all() (list []Measurement) {
	for _, t := range k.Tests {
		list = append(list, t.Measurements...)
	}
	return list
}

// rowsShown is how many passing measurements of a kind the page lists, in the order of the
// tests; of a kind with more, those nearest to their limits.
const rowsShown = 64

// row is a measurement of a kind, with when its test was.
type row struct {
	Measurement
	At time.Time
}

// Rows are the measurements that the page lists: all that did not pass, and some that did.
func (k kind) Rows() (list []row) {
	var good []row
	for _, t := range k.Tests {
		for _, m := range t.Measurements {
			if m.Verdict == Pass {
				good = append(good, row{m, t.At})
			} else {
				list = append(list, row{m, t.At})
			}
		}
	}
	if len(good) <= rowsShown {
		return append(list, good...)
	}
	slices.SortStableFunc(good, func(a, b row) int { return cmp.Compare(nearness(a.Measurement), nearness(b.Measurement)) })
	return append(list, good[:rowsShown]...)
}

// More is how many that passed the page does not list.
func (k kind) More() int { return len(k.all()) - len(k.Rows()) }

// nearness is how far a figure is from its limit, in percent of it; what has no figure, or no
// limit, is farthest.
func nearness(m Measurement) float64 {
	p, ok := share(m)
	if !ok {
		return math.Inf(1)
	}
	return math.Abs(p - 100)
}

// testOutcome is what the tests of a kind came to for a node.
type testOutcome struct {
	Class string // the worst verdict
	Text  string
}

// Of is what the tests of the kind came to for a node; empty where nothing of them is
// about it. A measurement that names no node is about all members.
func (k kind) Of(node string) testOutcome {
	n := map[string]int{}
	for _, t := range k.Tests {
		member := slices.Contains(t.Members, node)
		for _, m := range t.Measurements {
			if slices.Contains(m.Nodes, node) || len(m.Nodes) == 0 && member {
				n[m.Verdict]++
			}
		}
		if member && len(t.Measurements) == 0 {
			n[NotJudged] += len(t.NotJudged)
		}
	}
	s := testOutcome{}
	for _, v := range []struct{ verdict, words string }{{Pass, "passed"}, {Allowed, "allowed to fail"}, {NotJudged, "not judged"}, {Fail, "failed"}} {
		if c := n[v.verdict]; c > 0 {
			s.Class, s.Text = v.verdict, strings.TrimPrefix(fmt.Sprintf("%s, %d %s", s.Text, c, v.words), ", ")
		}
	}
	return s
}
