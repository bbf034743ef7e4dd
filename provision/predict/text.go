// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
)

// mostLines is how long a critical path may be on a screen.
const mostLines = 8

// Text says the prediction in lines for a terminal. Names in it are those of the
// site's own files; whoever displays them escapes them.
func (p Prediction) Text() []string {
	if p.Steps == 0 {
		return []string{"Expected time: none, there is nothing to do."}
	}
	out := []string{fmt.Sprintf("Expected time: %s (between %s and %s), if no step fails.", FormatDuration(p.Expected), FormatDuration(p.Low), FormatDuration(p.High)),
		"Critical path:"}
	for _, l := range p.pathLines() {
		out = append(out, "  "+l)
	}
	line := "Bottleneck: " + p.Bottleneck.Text
	if p.Bottleneck.Without > 0 {
		line += fmt.Sprintf("; without it %s", FormatDuration(p.Bottleneck.Without))
	}
	out = append(out, line+".", "Durations from: "+p.sources()+".")
	for _, n := range p.Notes {
		out = append(out, "Note: "+n+".")
	}
	return out
}

// sources says where the durations are from, stages of one source together.
func (p Prediction) sources() string {
	var order []string
	by := map[string][]string{}
	for _, s := range p.Stages {
		if by[s.Source] == nil {
			order = append(order, s.Source)
		}
		by[s.Source] = append(by[s.Source], s.Name)
	}
	if len(order) == 1 {
		return order[0]
	}
	var parts []string
	for _, source := range order {
		parts = append(parts, fmt.Sprintf("%s (%s)", source, strings.Join(by[source], ", ")))
	}
	return strings.Join(parts, "; ")
}

// leg is a part of the critical path: one step, or several alike.
type leg struct {
	kind        string
	first, last plan.StepID
	steps       int
	took        time.Duration
	waits       string // resource that the last of them to wait waited for; "" for none
}

// pathLines shows the critical path in its order: steps of one kind in a row are
// one line. Where that takes too many lines, all steps of a kind are one, and the
// shortest kinds are put together.
func (p Prediction) pathLines() []string {
	legs := p.legs(false)
	if len(legs) > mostLines {
		legs = p.legs(true)
	}
	floor, shown := time.Duration(-1), len(legs)
	if len(legs) > mostLines {
		took := make([]time.Duration, len(legs))
		for i, l := range legs {
			took[i] = l.took
		}
		slices.Sort(took)
		shown = mostLines - 1
		floor = took[len(legs)-shown]
	}
	var out []string
	var rest time.Duration
	for _, l := range legs {
		if l.took < floor || len(out) == shown {
			rest += l.took
			continue
		}
		out = append(out, fmt.Sprintf("%8s  %s", FormatDuration(l.took), l))
	}
	if left := len(legs) - len(out); left > 0 {
		out = append(out, fmt.Sprintf("%8s  %s", FormatDuration(rest), formatCount(left, "shorter part")))
	}
	return out
}

// legs puts steps of the path together: those of a kind that waited for each
// other in a row, or all of a kind.
func (p Prediction) legs(all bool) []leg {
	var out []leg
	for _, h := range p.Path {
		waits := h.For
		if waits == "need" || waits == "start" {
			waits = ""
		}
		i := len(out) - 1
		if all {
			i = slices.IndexFunc(out, func(l leg) bool { return l.kind == h.Kind })
		}
		if i < 0 || out[i].kind != h.Kind || !all && waits == "" {
			out = append(out, leg{kind: h.Kind, first: h.Step, last: h.Step, steps: 1, took: h.Took, waits: waits})
			continue
		}
		l := &out[i]
		l.last, l.steps, l.took = h.Step, l.steps+1, l.took+h.Took
		if waits != "" {
			l.waits = waits
		}
	}
	return out
}

// String returns one line of a critical path.
func (l leg) String() string {
	text := string(l.first)
	if l.steps > 1 {
		text += fmt.Sprintf(" to %s, %d in all", l.last, l.steps)
	}
	if l.waits != "" {
		text += ", waiting for " + sayResource(l.waits)
	}
	return text
}

// sayResource names a resource that a step waited for.
func sayResource(name string) string {
	class, of, _ := strings.Cut(name, "/")
	switch class {
	case stepSlots:
		return "its turn among the steps at once"
	case streams:
		return "an image stream"
	case "inrush":
		if onCircuit(name) {
			return "the inrush of circuit " + of
		}
		return "the inrush of rack " + of
	case "bmc":
		return "the BMC of " + of
	}
	return name
}

// onCircuit reports whether a resource is a circuit's room for inrush, rather
// than that of a rack whose circuits are not known.
func onCircuit(name string) bool {
	rest, ok := strings.CutPrefix(name, circuits)
	return ok && strings.Contains(rest, "/")
}
