// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
)

// path walks back from the step that ends last to one that waited for nothing.
func (e *estimate) path(s schedule) []Hop {
	last := int32(-1)
	for i, end := range s.end {
		if last < 0 || end > s.end[last] {
			last = int32(i)
		}
	}
	var out []Hop
	until := s.wall
	for i := last; i >= 0; i = s.cause[i] {
		step := &e.plan.Steps[i]
		hop := Hop{Step: step.ID, Stage: step.Stage, Kind: KindOf(*step), Start: toDuration(s.start[i]), Took: toDuration(until - s.start[i]), For: "start"}
		switch {
		case s.blockedOn[i] >= 0:
			hop.For = e.graph.names[s.blockedOn[i]]
		case s.cause[i] >= 0:
			hop.For = "need"
		}
		out = append(out, hop)
		until = s.start[i]
	}
	slices.Reverse(out)
	return out
}

// enough is the share of the wall time from which on a limit is worth naming.
const enough = 0.05

// bottleneck finds what costs most: the plan is scheduled again without each
// limit that the critical path met, and the largest gain wins.
func (e *estimate) bottleneck(mid schedule, path []Hop) Bottleneck {
	if len(path) == 0 {
		return Bottleneck{Text: "nothing to do"}
	}
	best, without := "", mid.wall*(1-enough)
	costs := e.costs(0)
	for _, c := range e.candidates(mid, costs, path) {
		if wall := e.graph.run(costs, e.uplink, c).wall; wall < without {
			best, without = c, wall
		}
	}
	if best != "" {
		return Bottleneck{Resource: best, Text: e.limit(best), Without: toDuration(without)}
	}
	return e.longest(path)
}

// candidates are the limits that held a step of the critical path up, in the
// order in which the path met them.
func (e *estimate) candidates(s schedule, costs []cost, path []Hop) []string {
	index := map[plan.StepID]int{}
	for _, h := range path {
		index[h.Step] = -1
	}
	for i := range e.plan.Steps {
		if _, on := index[e.plan.Steps[i].ID]; on {
			index[e.plan.Steps[i].ID] = i
		}
	}
	var out []string
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, h := range path {
		i := index[h.Step]
		if s.blockedOn[i] >= 0 {
			add(e.graph.classOf[s.blockedOn[i]])
		}
		if costs[i].bytes > 0 && s.end[i]-s.start[i] > costs[i].alone(math.Inf(1))*1.02 {
			add(uplink)
		}
	}
	return out
}

// limit names a limit in the operator's words.
func (e *estimate) limit(name string) string {
	n := 0
	for i, class := range e.graph.classOf {
		if class == name {
			n = e.graph.limit[i]
		}
	}
	switch name {
	case uplink:
		return e.uplinkText()
	case stepSlots:
		return fmt.Sprintf("steps: %d at once", n)
	case streams:
		return fmt.Sprintf("image streams: %d at a time", n)
	case circuits:
		if slices.ContainsFunc(e.graph.names, onCircuit) {
			return "inrush: what the breakers carry while nodes are switched on"
		}
		return fmt.Sprintf("inrush: %s of a rack at a time until their supplies have settled", formatCount(n, "node"))
	case "bmc/":
		return fmt.Sprintf("sessions: %d for each BMC", n)
	case "test/":
		return fmt.Sprintf("collective tests: %d at a time on one set of nodes", n)
	case "repo/":
		return fmt.Sprintf("package builds: %d at a time for one repository", n)
	}
	return fmt.Sprintf("%s: %d at a time", strings.TrimSuffix(name, "/"), n)
}

// uplinkText says how much goes over the uplink.
func (e *estimate) uplinkText() string {
	images, bytes := 0, 0.0
	for _, c := range e.classes {
		if c.stream {
			images += c.Steps
			bytes += c.bytes * float64(c.Steps)
		}
	}
	return fmt.Sprintf("uplink %s: %s, together %.1f GiB", e.uplink, formatCount(images, "image"), bytes/float64(gib))
}

// longest names the kind of step that most of the critical path consists of.
func (e *estimate) longest(path []Hop) Bottleneck {
	sum := map[string]time.Duration{}
	best := path[0].Kind
	for _, h := range path {
		if sum[h.Kind] += h.Took; sum[h.Kind] > sum[best] {
			best = h.Kind
		}
	}
	return Bottleneck{Text: fmt.Sprintf("%s: %s of the critical path; no single limit costs more than %.0f %%",
		e.sayKind(best), FormatDuration(sum[best]), enough*100)}
}

// sayKind names a kind of step in words.
func (e *estimate) sayKind(kind string) string {
	if row, ok := lookupRow(e.opt.Table, kind, Profile{}); ok && row.Words != "" {
		return row.Words
	}
	for _, w := range kindWords {
		if kind == w.kind || strings.HasPrefix(kind, w.kind+".") {
			return w.words
		}
	}
	return kind
}

// kindWords are the kinds that a critical path is made of.
var kindWords = []struct{ kind, words string }{
	{"install.netboot", "power-on, self-test and network boot"},
	{"install.write", "writing the image"},
	{"install.boot", "reboot and self-test"},
	{"drivers", "drivers"},
	{"site.drivers", "building packages"},
	{"site.image", "verifying an image"},
}
