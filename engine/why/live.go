// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
)

// LiveText is the last part of a story's text: what the node's BMC and its PDUs said when
// they were asked, and what follows from it. told is the answer that was shown before
// they were asked: only what differs from it is said. Empty without a Look.
func (s Explanation) LiveText(shown Answer, now time.Time) string {
	l := s.Look
	if l == nil {
		return ""
	}
	var p page
	p.linef("")
	p.linef("BMC, asked now (%s): %s", formatMoment(l.At, now), endSentence(liveText(*l)))
	if len(l.Log) > 0 {
		p.linef("  its event log, the last of it:")
	}
	for _, e := range l.Log {
		at := "(no time)"
		if !e.Time.IsZero() {
			at = formatMoment(e.Time, now)
		}
		p.linef("    %s  %s", at, strings.TrimSpace(e.Severity+" "+e.Text))
	}
	for _, o := range l.Outlets {
		p.linef("  %s", o)
	}
	rest := l.Errors
	if l.Power == "" && len(rest) > 0 {
		rest = rest[1:] // the first stands above
	}
	for _, e := range rest {
		p.linef("  not read: %s", e)
	}
	p.since(s, shown, now)
	return p.String()
}

// liveText says in a clause what a BMC said, or in which way it was silent.
func liveText(l control.Look) string {
	if l.Power == "" && l.Sort != "" {
		return strings.TrimSuffix(l.Sort+": "+firstError(&l), ": ")
	}
	return lookText(l)
}

// since says how the answer differs from the one that was told before.
func (p *page) since(s Explanation, shown Answer, now time.Time) {
	a := s.Answer
	moved := !a.Since.Equal(shown.Since) || a.Status != shown.Status && a.Status != Late
	if moved {
		p.linef("Meanwhile: %s", endSentence(strings.Join(nonEmpty(a.State, formatSpan(a, now)), ", ")))
	}
	if a.Cause != "" && a.Cause != shown.Cause {
		p.linef("Most likely cause now: %s", endSentence(a.Cause))
	}
	switch {
	case a.Action != "" && a.Action != shown.Action && (moved || a.Cause != shown.Cause):
		p.linef("Next: %s", endSentence(a.Action))
	case s.Look.Power == "" && s.Look.Do != "":
		p.linef("For the BMC: %s", endSentence(s.Look.Do))
	}
}

func nonEmpty(texts ...string) (out []string) {
	for _, t := range texts {
		if t != "" {
			out = append(out, t)
		}
	}
	return out
}
