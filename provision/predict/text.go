package predict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/plan"
)

// mostLines is how long a critical path may be on a screen.
const mostLines = 8

// Text says the prediction in lines for a terminal. Names in it are those of the
// site's own files; whoever displays them escapes them.
func (p Prediction) Text() []string {
	if p.Steps == 0 {
		return []string{"Expected time: none, there is nothing to do."}
	}
	out := []string{fmt.Sprintf("Expected time: %s (between %s and %s), if no step fails.", Say(p.Expected), Say(p.Low), Say(p.High)),
		"Critical path:"}
	for _, l := range p.pathLines() {
		out = append(out, "  "+l)
	}
	line := "Bottleneck: " + p.Bottleneck.Text
	if p.Bottleneck.Without > 0 {
		line += fmt.Sprintf("; without it %s", Say(p.Bottleneck.Without))
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

// leg is a part of the critical path: one step, or several alike in a row that
// waited for each other.
type leg struct {
	first, last plan.StepID
	steps       int
	took        time.Duration
	waits       string // resource that they waited for; "" for none
}

// pathLines shows the critical path: steps of one kind in a row are one line, and
// of more lines than fit the shortest are put together.
func (p Prediction) pathLines() []string {
	legs := p.legs()
	floor, shown := time.Duration(0), len(legs)
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
		out = append(out, fmt.Sprintf("%8s  %s", Say(l.took), l))
	}
	if left := len(legs) - len(out); left > 0 {
		out = append(out, fmt.Sprintf("%8s  in %d shorter parts", Say(rest), left))
	}
	return out
}

func (p Prediction) legs() []leg {
	var out []leg
	kind := ""
	for _, h := range p.Path {
		waits := h.For
		if waits == "need" || waits == "start" {
			waits = ""
		}
		if n := len(out); n > 0 && kind == h.Kind && waits != "" {
			out[n-1].last, out[n-1].waits = h.Step, waits
			out[n-1].steps++
			out[n-1].took += h.Took
			continue
		}
		kind = h.Kind
		out = append(out, leg{first: h.Step, last: h.Step, steps: 1, took: h.Took, waits: waits})
	}
	return out
}

// String returns one line of a critical path.
func (l leg) String() string {
	switch {
	case l.steps > 1:
		return fmt.Sprintf("%s to %s: %d one after another, behind %s", l.first, l.last, l.steps, l.waits)
	case l.waits != "":
		return fmt.Sprintf("%s, which waited for %s", l.first, l.waits)
	}
	return string(l.first)
}
