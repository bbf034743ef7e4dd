// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/evidence"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/why"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fold"
	"github.com/ironrail/ironrail/web/view"
)

// funcs are what templates call.
var funcs = template.FuncMap{
	"clean": event.Escape, "prose": proseOf, "clean2": cleanLines, "join": joinClean, "some": joinSome, "fold": foldNames,
	"tone": view.ToneOf, "mark": view.MarkOf, "cableTone": cableTone, "worst": worstTone, "badText": badText, "shares": sharesOf,
	"moment": formatMoment, "millis": formatMillis, "seconds": formatSeconds, "number": formatNumber,
	"first": firstOf, "more": moreThan, "backward": backward, "plus": func(a, b int) int { return a + b }, "minus": func(a, b int) int { return a - b },
	"drawRack": drawRack, "drawTimeline": drawTimeline, "meter": meterOf, "figured": func(f view.Figure) bool { return !isPlainPass(f) }, "plainPasses": plainPasses, "shortStep": func(id, node string) string { return strings.TrimPrefix(id, node+"/") },
	"evidence": evidenceLink, "evidenceName": evidenceName, "isRef": evidence.IsRef, "hitLink": hitLink,
}

// toText is a value of a parameter.
func toText(v any) string { return fmt.Sprint(v) }

// proseOf is a sentence in which what stands between back quotes is a command.
func proseOf(text string) template.HTML {
	parts := strings.Split(event.Escape(text), "`")
	var b strings.Builder
	for i, p := range parts {
		p = template.HTMLEscapeString(p)
		switch {
		case i%2 == 1 && i < len(parts)-1:
			b.WriteString("<code>" + p + "</code>")
		case i%2 == 1:
			b.WriteString("`" + p)
		default:
			b.WriteString(p)
		}
	}
	return template.HTML(b.String()) // escaped above
}

// cleanLines escapes a text of several lines.
func cleanLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = event.Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}

func joinClean(list []string) string { return event.Escape(strings.Join(list, ", ")) }

// joinSome names a few, and counts the rest.
func joinSome(list []string) string {
	const most = 6
	if len(list) <= most {
		return joinClean(list)
	}
	return joinClean(list[:most]) + fmt.Sprintf(" and %d more", len(list)-most)
}

func foldNames(names []string) string { return event.Escape(fold.Names(names)) }

// formatMoment is a time in UTC; "" for none.
func formatMoment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

func formatMillis(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d >= time.Second {
		d = d.Round(time.Second)
	}
	return clock.Text(d)
}

func formatSeconds(s int64) string {
	if s == 0 {
		return ""
	}
	return clock.Text(time.Duration(s) * time.Second)
}

// formatNumber writes 12,500.
func formatNumber(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// firstOf are at most the first n of a list of texts or findings.
func firstOf(list any, n int) any {
	switch l := list.(type) {
	case []string:
		return l[:min(n, len(l))]
	case []view.Finding:
		return l[:min(n, len(l))]
	case []view.PlanErase:
		return l[:min(n, len(l))]
	}
	return list
}

// moreThan is how many a list has after the first n.
func moreThan(list any, n int) int {
	size := 0
	switch l := list.(type) {
	case []string:
		size = len(l)
	case []view.Finding:
		size = len(l)
	case []view.PlanErase:
		size = len(l)
	}
	return max(0, size-n)
}

func backward(items []view.Item) []view.Item {
	items = slices.Clone(items)
	slices.Reverse(items)
	return items
}

// cableTone is the tone of a cable's state.
func cableTone(state string) view.Tone {
	switch state {
	case "conforms":
		return view.Good
	case "wrong", "missing":
		return view.Bad
	case view.Suspected:
		return view.Warn
	}
	return view.Idle
}

// worstTone is the tone of the most urgent state.
func worstTone(counts []view.Count) view.Tone {
	if len(counts) == 0 {
		return view.Idle
	}
	return view.ToneOf(counts[0].State)
}

// badText counts what is bad in a few signs: "2 ✕".
func badText(counts []view.Count) string {
	for _, c := range counts {
		if view.ToneOf(c.State) == view.Bad {
			return fmt.Sprintf("%d %s", c.Nodes, view.MarkOf(c.State))
		}
	}
	return ""
}

// part is a part of a bar.
type part struct {
	Tone view.Tone
	X, W int
}

// sharesOf are the parts of a bar of 1,000, the good ones first.
func sharesOf(counts []view.Count) (parts []part) {
	all := 0
	by := map[view.Tone]int{}
	for _, c := range counts {
		all += c.Nodes
		by[view.ToneOf(c.State)] += c.Nodes
	}
	x, seen := 0, 0
	for _, t := range []view.Tone{view.Good, view.Active, view.Warn, view.Bad, view.Idle} {
		if by[t] == 0 {
			continue
		}
		seen += by[t]
		end := 1000 * seen / all
		parts = append(parts, part{t, x, max(1, end-x)})
		x = end
	}
	return parts
}

func evidenceLink(ref string) string { return "/evidence/" + url.PathEscape(ref) }

func evidenceName(ref string) string {
	_, name, _ := strings.Cut(ref, "/")
	if name == "" {
		return "output"
	}
	return event.Escape(name)
}

// hitLink is where a hit leads.
func hitLink(h view.Hit) string {
	return "/" + h.Kind + "/" + (&url.URL{Path: h.Name}).EscapedPath()
}

// meter is a figure beside its limit, which stands at 100 of 150.
type meter struct {
	Tone  view.Tone
	W     int
	Label string
}

// meterOf is nil for a figure that has no limit that is a number above zero.
func meterOf(f view.Figure) *meter {
	if f.Share <= 0 {
		return nil
	}
	m := &meter{Tone: view.Good, W: int(min(max(f.Share, 1), 150)), Label: fmt.Sprintf("%.0f %% of the limit", f.Share)}
	switch f.Verdict {
	case report.Fail:
		m.Tone = view.Bad
	case report.Allowed, report.NotJudged:
		m.Tone = view.Warn
	}
	return m
}

// isPlainPass reports whether a look passed that has no figure.
func isPlainPass(f view.Figure) bool { return f.Measured == "" && f.Verdict == report.Pass }

func plainPasses(all []view.Figure) []view.Figure {
	return slices.DeleteFunc(slices.Clone(all), func(f view.Figure) bool { return !isPlainPass(f) })
}

// toneOfStep is the tone of a step's state.
func toneOfStep(s view.Span) view.Tone {
	switch {
	case s.Late:
		return view.Warn
	case s.State == "failed", s.Found:
		return view.Bad
	case s.State == "done":
		return view.Good
	case s.State == "interrupted", s.State == "examined":
		return view.Warn
	case s.State == "waiting":
		return view.Idle
	}
	return view.Active
}

// stateWords are the words of an item for who does not see it.
func stateWords(s why.Status, text string) string {
	if text == "" || text == string(s) {
		return string(s)
	}
	return string(s) + ": " + text
}
