// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/internal/clock"
)

// resources are limits in words, by what their names begin with.
var resources = []struct{ prefix, words string }{
	{"inrush/", "its turn to be switched on at %s"},
	{"streams", "an image stream of this controller"},
	{"bmc/", "the one session with the BMC of %s"},
	{"test/", "the one test at a time on %s"},
	{"repo/", "the one build at a time of repository %s"},
	{"steps", "its turn among all steps"},
}

// resourceText names a limit in words; one that is not known keeps its name.
func resourceText(name string) string {
	for _, r := range resources {
		rest, ok := strings.CutPrefix(name, r.prefix)
		switch {
		case ok && strings.Contains(r.words, "%s"):
			return fmt.Sprintf(r.words, rest)
		case ok:
			return r.words
		}
	}
	return name
}

// mostNamed is how many names a sentence has.
const mostNamed = 3

// listHolders names steps with the nodes that they work on: "r01-u01 (install.write,
// since 12:03:05) and 4 more".
func listHolders(hs []apply.Holder, all int, now time.Time) string {
	var parts []string
	for _, h := range hs[:min(len(hs), mostNamed)] {
		name, what := h.Node, shortOf(h.Step, h.Node)
		if name == "" {
			name, what = string(h.Step), h.Text
		}
		if !h.Since.IsZero() {
			what += ", since " + formatMoment(h.Since, now)
		} else {
			what += ", not started"
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, what))
	}
	return joinSome(parts, max(all, len(hs)))
}

// nodesOfHolders are the nodes of steps, each once.
func nodesOfHolders(hs []apply.Holder) (out []string) {
	for _, h := range hs {
		if h.Node != "" && !slices.Contains(out, h.Node) {
			out = append(out, h.Node)
		}
	}
	return out
}

// listSteps names steps.
func listSteps(ids []plan.StepID, node string) string {
	var parts []string
	for _, id := range ids[:min(len(ids), mostNamed)] {
		parts = append(parts, shortOf(id, node))
	}
	return joinSome(parts, len(ids))
}

// joinSome joins what is named and counts what is not.
func joinSome(named []string, all int) string {
	switch rest := all - len(named); {
	case rest > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(named, ", "), rest)
	case len(named) > 1:
		return strings.Join(named[:len(named)-1], ", ") + " and " + named[len(named)-1]
	}
	return strings.Join(named, "")
}

// endSentence ends a text with a full stop.
func endSentence(s string) string {
	if s == "" {
		return s
	}
	return strings.TrimRight(s, " .") + "."
}

// formatMoment shows a time in the zone of now: without its day when that is today's.
func formatMoment(t, now time.Time) string {
	t = t.In(now.Location())
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// formatAgo is the time from t to now.
func formatAgo(t, now time.Time) string { return clock.Took(t, now) }

// formatBriefly writes a duration without parts that are zero or do not matter.
func formatBriefly(d time.Duration) string {
	if d >= 10*time.Minute {
		d = d.Round(time.Minute)
	}
	s := clock.Text(d.Round(time.Second))
	for _, zero := range []struct{ suffix, unit string }{{"m0s", "0s"}, {"h0m", "0m"}, {"d0h", "0h"}} {
		if strings.HasSuffix(s, zero.suffix) {
			s = strings.TrimSuffix(s, zero.unit)
		}
	}
	return s
}
