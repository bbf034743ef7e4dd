// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/subject"
)

// class is a set of steps whose durations come from one distribution.
type class struct {
	Kind
	low, mid, high float64 // seconds of one unit
	hold           float64
	per            Unit
	gib            float64 // of the image, for perGiB
	measured       bool    // from the history
	even           bool    // takes the same on all nodes
	stream         bool    // moves an image: the rest is what follows the stream
	rate           float64 // of the stream, bytes on the wire per second
	bytes          float64 // of the stream
}

// classKey tells classes apart. Nodes of one hardware block may be installed on
// different disks.
type classKey struct{ kind, hardware, disk, image string }

// measure sorts the steps into classes and finds the duration of each.
func (e *estimate) measure() {
	seen := map[classKey]int{}
	e.of, e.nth = make([]int, len(e.plan.Steps)), make([]int, len(e.plan.Steps))
	blind := false
	for i := range e.plan.Steps {
		s := &e.plan.Steps[i]
		key := classKey{KindOf(*s), hardwareOf(membersOf(*s), e.opt.Profiles), e.profile(s).Disk, imageOf(s)}
		c, ok := seen[key]
		if !ok {
			c = len(e.classes)
			seen[key] = c
			e.classes = append(e.classes, e.classOf(s, key))
			_, sized := e.opt.Images[key.image]
			blind = blind || key.image != "" && !sized && s.Subject.Kind == subject.Node && usesStream(s)
		}
		e.of[i], e.nth[i] = c, e.classes[c].Steps
		e.classes[c].Steps++
	}
	if blind {
		e.notes = append(e.notes, "the size of an image is not known: its writes are taken from the table and share no link")
	}
}

// profile is that of the step's node, or of the first node of its group.
func (e *estimate) profile(s *plan.Step) Profile {
	if s.Group == nil && s.Subject.Kind == subject.Node {
		return e.opt.Profiles[s.Subject.Name]
	}
	for _, m := range membersOf(*s) {
		if m.Kind == subject.Node {
			return e.opt.Profiles[m.Name]
		}
	}
	return Profile{}
}

// imageOf is the name of the image that a step is about; "" for none.
func imageOf(s *plan.Step) string {
	if name, ok := strings.CutPrefix(string(s.ID), "site/image."); ok {
		return name
	}
	if !usesStream(s) {
		return ""
	}
	for _, in := range s.Inputs {
		if name, ok := strings.CutPrefix(in.Name, "image."); ok {
			return name
		}
	}
	return ""
}

func usesStream(s *plan.Step) bool {
	return slices.ContainsFunc(s.Uses, func(u plan.Use) bool { return u.Resource == streams })
}

// classOf finds the duration of the steps that are like s: in the history, else
// in the table, else what its stage says.
func (e *estimate) classOf(s *plan.Step, key classKey) class {
	c := class{Kind: Kind{Kind: key.kind, Hardware: key.hardware, Stage: s.Stage}, hold: 1}
	row, inTable := lookupRow(e.opt.Table, key.kind, e.profile(s))
	if c.per, c.gib = row.Per, 1; inTable && row.Hold > 0 {
		c.hold = row.Hold
	}
	img, sized := e.opt.Images[key.image]
	if sized && img.Disk > 0 {
		c.gib = float64(img.Disk) / float64(gib)
	}
	past, lived := e.opt.History.past(key.kind, key.hardware)
	switch {
	case lived:
		c.measured, c.low, c.mid, c.high, c.gib = true, past.Low.Seconds(), past.Median.Seconds(), past.High.Seconds(), 1
		c.Source, c.Runs = "history of "+formatCount(past.Runs, "run"), past.Runs
		c.Cites = formatCount(past.Steps, "step") + " of this site"
	case inTable && row.Planned:
		c.mid = s.Deadline.Expected.Seconds()
		c.low, c.high = c.mid-30, c.mid+120
		c.even, c.Source, c.Cites = true, "plan", row.Source
	case inTable:
		c.low, c.mid, c.high = row.Low.Seconds(), row.Mid.Seconds(), row.High.Seconds()
		c.Source, c.Cites = "table", row.Source
	default:
		c.mid = max(s.Deadline.Expected, time.Millisecond).Seconds()
		c.low, c.high = c.mid/2, c.mid*2
		c.Source, c.Cites = "plan", "what the stage itself expects"
	}
	if sized && usesStream(s) && img.Wire > 0 {
		c.addStream(img, e.profile(s))
	}
	c.boundHold(s)
	at := func(side float64) time.Duration { return toDuration(c.cost(0, side, c.units(s)).alone(math.Inf(1))) }
	c.Low, c.Expected, c.High = at(-1), at(0), at(1)
	return c
}

// boundHold bounds how long of the step a resource is held that is given back before it
// ends.
func (c *class) boundHold(s *plan.Step) {
	for _, u := range s.Uses {
		if u.Hold == plan.UntilReleased && u.Settles > 0 && c.mid > 0 {
			c.hold = min(1, u.Settles.Seconds()/c.mid)
		}
	}
}

// addStream splits a write into its stream and what follows. A past write is all
// stream: its rate was what it was, the check afterwards included.
func (c *class) addStream(img Image, p Profile) {
	c.stream, c.bytes = true, float64(img.Wire)
	if c.measured {
		c.rate = c.bytes / max(c.mid, 0.001)
		return
	}
	d, plain := diskOf(p.Disk), float64(max(img.Disk, img.Wire))
	c.rate = min(bytesPerSecond(p.NIC), c.bytes/plain*float64(d.Write))
	c.mid = plain / float64(d.Read)
	c.low, c.high = c.mid*0.7, c.mid*1.6
	c.Cites = d.Source
}

func diskOf(kind string) Disk {
	for _, d := range Disks {
		if d.Type == kind || d.Type == "" {
			return d
		}
	}
	return Disks[len(Disks)-1]
}

// lookupRow finds the row of a kind: the longest kind first, then the first match.
func lookupRow(table []Row, kind string, p Profile) (Row, bool) {
	for k := kind; k != ""; {
		for _, r := range table {
			if sameKind(r.Kind, k) && r.Match.fits(p) {
				return r, true
			}
		}
		k = k[:max(strings.LastIndexByte(k, '.'), 0)]
	}
	return Row{}, false
}

// sameKind compares kinds word by word; * stands for one word.
func sameKind(row, kind string) bool {
	if row == kind || !strings.Contains(row, "*") {
		return row == kind
	}
	want, have := strings.Split(row, "."), strings.Split(kind, ".")
	return slices.EqualFunc(want, have, func(w, h string) bool { return w == "*" || w == h })
}

func (m Match) fits(p Profile) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(m.Vendor, p.Vendor) && is(m.Product, p.Product) && is(m.Boot, p.Boot) && is(m.Disk, p.Disk) && p.GPUs >= m.GPUs && p.Memory >= m.Memory && (p.NoFirmware || !m.NoFirmware)
}

// units is how many units of its kind a step has.
func (c *class) units(s *plan.Step) float64 {
	switch {
	case c.Source == "plan":
		return 1
	case c.per.Name == perGiB.Name:
		return c.gib
	}
	return c.per.in(len(membersOf(*s)))
}

// tenth is the distance of the tenth and the ninetieth percentile from the
// median, in standard deviations; tail is where a healthy node ends (1 in 100):
// slower ones are faults, which a rehearsal shows and a prediction does not.
//
// alike is how much slower the slowest tenth of nodes of one model is than the
// half: an estimate. (Of 150 resets of one BMC model most took 112 to 120 s, a few
// 90 s, outliers over 200 s: github.com/xcat2/xcat-core issue 2693.) The range of
// a row of the table is about which site it is, not about which of its nodes.
const (
	tenth = 1.2816
	tail  = 2.3263
	alike = 1.15
)

// costs gives every step its duration. The n steps of a class are spread evenly
// over its nodes' distribution, in an order that follows from its name alone, so
// that what waits for all of them waits for the slowest. side moves all of them
// to the low (-1) or the high (1) end of what is known.
func (e *estimate) costs(side float64) []cost {
	stride := make([]int, len(e.classes))
	for i, c := range e.classes {
		stride[i] = strideOf(c.Kind.Kind+"/"+c.Hardware, c.Steps)
	}
	out := make([]cost, len(e.plan.Steps))
	for i := range out {
		c := &e.classes[e.of[i]]
		s := &e.plan.Steps[i]
		u := (float64(e.nth[i]*stride[e.of[i]]%c.Steps) + 0.5) / float64(c.Steps)
		z := min(max(math.Sqrt2*math.Erfinv(2*u-1), -tail), tail)
		out[i] = c.cost(z/tenth, side, c.units(s))
		if limit := s.Deadline.Limit.Seconds(); limit > 0 {
			out[i].fixed = min(out[i].fixed, limit)
		}
	}
	return out
}

// cost is the duration of a step: of a node so many tenths from the median one,
// on a site on that side of the expected one.
func (c *class) cost(node, side, units float64) cost {
	if c.mid <= 0 {
		return cost{hold: c.hold}
	}
	spread := alike
	switch {
	case c.measured:
		spread = c.ratio(node)
	case c.even:
		spread = 1
	}
	factor := math.Pow(spread, node) * math.Pow(c.ratio(side), side)
	switch {
	case c.stream && c.measured:
		return cost{bytes: c.bytes, rate: c.rate / factor, hold: c.hold}
	case c.stream:
		return cost{bytes: c.bytes, rate: c.rate, fixed: c.mid * factor, hold: c.hold}
	}
	return cost{fixed: c.mid * factor * units, hold: c.hold}
}

// ratio is how far the tenth on a side of the median is from it.
func (c *class) ratio(side float64) float64 {
	if side < 0 {
		return max(c.mid/max(c.low, c.mid/100), 1)
	}
	return max(c.high/c.mid, 1)
}

// strideOf is a step through 0..n-1 that meets every number once.
func strideOf(name string, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	s := max(n*(40+int(h.Sum32()%40))/100, 1)
	for greatestDivisor(s, n) != 1 {
		s++
	}
	return s
}

func greatestDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// formatCount says "1 run", "3 runs".
func formatCount(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
