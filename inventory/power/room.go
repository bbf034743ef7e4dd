// SPDX-License-Identifier: Apache-2.0

package power

import (
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
)

// rackResult is what a rack draws, gives off and weighs, without its PDUs.
func (s *site) rackResult(i int, r *inventory.Rack) Rack {
	out := Rack{Rack: r}
	at := &s.racks[i]
	for j := at.firstLoad; j < at.firstLoad+at.loads; j++ {
		if j == at.shelves {
			continue // what they pass on is counted already
		}
		l := &s.loads[j]
		out.Load = out.Load.plus(l.draw)
		liquid := l.draw.Max * unit.Watts(min(1, l.liquid()/100))
		out.Liquid += liquid
		out.Air += l.draw.Max - liquid
		if l.draw.Max == 0 {
			out.Unknown++
		}
		out.weigh(l.weight())
	}
	for _, sh := range r.Shelves {
		out.weigh(sh.Weight)
		out.Shelves = append(out.Shelves, shelfResult(sh))
	}
	out.shareShelves(at.pooled)
	return out
}

func (r *Rack) weigh(m unit.Mass) {
	r.Weight += m
	if m == 0 {
		r.UnknownWeight++
	}
}

func (l *load) weight() unit.Mass {
	switch {
	case l.sw != nil:
		return l.sw.Weight
	case l.node != nil && l.node.Hardware != nil:
		return l.node.Hardware.Weight
	}
	return 0
}

// liquid is the share of its heat that goes into liquid, in per cent.
func (l *load) liquid() unit.Percent {
	switch {
	case l.sw != nil:
		return l.sw.Liquid
	case l.node != nil && l.node.Hardware != nil:
		return l.node.Hardware.Power.Liquid
	}
	return 0
}

// shelfResult is what a shelf carries: n+1 means that all of it stands on one
// supply less, n+n on half of them.
func shelfResult(sh *inventory.Shelf) Shelf {
	left := sh.Count
	switch sh.Redundancy {
	case "n+1":
		left--
	case "n+2":
		left -= 2
	case "n+n":
		left /= 2
	}
	return Shelf{Shelf: sh, Limit: sh.Capacity * unit.Watts(max(0, left)), Installed: sh.Capacity * unit.Watts(sh.Count)}
}

// shareShelves divides the load of the bus bar by what each shelf may carry.
func (r *Rack) shareShelves(pooled Load) {
	var installed unit.Watts
	for _, sh := range r.Shelves {
		installed += sh.Installed
	}
	for i := range r.Shelves {
		if installed > 0 {
			r.Shelves[i].Load = pooled.times(float64(r.Shelves[i].Installed / installed))
		}
	}
}
