// SPDX-License-Identifier: Apache-2.0

package cable

import (
	"cmp"
	"io"
	"slices"
	"strconv"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// Item is one line of the bill of materials.
type Item struct {
	Count  int          // needed
	Spares int          // to order beside Count: 2 %, rounded up
	Part   string       // "DAC 400Gbps"; "" for cables of which it is not known
	Type   string       // as of Run, or "optic"
	Length unit.Length  // of a cable; 0: an optic, or not known
	Speed  unit.BitRate // of the cable, or of one link of an optic; 0: not known
}

// spareShare is the share of spares: one in fifty.
const spareShare = 50

// optic is the type of transceivers in a bill.
const optic = "optic"

// CountBill counts what is ordered: cables by part and length, then transceivers. A
// cage with two ports has one transceiver, and copper that ends in it is one
// cable for both.
func CountBill(runs []Run) []Item {
	c := counter{items: map[Item]int{}, cages: newCages(), seen: map[cage]bool{}}
	for i := range runs {
		c.cable(&runs[i])
		c.optics(&runs[i])
	}
	out := make([]Item, 0, len(c.items))
	for item, n := range c.items {
		item.Count, item.Spares = n, (n+spareShare-1)/spareShare
		out = append(out, item)
	}
	slices.SortFunc(out, func(a, b Item) int {
		return cmp.Or(cmp.Compare(rankItem(a), rankItem(b)), cmp.Compare(b.Speed, a.Speed), cmp.Compare(a.Part, b.Part), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Length, b.Length))
	})
	return out
}

// rankItem puts cables before optics, and what is not known last.
func rankItem(i Item) int {
	switch {
	case i.Type == optic:
		return 1
	case i.Part == "":
		return 2
	}
	return 0
}

// counter counts items, which are keys without their counts.
type counter struct {
	items map[Item]int
	cages cages
	seen  map[cage]bool // that have their transceiver or copper
}

func (c *counter) cable(r *Run) {
	if r.Optics == 0 && len(r.Cables) == 1 && r.Part != "" {
		for _, e := range []*inventory.CableEnd{&r.Cables[0].To, &r.Cables[0].From} {
			if k, links := c.cages.of(e); links > 1 {
				if c.seen[k] {
					return // the other half of a cable that is counted
				}
				c.seen[k] = true
				break
			}
		}
	}
	c.items[Item{Part: r.Part, Type: r.Type, Length: r.Length, Speed: r.Speed}]++
}

// optics counts the transceivers of a fibre, each cage once.
func (c *counter) optics(r *Run) {
	if r.Optics == 0 {
		return
	}
	if len(r.Cables) == 1 {
		c.transceiver(r, &r.Cables[0].From, r.Speed)
		c.transceiver(r, &r.Cables[0].To, r.Speed)
		return
	}
	halves := unit.BitRate(len(r.Cables))
	trunk := trunkAtFrom(r)
	c.items[opticItem(r, r.Speed/halves, len(r.Cables))]++ // the trunk fills its cage
	for _, h := range r.Cables {
		leg := &h.To
		if !trunk {
			leg = &h.From
		}
		c.transceiver(r, leg, r.Speed/halves)
	}
}

func (c *counter) transceiver(r *Run, e *inventory.CableEnd, speed unit.BitRate) {
	k, links := c.cages.of(e)
	if links > 1 {
		if c.seen[k] {
			return
		}
		c.seen[k] = true
	}
	c.items[opticItem(r, speed, links)]++
}

func opticItem(r *Run, speed unit.BitRate, links int) Item {
	text := speed.String()
	if links > 1 {
		text = strconv.Itoa(links) + "x" + text
	}
	return Item{Part: "optic " + r.medium + " " + text, Type: optic, Speed: speed}
}

// WriteBill writes a bill as CSV: count, spares, part, type, length, speed.
func WriteBill(w io.Writer, items []Item) error {
	t := newTable(w, "count", "spares", "part", "type", "length", "speed")
	for _, i := range items {
		part := i.Part
		if part == "" {
			part = "not known"
		}
		t.row(strconv.Itoa(i.Count), strconv.Itoa(i.Spares), part, i.Type, formatLength(i.Length), formatRate(i.Speed))
	}
	return t.end()
}
