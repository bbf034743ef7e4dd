// SPDX-License-Identifier: Apache-2.0

package power

import (
	"slices"

	"github.com/ironrail/ironrail/inventory/unit"
)

// tolerance is how far sums of fractions may be off, as a share.
const tolerance = 1e-9

// isOver reports whether a sum is above a limit.
func isOver(sum, limit unit.Watts) bool { return sum > limit*(1+tolerance)+tolerance }

// loseFeeds computes what each PDU and feed carries beside its load when any one
// feed is lost. The supplies that are left share the load. Are they fewer than
// it needs, each carries what it can and no more: the chassis throttles, as GPU
// nodes do on a power brake. (That it switches itself off would be less for the
// others; so this is the worse case for them, and the loss of a feed never lowers
// what another carries.)
func (s *site) loseFeeds() {
	one := make([]loss, len(s.pdus)) // most PDUs gain from one feed only
	for i := range s.pdus {
		s.pdus[i].losses = one[i : i : i+1]
	}
	var lost []int
	for i := range s.loads {
		l := &s.loads[i]
		if l.draw.Max <= 0 {
			continue
		}
		lost = s.feedsOf(l, lost[:0])
		for _, f := range lost {
			s.lose(l, f)
		}
	}
}

// feedsOf appends the feeds that a load hangs on.
func (s *site) feedsOf(l *load, to []int) []int {
	for _, x := range s.plugs[l.first:l.last] {
		if x.feed >= 0 && !slices.Contains(to, x.feed) {
			to = append(to, x.feed)
		}
	}
	return to
}

// remains is what the supplies of a load carry that do not hang on a feed, and
// how many they are.
func (s *site) remains(l *load, lost int) (rating unit.Watts, supplies int) {
	for _, x := range s.plugs[l.first:l.last] {
		if x.feed != lost {
			rating += x.rating
			supplies++
		}
	}
	return rating, supplies
}

func (s *site) lose(l *load, lost int) {
	left, n := s.remains(l, lost)
	if n == 0 || left <= 0 {
		return
	}
	after := Load{min(l.draw.Typical, left), min(l.draw.Max, left)}
	for _, x := range s.plugs[l.first:l.last] {
		if x.feed == lost || x.pdu < 0 {
			continue
		}
		now, then := l.draw.times(x.share), after.times(float64(x.rating/left))
		extra := Load{max(0, then.Typical-now.Typical), max(0, then.Max-now.Max)}
		s.pdus[x.pdu].add(lost, x.circuit, extra)
		s.feeds[x.feed].add(lost, extra)
	}
}

func (p *pdu) add(lost, circuit int, extra Load) {
	i := slices.IndexFunc(p.losses, func(l loss) bool { return l.feed == lost })
	if i < 0 {
		i = len(p.losses)
		p.losses = append(p.losses, loss{feed: lost})
	}
	p.losses[i].extra[circuit] = p.losses[i].extra[circuit].plus(extra)
}

func (f *feed) add(lost int, extra Load) {
	i := slices.IndexFunc(f.losses, func(l feedLoss) bool { return l.feed == lost })
	if i < 0 {
		i = len(f.losses)
		f.losses = append(f.losses, feedLoss{feed: lost})
	}
	f.losses[i].extra = f.losses[i].extra.plus(extra)
}

// worst is the loss that adds the most to a PDU; nil: none adds anything.
func (p *pdu) worst() *loss {
	var worst *loss
	for i := range p.losses {
		l := &p.losses[i]
		if most := sumLoads(l.extra).Max; most > 0 && (worst == nil || most > sumLoads(worst.extra).Max) {
			worst = l
		}
	}
	return worst
}

// worst is the loss that adds the most to a feed; nil: none adds anything.
func (f *feed) worst() *feedLoss {
	var worst *feedLoss
	for i := range f.losses {
		l := &f.losses[i]
		if l.extra.Max > 0 && (worst == nil || l.extra.Max > worst.extra.Max) {
			worst = l
		}
	}
	return worst
}

func (s *site) feedResults() []Feed {
	out := make([]Feed, len(s.feeds))
	for i := range s.feeds {
		f := &s.feeds[i]
		out[i] = Feed{Name: f.name, Load: f.load}
		if f.block != nil {
			out[i].Limit = f.block.Capacity * unit.Watts(f.block.Derate)
		}
		if len(s.feeds) < 2 {
			continue
		}
		out[i].Worst = f.load
		if l := f.worst(); l != nil {
			out[i].Worst, out[i].Lost = f.load.plus(l.extra), s.feeds[l.feed].name
		}
	}
	return out
}
