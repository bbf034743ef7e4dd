// SPDX-License-Identifier: Apache-2.0

package cohort

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/bimodal"
	"github.com/ironrail/ironrail/validate/rounds"
	"github.com/ironrail/ironrail/validate/throughput/exchange"
)

const gbit = 1e9 / 8

// plant is a network of nodes, each with what it sends and receives, bytes a second, and the largest
// packet that passes from it and to it.
type plant struct {
	rate   [2][]float64
	packet [2][]int
	leaf   []string
	broken []bool
	link   int64
	slow   int     // node whose link is not like the others', from 1
	bits   int64   // that it reports
	noise  float64 // by which single measurements are lower, at most
	r      *rand.Rand
}

func newPlant(n, perLeaf int, scatter float64, seed uint64) *plant {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &plant{broken: make([]bool, n), link: 25e9, r: r}
	for i := range n {
		p.leaf = append(p.leaf, fmt.Sprintf("rack r%02d", i/perLeaf))
		for d := range p.rate {
			p.rate[d] = append(p.rate[d], 23.5*gbit*(1-scatter*r.Float64()))
			p.packet[d] = append(p.packet[d], 1500)
		}
	}
	return p
}

func (p *plant) cohort() *Cohort {
	c := &Cohort{Network: &inventory.Network{Name: "boot"}, Hardware: "h"}
	for i := range p.leaf {
		c.Members = append(c.Members, Member{Node: &inventory.Node{Name: fmt.Sprintf("n%d", i+1)}, NIC: &inventory.NIC{Name: "mgmt"}, Leaf: p.leaf[i]})
	}
	return c
}

// between is what two of them measure.
func (p *plant) between(a, b int) *exchange.Exchange {
	x := &exchange.Exchange{PlaceA: a, PlaceB: b}
	link := func(i int) wire.NetworkLink {
		l := wire.NetworkLink{Netdev: fmt.Sprintf("eth%d", i), MTU: 1500, Bits: p.link}
		if i+1 == p.slow {
			l.Bits = p.bits
		}
		return l
	}
	x.SeenA.Link, x.SeenB.Link = link(a), link(b)
	if p.broken[a] || p.broken[b] {
		x.Broken = "connection refused"
		return x
	}
	x.SeenA.Received = wire.Received{Bytes: int64(2 * min(p.rate[sends][b], p.rate[receives][a]) * (1 - p.noise*p.r.Float64())), Seconds: 2}
	x.SeenB.Received = wire.Received{Bytes: int64(2 * min(p.rate[sends][a], p.rate[receives][b]) * (1 - p.noise*p.r.Float64())), Seconds: 2}
	x.SeenB.Path = &wire.PathMTU{Asked: 1500, Sent: min(p.packet[sends][b], p.packet[receives][a]), Received: min(p.packet[sends][a], p.packet[receives][b])}
	return x
}

// run measures as the check does.
func (p *plant) run(c *Cohort, usual [2][]bimodal.Figure) (v *Verdict, again int) {
	var done []*exchange.Exchange
	for _, round := range rounds.WithinLeaves(p.leaf) {
		for _, pair := range round {
			done = append(done, p.between(pair[0], pair[1]))
		}
	}
	v = c.Judge(done, usual)
	pairs := v.Again()
	for _, pair := range pairs {
		done = append(done, p.between(pair[0], pair[1]))
	}
	return c.Judge(done, usual), len(pairs)
}

// said are the suspects and causes of findings, one a line.
func said(v *Verdict) string {
	var all []string
	for _, f := range v.Findings() {
		var who []string
		for _, s := range f.Suspects {
			who = append(who, s.Subject.String()+" "+s.Part)
		}
		all = append(all, strings.Join(who, ", ")+": "+f.Cause)
	}
	return strings.Join(all, "\n")
}

func TestJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		n, perLeaf int
		change     func(*plant, *Cohort)
		want       []string // of each finding; none: nothing is found
	}{
		{"well", 16, 4, nil, nil},
		{"sends slowly", 16, 4, func(p *plant, _ *Cohort) { p.rate[sends][5] *= 0.8 }, []string{"node/n6 nic mgmt/0: nic mgmt/0: it sends 2.3"}},
		{"receives slowly", 4, 4, func(p *plant, _ *Cohort) { p.rate[receives][0] *= 0.5 }, []string{"node/n1 nic mgmt/0: nic mgmt/0: it receives 1.4"}},
		{"both", 8, 8, func(p *plant, _ *Cohort) { p.rate[receives][7] *= 0.5; p.rate[sends][7] *= 0.6 }, []string{"node/n8 nic mgmt/0: nic mgmt/0: it sends 1.7"}},
		{"two slow partners", 12, 3, func(p *plant, _ *Cohort) { p.rate[sends][0] *= 0.5; p.rate[sends][1] *= 0.5 }, []string{"node/n1 nic", "node/n2 nic"}},
		{"two slow partners of three", 12, 3, func(p *plant, _ *Cohort) { p.rate[receives][0] *= 0.1; p.rate[receives][1] *= 0.1 }, []string{"node/n1 nic", "node/n2 nic"}},
		{"a leaf", 16, 4, func(p *plant, _ *Cohort) {
			for i := 4; i < 8; i++ {
				p.rate[sends][i], p.rate[receives][i] = p.rate[sends][i]/10, p.rate[receives][i]/10
			}
		}, []string{"rack/r01 network boot: network boot of h: 4 nodes of rack r01"}},
		{"the network", 16, 4, func(p *plant, _ *Cohort) {
			for i := range p.leaf {
				p.rate[sends][i], p.rate[receives][i] = gbit, gbit
			}
		}, []string{"site/network.boot network boot: network boot of h: 16 of 16 nodes are below half of what their links carry in what they send", "what they receive"}},
		{"the limit", 4, 4, func(_ *plant, c *Cohort) {
			for i := range c.Members {
				c.Members[i].Limit, c.Members[i].Text = 24*gbit, ">= 24Gbps"
			}
		}, []string{"4 of 4 nodes are below the limit of the site (>= 24Gbps) in what they send", "in what they receive"}},
		{"one below the limit", 3, 4, func(p *plant, c *Cohort) {
			p.rate[sends][1] = 14 * gbit
			for i := range c.Members {
				c.Members[i].Limit, c.Members[i].Text = 20*gbit, ">= 20Gbps"
			}
		}, []string{"node/n2 nic mgmt/0: nic mgmt/0: it sends 1.75GB/s by TCP over network boot with 2 nodes, and the limit of the site is >= 20Gbps"}},
		{"two alone", 2, 4, func(p *plant, _ *Cohort) { p.rate[sends][0] = gbit }, []string{"node/n1 nic mgmt/0, node/n2 nic mgmt/0: nic mgmt/0: it sends 125MB/s by TCP over network boot with 1 node, and its link carries 25Gbps; n2 it receives 125MB/s"}},
		{"path", 8, 4, func(p *plant, _ *Cohort) { p.packet[receives][2] = 1400; p.rate[receives][2] = 0 }, []string{"node/n3 nic mgmt/0: nic mgmt/0: packets of more than 1400 bytes do not pass to it over network boot"}},
		{"path of all", 8, 4, func(p *plant, _ *Cohort) {
			for i := range p.leaf {
				p.packet[sends][i] = 1400
			}
		}, []string{"site/network.boot network boot: network boot of h: packets of more than 1400 bytes do not pass between any two of 8 nodes"}},
		{"UDP is filtered", 8, 4, func(p *plant, _ *Cohort) { p.packet[sends][1], p.packet[receives][1] = 0, 0 }, nil},
		{"broken", 8, 4, func(p *plant, _ *Cohort) { p.broken[4] = true }, []string{"node/n5 nic mgmt/0: nic mgmt/0: it has no TCP connection over network boot with any of"}},
		{"a slow link", 4, 4, func(p *plant, _ *Cohort) { p.slow, p.bits = 2, 10e9 }, []string{"node/n2 nic mgmt/0: nic mgmt/0: its link on network boot runs at 10Gbps, and those of 3 of 4 nodes run at 25Gbps"}},
		{"a fast link", 4, 4, func(p *plant, _ *Cohort) { p.slow, p.bits = 2, 100e9 }, []string{"node/n2 nic mgmt/0: nic mgmt/0: its link on network boot runs at 100Gbps, and those of 3 of 4 nodes run at 25Gbps"}},
		{"a fast link that is slow", 4, 4, func(p *plant, _ *Cohort) { p.slow, p.bits = 2, 100e9; p.rate[sends][1] *= 0.5 }, []string{"node/n2 nic mgmt/0: nic mgmt/0: its link on network boot runs at 100Gbps, and those of 3 of 4 nodes run at 25Gbps; it sends 1.4"}},
		{"a link without a speed", 4, 4, func(p *plant, _ *Cohort) { p.slow = 2 }, []string{"node/n2 nic mgmt/0: nic mgmt/0: its driver does not report at which speed its link on network boot runs, and those of 3 of 4 nodes run at 25Gbps"}},
		{"no speed but of one", 4, 4, func(p *plant, _ *Cohort) { p.link, p.slow, p.bits = 0, 2, 25e9 }, nil},
		{"no speeds", 4, 4, func(p *plant, _ *Cohort) { p.link = 0 }, nil},
	} {
		p := newPlant(c.n, c.perLeaf, 0.02, 7)
		co := p.cohort()
		if c.change != nil {
			c.change(p, co)
		}
		v, _ := p.run(co, [2][]bimodal.Figure{})
		lines := strings.Split(said(v), "\n")
		if len(c.want) == 0 && lines[0] != "" || len(c.want) > 0 && len(lines) != len(c.want) {
			t.Errorf("%s: %s", c.name, said(v))
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(lines[i], want) {
				t.Errorf("%s: %s\nwant %s", c.name, lines[i], want)
			}
		}
	}
}

// TestNobodyHealthy: of healthy nodes none is blamed, however figures scatter, and the slow one
// among them is found where they scatter little.
func TestNobodyHealthy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		noise := []float64{0.01, 0.05, 0.1, 0.3, 0.6, 0.9}[seed%6]
		p := newPlant(4+int(seed%17), 4, 0.05, seed)
		p.noise = noise
		if v, _ := p.run(p.cohort(), [2][]bimodal.Figure{}); said(v) != "" || len(v.Undecided("worker", bimodal.Traits{}, nil)) > 0 {
			t.Errorf("seed %d, noise %g: %s, %+v", seed, noise, said(v), v.Rows)
		}
		at := int(seed % uint64(len(p.leaf)))
		p.rate[seed%2][at] *= 0.6
		if v, _ := p.run(p.cohort(), [2][]bimodal.Figure{}); noise < 0.1 && (len(v.Findings()) != 1 || !slices.Equal(v.Findings()[0].Nodes, []string{fmt.Sprintf("n%d", at+1)})) {
			t.Errorf("seed %d, noise %g: %s", seed, noise, said(v))
		}
	}
}

// TestGroups: where half of a network's nodes are slow, alternating, by racks or more than half of them, nobody is
// blamed, and both groups are named, with what they differ in; a limit of the site decides instead.
func TestGroups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		slow   func(i int) bool
		d      []direction
		limit  float64
		who    string // the slower
		differ string
	}{
		{"alternating", func(i int) bool { return i%2 == 0 }, []direction{sends}, 0, "n1, n3, n5, n7", "nothing that was read of them distinguishes the two"},
		{"alternating, receiving", func(i int) bool { return i%2 == 0 }, []direction{receives}, 0, "n1, n3, n5, n7", "nothing that was read"},
		{"by switches, both ways", func(i int) bool { return i < 4 }, []direction{sends, receives}, 0, "n1, n2, n3, n4", "the two differ in switch: rack r00 of the slower, rack r01 of the faster"},
		{"most of them", func(i int) bool { return i != 3 && i != 6 }, []direction{sends}, 0, "n1, n2, n3, n5, n6, n8", "nothing that was read"},
		{"a limit of the site", func(i int) bool { return i%2 == 0 }, []direction{sends}, 10 * gbit, "n1, n3, n5, n7", "nothing that was read"},
	} {
		for seed := range uint64(20) {
			p := newPlant(8, 4, 0.02, seed)
			co := p.cohort()
			for i := range co.Members {
				co.Members[i].Limit, co.Members[i].far = c.limit, "port 1"
				for _, d := range c.d {
					if c.slow(i) {
						p.rate[d][i] *= 0.7
					}
				}
			}
			v, again := p.run(co, [2][]bimodal.Figure{})
			list := v.Undecided("worker", bimodal.Traits{}, nil)
			if said(v) != "" || again == 0 || len(list) != 1 {
				t.Fatalf("%s: seed %d: %q, %d more measurements, %d groups: %+v", c.name, seed, said(v), again, len(list), list)
			}
			u := list[0]
			want := fmt.Sprintf("network boot of h of role worker is in two groups: %d nodes (%s) %s ", strings.Count(c.who, ",")+1, c.who, strings.TrimSuffix(words[c.d[0]], "s"))
			if !strings.HasPrefix(u.Cause, want) || !strings.Contains(u.Cause, c.differ) || u.Suspects[0].Subject.String() != "site/role.worker" || len(u.About) != 8 || u.Decided != (c.limit > 0) || !strings.HasPrefix(u.Why, want) {
				t.Errorf("%s: seed %d: %+v", c.name, seed, u)
			}
		}
	}
}

// TestUsual: a new node is held against those in service.
func TestUsual(t *testing.T) {
	t.Parallel()
	p := newPlant(3, 4, 0.01, 3)
	p.rate[sends][0] *= 0.7
	if v, _ := p.run(p.cohort(), [2][]bimodal.Figure{}); said(v) != "" {
		t.Errorf("three nodes have no median: %s", said(v))
	}
	usual := []bimodal.Figure{{Node: "a", Value: 23.4 * gbit}, {Node: "b", Value: 23.5 * gbit}, {Node: "c", Value: 23.45 * gbit}}
	v, _ := p.run(p.cohort(), [2][]bimodal.Figure{usual, usual})
	if got := said(v); !strings.Contains(got, "node/n1 nic mgmt/0: nic mgmt/0: it sends") || strings.Contains(got, "\n") {
		t.Error(got)
	}
}

// TestSilent: who was not measured has no figure, and speaks against nobody.
func TestSilent(t *testing.T) {
	t.Parallel()
	p := newPlant(5, 8, 0.01, 3)
	c := p.cohort()
	var done []*exchange.Exchange
	for _, round := range rounds.WithinLeaves(p.leaf) {
		for _, pair := range round {
			x := p.between(pair[0], pair[1])
			if pair[0] == 1 || pair[1] == 1 {
				x = &exchange.Exchange{PlaceA: pair[0], PlaceB: pair[1], Why: "its agent does not measure networks"}
			}
			done = append(done, x)
		}
	}
	v := c.Judge(done, [2][]bimodal.Figure{})
	if said(v) != "" || v.Rows[sends].Count != 4 {
		t.Errorf("%s, rows %+v", said(v), v.Rows)
	}
}
