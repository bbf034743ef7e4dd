// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"github.com/ironrail/ironrail/inventory"
)

// oneMedium makes the fibres of one transceiver of one medium. A transceiver with
// two connectors is for multimode or for single-mode fibre, and so is the one at
// the other end of each of its fibres: where one of those that hang together is
// too long for multimode, all of them are single-mode.
func (b *builder) oneMedium(runs []Run) {
	if !hasMixedFibres(runs) {
		return
	}
	g := groups{index: map[cage]int32{}}
	var at []cage
	for i := range runs {
		at = b.cages.shared(&runs[i], at[:0])
		g.join(at)
	}
	single := map[int32]bool{}
	for i := range runs {
		if runs[i].medium != singleMode {
			continue
		}
		if at = b.cages.shared(&runs[i], at[:0]); len(at) > 0 {
			single[g.root(g.index[at[0]])] = true
		}
	}
	for i := range runs {
		r := &runs[i]
		if r.medium != multimode {
			continue
		}
		if at = b.cages.shared(r, at[:0]); len(at) > 0 && single[g.root(g.index[at[0]])] {
			b.single(r)
		}
	}
}

// hasMixedFibres reports whether there are fibres of both media.
func hasMixedFibres(runs []Run) bool {
	var multi, single bool
	for i := range runs {
		multi = multi || runs[i].medium == multimode
		single = single || runs[i].medium == singleMode
	}
	return multi && single
}

// single makes a run single-mode, if that is sold.
func (b *builder) single(r *Run) {
	w := b.cableOf(r)
	w.typ, w.medium = "fibre", singleMode
	p, l := b.shelf(r).choose(w)
	if p == nil {
		return
	}
	r.medium, r.Part = p.medium, b.part(p, r, w.splitter)
	if r.Cables[0].Length == 0 {
		r.Length = l
	}
}

// shared adds to out the cages with more than one link that a fibre ends in.
func (c cages) shared(r *Run, out []cage) []cage {
	if r.medium == "" {
		return out
	}
	for _, h := range r.Cables {
		for _, e := range []*inventory.CableEnd{&h.From, &h.To} {
			if k, links := c.of(e); links > 1 {
				out = append(out, k)
			}
		}
	}
	return out
}

// groups are cages that hang together (a disjoint-set forest).
type groups struct {
	index  map[cage]int32
	parent []int32
}

func (g *groups) root(i int32) int32 {
	for g.parent[i] != i {
		g.parent[i] = g.parent[g.parent[i]]
		i = g.parent[i]
	}
	return i
}

// join makes one group of cages.
func (g *groups) join(list []cage) {
	first := int32(-1)
	for _, k := range list {
		i, ok := g.index[k]
		if !ok {
			i = int32(len(g.parent))
			g.index[k], g.parent = i, append(g.parent, i)
		}
		if first >= 0 {
			g.parent[g.root(i)] = g.root(first)
		}
		first = i
	}
}
