// SPDX-License-Identifier: Apache-2.0

package why

import (
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
)

// Stages whose steps say something about what to look at. The names are those of
// the stage table; a test of the composition compares them.
const (
	stageBMC     = "bmc"
	stageInstall = "install"
	netbootStep  = "/install.netboot"
)

// answerActive is a node that a step works on now.
func answerActive(s question) (Answer, bool) {
	if len(s.Active) == 0 {
		return Answer{}, false
	}
	x := s.Active[len(s.Active)-1]
	a := Answer{Status: Working, State: fmt.Sprintf("%s: %s", s.short(x.ID), progressText(x.Text, x.Done, x.Total)), Since: x.Since, Until: s.endOf(x).at}
	if x.Since.IsZero() { // it waits for a resource
		if s.Waiting != nil {
			return waitOf(*s.Waiting, s.Draining, s.now), true
		}
		a.Status, a.Action = Waiting, "Nothing: its turn comes."
		return a, true
	}
	if a.Pace = s.pace(x); a.Pace != nil && a.Pace.Late {
		a.Status = Late
	}
	a.Action = "Nothing yet: the run goes on by itself" + s.endOf(x).clause(s.now) + "."
	if s.Draining {
		a.Action += " It drains: after this step nothing more is started, and `ironrail apply` goes on from there."
	}
	s.suspect(&a, x)
	return a, true
}

// pace compares how long a step runs with what is usual; nil when that is not
// known.
func (s question) pace(x apply.StepStatus) *Pace {
	b, ok := s.Paces[x.ID]
	if !ok || b.Expected <= 0 || x.Since.IsZero() {
		return nil
	}
	p := paceOf(b, x.Since, s.now)
	if s.Place != nil && x.Node != "" {
		p.Of = s.Place.Hardware
	}
	return &p
}

func paceOf(b plan.Budget, since, now time.Time) Pace {
	runs := max(0, now.Sub(since))
	return Pace{Typical: newSeconds(b.Expected), Slow: newSeconds(b.Slow), Samples: b.Samples, For: newSeconds(runs), Late: b.Slow > 0 && runs > b.Slow}
}

// String says in a sentence how long such steps take, and whether this is late.
func (p Pace) String() string {
	of := "such steps"
	if p.Of != "" {
		of = p.Of + " nodes"
	}
	text := fmt.Sprintf("P50 of %s: %s", of, p.Typical)
	if p.Slow > 0 {
		text += fmt.Sprintf(", P95: %s", p.Slow)
	}
	if p.Samples > 0 {
		text += fmt.Sprintf(" (%d measured here)", p.Samples)
	} else {
		text += " (by the table: too few measured here)"
	}
	switch {
	case p.Late:
		text += ": it is late"
	case p.Slow > 0:
		text += ": it is not late yet"
	}
	return text
}

// tryingAgain is what the agent of the ramdisk says when a fetch was cut.
const tryingAgain = "trying again"

// suspect fills in what may be the cause of a wait: at once what the boot services
// refused or the BMC contradicts, the rest once the node is late.
func (s question) suspect(a *Answer, x apply.StepStatus) {
	late := s.late(a.Pace, x)
	if text, ok := s.refusedSince(x.Since); ok && x.Stage == stageInstall {
		a.Cause = "it asked and was refused (" + text + ")"
		a.Action = "Correct what the refusal names in the site's files, then `ironrail apply`."
		return
	}
	if message, line, ok := s.consoleSays(string(x.ID)); ok && (late || message.ends) {
		a.Evidence = append(a.Evidence, "its console: "+line)
		a.Cause, a.Action = message.Cause+": "+line, endSentence(message.Action)+s.untilThen(x)
		return
	}
	if s.looked(a, x) {
		return
	}
	if who, ok := describeUnknownClient(s, string(x.ID), x.Since); ok {
		a.Cause = strings.ToLower(who[:1]) + who[1:]
		a.Action = "Compare that MAC with the node's boot_mac in the site's files."
		return
	}
	if x.Stage == stageInstall && strings.Contains(x.Text, tryingAgain) {
		a.Cause = "what the node fetches does not come through to it"
		a.Action = "Check the cable and the switch port of its boot NIC, and what stands between it and this controller (MTU, firewall). It tries again by itself." + s.untilThen(x)
		return
	}
	if late {
		s.useGuess(a, x)
	} else if s.Guess != nil && a.Pace != nil && a.Pace.For > a.Pace.Typical {
		a.Cause = "too early to say; if it stays so: " + s.Guess.Cause
	}
}

// refusedSince tells the last request of the node that the boot services refused.
func (s question) refusedSince(t time.Time) (text string, ok bool) {
	for i := len(s.Evidence) - 1; i >= 0 && !s.Evidence[i].Time.Before(t); i-- {
		if e := s.Evidence[i]; e.Data["refused"] != "" {
			return e.Text, true
		}
	}
	return "", false
}

// useGuess fills in the most likely cause of a step that is late.
func (s question) useGuess(a *Answer, x apply.StepStatus) {
	switch {
	case s.Guess != nil:
		a.Cause = s.Guess.Cause
		if s.Look != nil && inSelfTest(s.Look.Progress) {
			a.Cause += "; its BMC says that the firmware " + firmwareProgressText(s.Look.Progress)
		}
		a.Action = s.shownBelow(endSentence(s.Guess.Action), string(x.ID)) + s.untilThen(x)
	case x.Stage == stageBMC:
		a.Cause = "its BMC" + s.bmcAt() + " does not answer, or answers too slowly"
		a.Action = "Check the BMC's network cable and its address, and that the node has mains." + s.untilThen(x)
	case x.Node != "":
		a.Cause = "none is known" + s.lastSeen()
		a.Action = "Look at its console, and at the event log of its BMC." + s.untilThen(x)
	}
}

// lastSeen is the last that the boot services saw of the node.
func (s question) lastSeen() string {
	if len(s.Evidence) == 0 {
		return ""
	}
	e := s.Evidence[len(s.Evidence)-1]
	return fmt.Sprintf("; the boot services saw it last at %s (%s)", formatMoment(e.Time, s.now), e.Text)
}

// late reports whether a step has run for so long that its cause is worth a guess:
// longer than its P95 or, where that is not known, two thirds of its deadline.
func (s question) late(p *Pace, x apply.StepStatus) bool {
	if p != nil && p.Slow > 0 {
		return p.Late
	}
	end := s.endOf(x).at
	return !end.IsZero() && s.now.Sub(x.Since) > end.Sub(x.Since)*2/3
}

// bmcAt is the address of the node's BMC, where it is known.
func (s question) bmcAt() string {
	if s.Place == nil || s.Place.BMC == "" {
		return ""
	}
	return fmt.Sprintf(" (%s, %s)", s.Place.BMC, s.Place.Protocol)
}

// describeUnknownClient suspects the last refused client that no node owns when nothing was seen
// of the node itself since its netboot began.
func describeUnknownClient(s question, step string, since time.Time) (string, bool) {
	if !strings.HasSuffix(step, netbootStep) || len(s.Refused) == 0 {
		return "", false
	}
	for _, e := range s.Evidence {
		if !e.Time.Before(since) {
			return "", false
		}
	}
	r := s.Refused[len(s.Refused)-1]
	if r.MAC == "" || r.Last.Before(since) {
		return "", false
	}
	return fmt.Sprintf("A client with MAC %s, which no node has, asked %d times and was refused: it may be this node with another boot MAC", r.MAC, r.Times), true
}

// progressText adds to a text how far its work is. Totals below a MiB are counts,
// not bytes.
func progressText(text string, done, total int64) string {
	switch {
	case total <= 0:
		return text
	case total < 1<<20:
		return fmt.Sprintf("%s (%d of %d)", text, done, total)
	}
	return fmt.Sprintf("%s, %d%%", text, int64(100*(float64(done)/float64(total))))
}
