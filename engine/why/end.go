// SPDX-License-Identifier: Apache-2.0

package why

import (
	"time"

	"github.com/ironrail/ironrail/engine/apply"
)

// end is when what a step does now ends at the latest; the zero value where that is
// not known.
type end struct {
	step string
	at   time.Time
	next time.Time // when the step is tried again
	wait bool      // at is of what the step waits for now, and not of the whole step
}

// endOf reads the end of a step that runs. The limit of a wait counts while it has not
// passed and is not longer than the step may take; the pause before a try is no limit.
func (s question) endOf(x apply.StepStatus) end {
	e := end{step: s.short(x.ID), at: x.Limit}
	switch {
	case s.now.Before(x.Next):
		e.next = x.Next
	case !x.Next.IsZero(): // tried again since
	case x.Limit.IsZero(): // of an owner that does not report them apart
		e.at, e.wait = x.Until, !x.Until.IsZero()
	case s.now.Before(x.Until) && x.Until.Before(x.Limit):
		e.at, e.wait = x.Until, true
	}
	return e
}

// clause goes on from "the run goes on by itself".
func (e end) clause(now time.Time) string {
	switch {
	case !e.next.IsZero():
		return ", and tries again at " + formatMoment(e.next, now)
	case e.at.IsZero():
		return ""
	case e.wait:
		return ", and waits for this until " + formatMoment(e.at, now) + " at the latest"
	}
	return ", and gives up on " + e.step + " at " + formatMoment(e.at, now) + " at the latest, sooner if it fails"
}

// untilThen says what the run does meanwhile.
func (s question) untilThen(x apply.StepStatus) string {
	if clause := s.endOf(x).clause(s.now); clause != "" {
		return " The run goes on by itself" + clause + "."
	}
	return " The run goes on waiting."
}
