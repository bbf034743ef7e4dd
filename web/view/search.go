// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/ending"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/reach"
)

// Hit is a thing that a search found.
type Hit struct {
	Kind string `json:"kind"` // node, switch, rack, finding
	Name string `json:"name"`
	What string `json:"what"` // what was found of it: name, serial, MAC, GUID, address
	Text string `json:"text"` // as it is written

	key string // what is searched
}

// Search is what a word finds.
type Search struct {
	Query string `json:"query"`
	Hits  []Hit  `json:"hits"` // whole words first; at most MostHits
	All   int    `json:"all"`
}

// Search finds nodes, switches, racks and findings by name, serial, MAC, GUID or address;
// MACs and GUIDs in any way of writing them.
func (k *Keeper) Search(ctx context.Context, query string) (Search, error) {
	out := Search{Query: query, Hits: []Hit{}}
	s, err := k.Current(ctx)
	if err != nil {
		return out, err
	}
	index, err := k.indexOf(ctx, s)
	if err != nil {
		return out, err
	}
	word := searchKey(query)
	if word == "" {
		return out, nil
	}
	for _, h := range index {
		if strings.Contains(h.key, word) {
			out.Hits = append(out.Hits, h)
		}
	}
	out.All = len(out.Hits)
	slices.SortStableFunc(out.Hits, func(a, b Hit) int { return rankHit(a, word) - rankHit(b, word) })
	out.Hits = out.Hits[:min(len(out.Hits), MostHits)]
	return out, nil
}

// rankHit puts what is the whole word first, and what begins with it second.
func rankHit(h Hit, word string) int {
	switch {
	case h.key == word:
		return 0
	case strings.HasPrefix(h.key, word):
		return 1
	}
	return 2
}

// searchKey is a text as it is searched: in lower case, without what addresses are divided by.
func searchKey(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(":-. \t", r) {
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "0x")))
}

// indexOf is all that can be found.
func (k *Keeper) indexOf(ctx context.Context, s *Snapshot) ([]Hit, error) {
	found, err := k.findingsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	return k.index.get(s, k.Now(), func() (out []Hit, err error) {
		err = k.withState(ctx, s, func(r state.Reader) error {
			x := indexer{facts: reach.Facts(r), inv: s.Inv, seen: map[Hit]bool{}}
			x.site()
			for _, f := range found.all {
				x.add("finding", ending.Fold(f).ID(), "finding", ending.Fold(f).ID())
			}
			out = x.hits
			return nil
		})
		return out, err
	})
}

// indexer collects what can be found.
type indexer struct {
	inv   *inventory.Inventory
	facts func(fact.Key) (fact.Fact, bool)
	hits  []Hit
	seen  map[Hit]bool
}

func (x *indexer) add(kind, name, what, text string) {
	h := Hit{Kind: kind, Name: name, What: what, Text: text, key: searchKey(text)}
	if h.key != "" && !x.seen[h] {
		x.seen[h] = true
		x.hits = append(x.hits, h)
	}
}

func (x *indexer) site() {
	for _, n := range x.inv.Nodes {
		x.add("node", n.Name, "name", n.Name)
	}
	for _, sw := range x.inv.Switches {
		x.add("switch", sw.Name, "name", sw.Name)
		if sw.Address.IsValid() {
			x.add("switch", sw.Name, "address", sw.Address.String())
		}
	}
	for _, r := range x.inv.Racks {
		x.add("rack", r.Name, "name", r.Name)
	}
	for _, n := range x.inv.Nodes {
		x.node(n)
	}
}

// node adds what the files say of a node, and what was seen of it.
func (x *indexer) node(n *inventory.Node) {
	add := func(what, text string) { x.add("node", n.Name, what, text) }
	add("serial", n.Serial)
	add("UUID", n.UUID)
	if !n.BootMAC.IsZero() {
		add("boot MAC", n.BootMAC.String())
	}
	if !n.BMC.MAC.IsZero() {
		add("MAC of the BMC", n.BMC.MAC.String())
	}
	if n.Address.IsValid() {
		add("address", n.Address.String())
	}
	if n.BMC.Address.IsValid() {
		add("address of the BMC", n.BMC.Address.String())
	}
	me := subject.OfNode(n.Name)
	if f, ok := x.facts(install.HardwareFact.Of(me)); ok {
		if hw, err := install.HardwareFact.Get(f); err == nil {
			add("serial, as seen", hw.Identity.Serial)
			for _, nic := range hw.NICs {
				add("MAC of "+nic.Name, nic.MAC.String())
			}
			for _, d := range hw.Disks {
				add("serial of disk "+d.Name, d.Serial)
			}
			for _, d := range hw.RDMA {
				add("GUID of "+d.Name, d.GUID)
			}
		}
	}
	for _, fb := range x.inv.Fabrics {
		name := infiniband.Identities(fb.Name)
		if f, ok := x.facts(name.Of(me)); ok {
			if ports, err := name.Get(f); err == nil {
				for _, p := range ports {
					add(fmt.Sprintf("GUID of %s/%d", p.NIC, p.Port), p.GUID.String())
				}
			}
		}
	}
}

// formatDecl is a place in the site's files.
func formatDecl(d plan.SourceRange) string {
	return fmt.Sprintf("%s:%d", cmp.Or(d.File, "?"), d.Line)
}
