// SPDX-License-Identifier: Apache-2.0

package isolate

import (
	"strings"
	"testing"
)

// way reads a transfer between leaves as "a>b s1 bad": by which spine it went, and whether
// it was bad. Each leaf has one cable to each spine, named "leaf/spine".
func way(text string) Measurement {
	words := strings.Fields(text)
	from, to, _ := strings.Cut(words[0], ">")
	return Measurement{From: "n-" + from, To: "n-" + to, FromLeaf: from, ToLeaf: to, Bad: len(words) > 2,
		Via: []Crossing{{from + "/" + words[1], words[1]}, {to + "/" + words[1], words[1]}}}
}

// TestFindTrunks: measurements written by hand, of three leaves and two spines.
func TestFindTrunks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		ways      []string
		want      string
		ambiguous bool
		between   int
	}{
		{"nothing is bad", []string{"a>b s1", "a>c s2"}, "", false, 0},
		{"one cable", []string{"a>b s1 bad", "c>a s1 bad", "b>c s1", "a>b s2"}, "a/s1 cable", false, 0},
		{"one spine", []string{"a>b s1 bad", "b>c s1 bad", "c>a s1 bad", "a>b s2", "b>c s2"}, "s1 what goes over it", false, 0},
		{"two cables of two spines", []string{"a>b s1 bad", "a>c s1 bad", "c>b s1", "b>c s2 bad", "b>a s2 bad", "a>c s2"}, "a/s1 cable; b/s2 cable", false, 0},
		{"a cable or its spine", []string{"a>b s1 bad", "a>c s1 bad", "a>b s2"}, "a/s1 cable; s1 what goes over it", true, 0},
		{"one way says no more", []string{"a>b s1 bad"}, "a/s1 cable; b/s1 cable; s1 what goes over it", true, 0},
		{"bad now and then", []string{"a>b s1 bad", "a>b s1"}, "", false, 1},
		{"a way that is not known", []string{"a>b s1 bad", "c>a s1 bad", "b>c s1"}, "a/s1 cable", false, 1},
	} {
		var ms []Measurement
		for _, w := range c.ways {
			ms = append(ms, way(w))
		}
		if c.name == "a way that is not known" {
			ms = append(ms, Measurement{From: "n-a", To: "n-b", FromLeaf: "a", ToLeaf: "b", Bad: true})
		}
		got := FindTrunks(ms)
		if text(got.Suspects) != c.want || got.Ambiguous != c.ambiguous || len(got.Between) != c.between {
			t.Errorf("%s: %q ambiguous %v, between %v; want %q", c.name, text(got.Suspects), got.Ambiguous, got.Between, c.want)
		}
	}
}

// TestFindBetweenLeaves: without the ways of transfers no more is said than the leaves do.
func TestFindBetweenLeaves(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		ways      string // "leaf-node>leaf-node"
		want      string
		ambiguous bool
	}{
		{"two are too few", "a1>b1 a2>c1", "", false},
		{"one pair is a path", "a1>b1 b1>a1 a1>b1", "", false},
		{"what one leaf has in common", "a1>b1 a2>c1 b2>a1", "a uplinks", false},
		{"two leaves", "a1>b1 a2>b2 b1>a2", "a uplinks; b uplinks", true},
		{"nothing in common", "a1>b1 b2>c1 c2>a2", "what goes over it", false},
		{"on one leaf", "a1>a2 a2>a3 a3>a1", "", false},
	} {
		var bad []Measurement
		for _, w := range strings.Fields(c.ways) {
			from, to, _ := strings.Cut(w, ">")
			bad = append(bad, Measurement{From: from, To: to, FromLeaf: from[:1], ToLeaf: to[:1], Bad: true})
		}
		if got := FindBetweenLeaves(bad); text(got.Suspects) != c.want || got.Ambiguous != c.ambiguous {
			t.Errorf("%s: %q ambiguous %v; want %q", c.name, text(got.Suspects), got.Ambiguous, c.want)
		}
	}
}
