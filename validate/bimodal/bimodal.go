// SPDX-License-Identifier: Apache-2.0

// Package bimodal finds roles whose nodes are in two groups by what was measured of them, such as
// eight of which four are slow: neither group is a majority that the other could be held against,
// so that no node is to blame, and the role is not as it was meant to be.
package bimodal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/result"
)

const (
	// fewest is how many nodes a group has at least; quarter is how many times it fits into the role
	// at most: fewer that are faster than most are no second group.
	fewest  = 2
	quarter = 4
	// clear is how many times wider than each group the gap between them is: of healthy nodes, the
	// widest gap is one among others.
	clear = 2
	// scattered and ofFew say how wide the gap is at least, as a share of the median: 6 %, and 24 %
	// divided by the number of nodes, so 12 % of four nodes, 9 % of eight and 7 % of 32. Figures of healthy
	// nodes that scatter by 4 %, be it by racks, leave such a gap in their middle in none of 1,000
	// draws (TestHealthy); no published figure is known.
	scattered = 0.06
	ofFew     = 0.24
)

// Figure is what a node came to; more is better.
type Figure struct {
	Node  string
	Value float64
}

// Group is nodes that are alike.
type Group struct {
	Nodes  []string `json:"nodes"` // by their names
	Least  float64  `json:"least"` // of their figures
	Median float64  `json:"median"`
	Most   float64  `json:"most"`
}

// Groups are the two of a role.
type Groups struct {
	Low  Group `json:"low"`
	High Group `json:"high"`
}

// Find returns the two groups of a role of which no majority is fast: half of it is slow, or more,
// while a quarter of it, and two nodes, are not. They differ by share, as far as a slow part differs
// from the median, and by more where nodes are few. It returns false where one group is all there
// is, where figures scatter, and where those that are slow are the fewer: each of these is an outlier.
func Find(figures []Figure, share float64) (g Groups, ok bool) {
	all := slices.SortedFunc(slices.Values(figures), func(a, b Figure) int { return cmp.Compare(a.Value, b.Value) })
	n := len(all)
	if n < 2*fewest {
		return g, false
	}
	median := (all[(n-1)/2].Value + all[n/2].Value) / 2
	at, gap := 0, 0.0
	for i := (n + 1) / 2; i <= n-max(fewest, (n+quarter-1)/quarter); i++ {
		if d := all[i].Value - all[i-1].Value; d > gap {
			at, gap = i, d
		}
	}
	if gap <= 0 || gap < max(1-share, scattered+ofFew/float64(n))*median {
		return g, false
	}
	g = Groups{Low: groupOf(all[:at]), High: groupOf(all[at:])}
	return g, gap >= clear*max(g.Low.Most-g.Low.Least, g.High.Most-g.High.Least)
}

// groupOf makes a group of figures that are sorted.
func groupOf(list []Figure) Group {
	n := len(list)
	g := Group{Least: list[0].Value, Most: list[n-1].Value, Median: (list[(n-1)/2].Value + list[n/2].Value) / 2}
	for _, f := range list {
		g.Nodes = append(g.Nodes, f.Node)
	}
	slices.Sort(g.Nodes)
	return g
}

// Same reports whether two splits are of the same nodes.
func (g Groups) Same(o Groups) bool {
	return slices.Equal(g.Low.Nodes, o.Low.Nodes) && slices.Equal(g.High.Nodes, o.High.Nodes)
}

// Of is what a role was measured by, in words.
type Of struct {
	Role   string
	Part   string               // of its nodes
	Does   string               // what the figures are of, such as "are read at"
	Limit  string               // measure of which a limit of the site would say what is good
	Format func(float64) string // shows a figure
}

// Text says who is in the groups, and what they came to.
func (g Groups) Text(of Of) string {
	say := func(x Group) string {
		return fmt.Sprintf("%d nodes (%s) %s %s to %s", len(x.Nodes), result.NameSome(x.Nodes), of.Does, of.Format(x.Least), of.Format(x.Most))
	}
	return fmt.Sprintf("%s of role %s is in two groups: %s, and %s", of.Part, of.Role, say(g.Low), say(g.High))
}

// Finding is the finding about the role: it suspects none of its nodes. Those that the step is about are out
// of service by it, unless the site allows them to be accepted provisionally.
func (g Groups) Finding(of Of, traits Traits, about []*inventory.Node) stage.Finding {
	differ := g.differences(traits)
	why := "nothing that was read of them distinguishes the two: no rack, model, firmware or setting"
	if len(differ) > 0 {
		why = "the two differ in " + strings.Join(differ[:min(len(differ), mostNamed)], ", and in ")
	}
	f := stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Site, Name: "role." + of.Role}, Part: of.Part}},
		Cause: g.Text(of) + "; " + why, Evidence: differ,
		Action: fmt.Sprintf("Neither group is a majority, so no node is blamed, and none of them is accepted. Compare a node of each: what they were delivered with, settings of BIOS and BMC, power caps, cooling, slots and switches. "+
			"Once both are alike, apply again. If both are good, give a limit of %s, which then decides; with `provisional = true` in the validation block they are accepted provisionally until then.", of.Limit)}
	for _, n := range about {
		if g.Has(n.Name) && !IsProvisional(n) {
			f.Affected = append(f.Affected, subject.OfNode(n.Name))
		}
	}
	for _, name := range slices.Concat(g.Low.Nodes, g.High.Nodes) {
		if id := subject.OfNode(name); !slices.Contains(f.Affected, id) {
			f.About = append(f.About, id)
		}
	}
	return f
}

// IsProvisional reports whether the site allows a node to be accepted provisionally.
func IsProvisional(n *inventory.Node) bool { return n.Validation != nil && n.Validation.Provisional }

// Why is why a node of one of the groups is not accepted, in words.
func (g Groups) Why(of Of) string {
	return g.Text(of) + ", and nothing says which of them is right"
}

// Has reports whether a node is in one of the groups.
func (g Groups) Has(node string) bool {
	return slices.Contains(g.Low.Nodes, node) || slices.Contains(g.High.Nodes, node)
}
