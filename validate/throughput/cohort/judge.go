// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/validate/bimodal"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/scatter"
	"github.com/ironrail/ironrail/validate/throughput/exchange"
)

const (
	// fewest is how many figures make a median.
	fewest = 4
	// shareOfMedian is what a node reaches at least of the median of its cohort. Belief: on links
	// up to 25 Gb/s several connections fill what a healthy link carries within some percent; on
	// faster ones the cores of a node decide, and hosts that are well differ more. A duplex
	// mismatch, a damaged cable or a wrong speed costs half and more.
	shareOfMedian = 0.85
	// shareOfLink is what a node reaches at least of what its link carries, whatever others do: half
	// of it, and of no more than 25 Gb/s, which one core is enough for. Belief.
	shareOfLink = 0.5
	linkOfCore  = 25e9 // bits a second
	// fewestAlike is how many links have the speed that another one is held against.
	fewestAlike = 2
	// fewestOnLeaf is how many nodes of a leaf speak against the leaf.
	fewestOnLeaf = 3
)

// direction is one of a node's.
type direction int

const (
	sends direction = iota
	receives
)

var words = [2]string{sends: "sends", receives: "receives"}

// flow is what one member sent to another.
type flow struct {
	from, to int
	rate     float64 // bytes a second
	sent     wire.Sent
	asked    int // size of the packets that have to pass, bytes; 0: not known
	passed   int // of the largest that did
	broken   string
}

// flowsOf are the two directions of exchanges.
func flowsOf(list []*exchange.Exchange) (flows []flow) {
	for _, x := range list {
		if x.Why != "" {
			continue
		}
		there := flow{from: x.PlaceB, to: x.PlaceA, rate: x.SeenA.Received.Rate(), sent: x.SeenB.Sent, broken: x.Broken}
		back := flow{from: x.PlaceA, to: x.PlaceB, rate: x.SeenB.Received.Rate(), sent: x.SeenA.Sent, broken: x.Broken}
		if p := x.SeenB.Path; p != nil && p.Asked > 0 && p.Sent > 0 && p.Received > 0 { // where UDP is filtered nothing is known
			there.asked, there.passed, back.asked, back.passed = p.Asked, p.Sent, p.Asked, p.Received
		}
		flows = append(flows, there, back)
	}
	return flows
}

func (f flow) end(d direction) int {
	if d == sends {
		return f.from
	}
	return f.to
}

// isShort reports whether packets of full size do not pass.
func (f flow) isShort() bool { return f.asked > 0 && f.passed < f.asked }

// figure is what a member reached in one direction.
type figure struct {
	best     float64 // bytes a second, with the partner it was best with
	partners []int
	asked    int  // size of the packets that have to pass; 0: not known
	passed   int  // the largest that did, with the best partner
	whole    bool // full size passed with one partner at least
}

// figures are those of all members; one without a partner was not measured.
func (c *Cohort) figures(flows []flow) (all [2][]figure) {
	for d := range all {
		all[d] = make([]figure, len(c.Members))
		for _, f := range flows {
			x := &all[d][f.end(direction(d))]
			x.best = max(x.best, f.rate)
			if other := f.end(1 - direction(d)); !slices.Contains(x.partners, other) {
				x.partners = append(x.partners, other)
			}
			x.asked, x.passed = max(x.asked, f.asked), max(x.passed, f.passed)
			x.whole = x.whole || f.asked > 0 && !f.isShort()
		}
	}
	return all
}

// links are the interfaces of members, as they report them.
func linksOf(list []*exchange.Exchange) map[int]wire.NetworkLink {
	all := map[int]wire.NetworkLink{}
	for _, x := range list {
		for at, l := range map[int]wire.NetworkLink{x.PlaceA: x.SeenA.Link, x.PlaceB: x.SeenB.Link} {
			if l.Netdev != "" {
				all[at] = l
			}
		}
	}
	return all
}

// Row is what the nodes of a cohort reached in one direction.
type Row struct {
	Network   string  `json:"network"`
	Hardware  string  `json:"hardware"`
	Direction string  `json:"direction"` // sends or receives
	Median    float64 `json:"median"`    // bytes a second
	Least     float64 `json:"least"`
	Floor     float64 `json:"floor,omitempty"` // the least that is good against others; 0: too few, or they scatter too much
	Count     int     `json:"count"`           // of nodes
	// Groups are the two that its nodes are in, where no majority of them is fast; nil: there are none.
	Groups *bimodal.Groups `json:"groups,omitempty"`
}

// Verdict is the judgement of one cohort.
type Verdict struct {
	c       *Cohort
	flows   []flow
	figures [2][]figure
	links   map[int]wire.NetworkLink
	Rows    [2]Row
	usual   int64 // speed of most links, bits a second; 0: they have none in common
	usualOf int   // how many have it
	// scatters says that figures of a direction differ too much to be compared.
	scatters [2]bool
	Notes    []string // what was not judged, and why
	// bad are the members that are below what they should reach, or whose packets do not pass.
	bad [2]map[int]bool
	// shared is set where the network is low in a direction, and not single nodes.
	shared [2]string
}

// Judge holds each member against the others, what its link carries and the limit of the site.
// usual are figures of nodes in service that are alike and were measured before.
func (c *Cohort) Judge(list []*exchange.Exchange, usual [2][]bimodal.Figure) *Verdict {
	v := &Verdict{c: c, flows: flowsOf(list), links: linksOf(list), bad: [2]map[int]bool{{}, {}}}
	v.figures = c.figures(v.flows)
	v.usual, v.usualOf = usualLink(v.links)
	for d := range v.figures {
		v.direction(direction(d), usual[d])
	}
	for i, f := range v.figures[sends] {
		if len(f.partners) > 0 && f.best > 0 && f.asked == 0 {
			v.Notes = append(v.Notes, fmt.Sprintf("%s: the largest packet that passes between %s and others was not found out: UDP may be filtered", c, c.Members[i].Name()))
		}
	}
	return v
}

// direction judges one of them.
func (v *Verdict) direction(d direction, usual []bimodal.Figure) {
	var values []float64
	for _, f := range usual {
		values = append(values, f.Value)
	}
	for _, f := range v.figures[d] {
		if len(f.partners) > 0 {
			values = append(values, f.best)
		}
	}
	if len(values) == 0 {
		return
	}
	slices.Sort(values)
	median, least, ok := scatter.Bound(values, shareOfMedian)
	if rates := v.rates(); len(rates) >= fewest { // each node is as good as with its best partner, and hides how single measurements scatter
		_, single, alike := scatter.Bound(rates, shareOfMedian)
		least, ok = min(least, single), ok && alike
	}
	row := Row{Network: v.c.Network.Name, Hardware: v.c.Hardware, Direction: words[d], Median: median, Least: values[0], Count: len(values)}
	switch {
	case len(values) < fewest:
		v.Notes = append(v.Notes, fmt.Sprintf("%s: what it %s by TCP: %d nodes are too few for a median", v.c, words[d], len(values)))
	case ok:
		row.Floor = least
	}
	v.Rows[d], v.scatters[d] = row, len(values) >= fewest && !ok
	v.findLow(d)
	v.findBad(d)
	v.findShort(d)
	v.findGroups(d, usual)
	if v.scatters[d] && v.Rows[d].Groups == nil {
		v.Notes = append(v.Notes, fmt.Sprintf("%s: what nodes of it %s by TCP scatters too much to be compared: %s to %s", v.c, strings.TrimSuffix(words[d], "s"), result.FormatRate(values[0]), result.FormatRate(values[len(values)-1])))
	}
}

// findBad finds members that are below the others or what they have to reach, or whose packets do
// not pass.
func (v *Verdict) findBad(d direction) {
	for i, f := range v.figures[d] {
		if len(f.partners) > 0 && (f.isShort() || f.best < v.Rows[d].Floor || v.shared[d] == "" && f.best < v.need(d, i)) {
			v.bad[d][i] = true
		}
	}
}

// Reached is what a member sent and received with its best partners, bytes a second; false where it
// was measured with none.
func (v *Verdict) Reached(i int) (sent, received float64, measured bool) {
	return v.figures[sends][i].best, v.figures[receives][i].best, len(v.figures[sends][i].partners) > 0
}

// rates are those of all measurements, sorted.
func (v *Verdict) rates() (list []float64) {
	for _, f := range v.flows {
		list = append(list, f.rate)
	}
	slices.Sort(list)
	return list
}

// need is the least that a member has to reach whatever others do. What links carry is nothing to
// hold nodes against where they scatter: a limit of the site is.
func (v *Verdict) need(d direction, i int) float64 {
	if v.scatters[d] {
		return v.c.Members[i].Limit
	}
	return max(v.c.Members[i].Limit, v.linkNeed(i))
}

func (v *Verdict) linkNeed(i int) float64 {
	return shareOfLink * min(float64(v.links[i].Bits), linkOfCore) / 8
}

// findLow finds a network of which most nodes are below what their links carry, or below the limit.
func (v *Verdict) findLow(d direction) {
	low, all := 0, 0
	for i, f := range v.figures[d] {
		if len(f.partners) > 0 {
			all++
			if f.best < v.need(d, i) {
				low++
			}
		}
	}
	if low*2 > all && low >= 2 && (all > 2 || low == all) {
		v.shared[d] = fmt.Sprintf("%d of %d nodes are below %s in what they %s by TCP, at a median of %s", low, all, v.needText(), strings.TrimSuffix(words[d], "s"), result.FormatRate(v.Rows[d].Median))
	}
}

// needText is what nodes have to reach, in words.
func (v *Verdict) needText() string {
	for i, m := range v.c.Members {
		if m.Limit > v.linkNeed(i) {
			return "the limit of the site (" + m.Text + ")"
		}
	}
	return "half of what their links carry"
}

// findShort acquits nodes where no packet of full size passes between any two: that is the network.
func (v *Verdict) findShort(d direction) {
	passed, asked, nodes := 0, 0, 0
	for _, f := range v.figures[d] {
		if f.asked == 0 {
			continue
		}
		if nodes++; f.whole {
			return
		}
		passed, asked = max(passed, f.passed), max(asked, f.asked)
	}
	if nodes < 2 {
		return
	}
	v.shared[d] = fmt.Sprintf("packets of more than %d bytes do not pass between any two of %d nodes, and their interfaces send %d at once", passed, nodes, asked)
	for i, f := range v.figures[d] {
		if f.asked > 0 && f.best >= v.Rows[d].Floor {
			delete(v.bad[d], i)
		}
	}
}

// IsBad reports whether a member is in one of its directions, or by the speed of its link: one that runs
// faster than those of most others, or of which its driver reports no speed, is not what they have.
func (v *Verdict) IsBad(i int) bool {
	return v.bad[sends][i] || v.bad[receives][i] || v.hasOddLink(i)
}

// hasOddLink reports whether the link of a member does not run at the speed of most others.
func (v *Verdict) hasOddLink(i int) bool {
	l, seen := v.links[i]
	return seen && v.usual > 0 && l.Bits != v.usual
}

// hasSlowLink reports whether the link of a member runs at less than those of most others.
func (v *Verdict) hasSlowLink(i int) bool {
	return v.hasOddLink(i) && 0 < v.links[i].Bits && v.links[i].Bits < v.usual
}

// usualLink is the speed of more than half of links, bits a second, and of how many; 0: they have
// none in common.
func usualLink(links map[int]wire.NetworkLink) (bits int64, of int) {
	count := map[int64]int{}
	for _, l := range links {
		count[l.Bits]++
	}
	for b, n := range count {
		if n >= fewestAlike && 2*n > len(links) {
			return b, n
		}
	}
	return 0, 0
}

// badMembers lists them in their order.
func (v *Verdict) badMembers() (list []int) {
	for i := range v.c.Members {
		if v.IsBad(i) {
			list = append(list, i)
		}
	}
	return list
}

// Again pairs each bad member once more, with one that is good and that it has not met, on its leaf
// where there is such a one: with two bad partners, it would be bad itself. Where nobody is bad and
// the cohort is in two groups, it pairs the members of each.
func (v *Verdict) Again() (pairs [][2]int) {
	busy := map[int]bool{}
	for _, i := range v.badMembers() {
		best := -1
		for j, m := range v.c.Members {
			met := slices.Contains(v.figures[sends][i].partners, j)
			if j == i || busy[j] || v.IsBad(j) || len(v.figures[sends][j].partners) == 0 {
				continue
			}
			if best < 0 || cmp.Or(cmp.Compare(asInt(met), asInt(slices.Contains(v.figures[sends][i].partners, best))), cmp.Compare(asInt(m.Leaf != v.c.Members[i].Leaf), asInt(v.c.Members[best].Leaf != v.c.Members[i].Leaf))) < 0 {
				best = j
			}
		}
		if best >= 0 && !busy[i] {
			busy[i], busy[best] = true, true
			pairs = append(pairs, [2]int{i, best})
		}
	}
	if len(pairs) == 0 {
		return v.withinGroups()
	}
	return pairs
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// badLeaves are the leaves most of whose nodes are bad: three at least.
func (v *Verdict) badLeaves() (list []string) {
	bad, all := map[string]int{}, map[string]int{}
	for i, m := range v.c.Members {
		if len(v.figures[sends][i].partners) == 0 || m.Leaf == "" {
			continue
		}
		if all[m.Leaf]++; v.IsBad(i) {
			bad[m.Leaf]++
		}
	}
	for leaf, n := range bad {
		if n >= fewestOnLeaf && 2*n > all[leaf] && len(all) > 1 {
			list = append(list, leaf)
		}
	}
	slices.Sort(list)
	return list
}

// describe is the interface of a member, and where its cable ends.
func (v *Verdict) describe(i int) string {
	m, l := v.c.Members[i], v.links[i]
	text := fmt.Sprintf("%s of %s: %s", m.part(), m.Name(), cmp.Or(l.Netdev, "interface not known"))
	if l.PCI != "" {
		text += " at " + l.PCI
	}
	if l.Bits > 0 {
		text += fmt.Sprintf(", link %s", unit.BitRate(l.Bits))
	}
	if l.MTU > 0 {
		text += fmt.Sprintf(", MTU %d", l.MTU)
	}
	if m.far != "" {
		text += ", cabled to " + m.far
	}
	return text
}

// JudgeNodes holds nodes of one leaf and one kind of hardware against one another, by what both ends of
// each measurement have seen, as the check does. It returns the causes of what is found, by node,
// and of the network under no name; notes are what nobody is blamed for, two groups among it.
func JudgeNodes(names []string, seen func(listens, connects int) (a, b wire.Throughput)) (causes map[string][]string, notes []string) {
	c := &Cohort{Network: &inventory.Network{Name: "boot"}, Hardware: "h"}
	for _, n := range names {
		c.Members = append(c.Members, Member{Node: &inventory.Node{Name: n}, NIC: &inventory.NIC{Name: "mgmt"}})
	}
	var list []*exchange.Exchange
	for _, pairs := range rounds.WithinLeaves(make([]string, len(names))) {
		for _, p := range pairs {
			x := &exchange.Exchange{A: names[p[0]], B: names[p[1]], PlaceA: p[0], PlaceB: p[1]}
			x.SeenA, x.SeenB = seen(p[0], p[1])
			list = append(list, x)
		}
	}
	v := c.Judge(list, [2][]bimodal.Figure{})
	causes = map[string][]string{}
	for _, f := range v.Findings() {
		for _, n := range f.Nodes {
			causes[n] = append(causes[n], f.Cause)
		}
		if len(f.Nodes) == 0 {
			causes[""] = append(causes[""], f.Cause)
		}
	}
	for _, u := range v.Undecided("nodes", bimodal.Traits{}, nil) {
		notes = append(notes, u.Cause)
	}
	return causes, append(notes, v.Notes...)
}
