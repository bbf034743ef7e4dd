// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
)

// The statuses that only switches have. Working, Late, Cut, Skipped and Waiting are
// those of nodes.
const (
	Failed    Status = "failed"    // its own step failed
	Suspected Status = "suspected" // a finding of another step names it, or its cable
	Conforms  Status = "conforms"  // it was read, or swept, as the site says
	Differs   Status = "differs"   // a look has read it since, and it was not as the site says
	Unmanaged Status = "unmanaged" // ironrail has no login for it, and sees it by others only
)

// SwitchExplanation is the answer about a switch and what it rests on.
type SwitchExplanation struct {
	Answer Answer `json:"answer"`
	control.Switch
	Lines []Line `json:"lines"`
}

// ExplainSwitch makes a story of what is known of a switch, or of one of its ports;
// running says that a run is active.
func ExplainSwitch(y control.Switch, running bool, now time.Time) SwitchExplanation {
	s := SwitchExplanation{Switch: y}
	// What is done to a switch is told as what is done to a node.
	as := Explanation{Why: control.Why{Node: state.Node{Name: y.Name}, Steps: y.Steps, Journal: y.Journal, Skipped: y.Skipped, Active: y.Active, Paces: y.Paces, Draining: y.Draining, Last: y.Last}}
	s.Lines = collectLines(as, running)
	for _, try := range []func(SwitchExplanation, question) (Answer, bool){answerSwitchActive, answerSwitchFailed, answerSwitchSuspected, answerSwitchNotStarted, answerSwitchChanged, answerSwitchCables, answerSwitchConforms} {
		if a, ok := try(s, question{as, running, now}); ok {
			s.Answer = a
			return s
		}
	}
	s.Answer = answerSwitchUntouched(s)
	return s
}

// answerSwitchActive is a switch that a step works on now.
func answerSwitchActive(s SwitchExplanation, as question) (Answer, bool) {
	if a, ok := answerActive(as); ok {
		return a, true
	}
	return answerInterrupted(as)
}

// answerSwitchFailed is a switch whose own step failed.
func answerSwitchFailed(s SwitchExplanation, as question) (Answer, bool) {
	for _, x := range s.Steps {
		if x.State != state.StepIsFailed || s.Port != "" && !s.tells(x) {
			continue
		}
		a := Answer{Status: Failed, State: as.short(x.ID) + " failed", Since: x.Ended, Cause: x.Error,
			Action: "Look at the switch and its management network, then `ironrail apply`."}
		if all := append(findingOf(x), x.Blamed...); len(all) > 0 {
			a.Cause, a.Evidence = all[0].Cause, firstOf(all[0].Evidence, mostEvidence)
			a.Action = cmp.Or(all[0].Action, a.Action)
		}
		a.Action = addApplyAgain(a.Action, as.running)
		return a, true
	}
	return Answer{}, false
}

// findingOf is the root cause of a failure; none where there is none.
func findingOf(x state.Step) []stage.Finding {
	if x.Finding == nil {
		return nil
	}
	return []stage.Finding{*x.Finding}
}

// tells reports whether what a step found is about the port that is asked about. A
// failure that names no port is about all of them.
func (s SwitchExplanation) tells(x state.Step) bool {
	if len(x.Blamed) == 0 {
		return true
	}
	for _, f := range x.Blamed {
		for _, p := range f.Suspects {
			for _, c := range s.Cables {
				if strings.Contains(p.Part, "("+c.To+")") || p.Part == "CONFIG_DB" {
					return true
				}
			}
		}
	}
	return false
}

// addApplyAgain ends the action of a finding about a switch with how it goes on.
func addApplyAgain(action string, running bool) string {
	switch {
	case action == "", strings.Contains(action, "apply"):
		return action
	case running:
		return endSentence(action) + " When the run has ended, `ironrail apply` looks again."
	}
	return endSentence(action) + " Then `ironrail apply` looks again."
}

// answerSwitchSuspected is a switch that a finding of another step names as the cause.
func answerSwitchSuspected(s SwitchExplanation, as question) (Answer, bool) {
	if len(s.Suspect) == 0 {
		return Answer{}, false
	}
	f := s.Suspect[0]
	return Answer{Status: Suspected, State: "step " + f.Step + " found it to be at fault", Since: s.foundAt(f), Cause: f.Cause, Evidence: firstOf(f.Evidence, mostEvidence), Action: addApplyAgain(f.Action, as.running)}, true
}

// foundAt is when a finding about the switch was made last; zero: that is not recorded.
func (s SwitchExplanation) foundAt(f stage.Finding) (at time.Time) {
	for _, r := range s.Journal {
		var was stage.Finding
		if r.Kind == state.FindingMade && json.Unmarshal(r.Data, &was) == nil && was.Cause == f.Cause {
			at = r.Time
		}
	}
	return at
}

// answerSwitchNotStarted is a switch whose step was not started, or waits.
func answerSwitchNotStarted(s SwitchExplanation, as question) (Answer, bool) {
	if a, ok := answerSkipped(as); ok {
		return a, true
	}
	if as.running && len(s.Steps) == 0 && s.Login != "" {
		return Answer{Status: Waiting, State: "its step has not begun: a few switches of a fabric are configured at a time", Action: "Nothing: its turn comes."}, true
	}
	return Answer{}, false
}

// answerSwitchChanged is a switch that was configured, and that somebody changed since.
func answerSwitchChanged(s SwitchExplanation, _ question) (Answer, bool) {
	x := s.Seen
	if x == nil || x.State != stage.Differs {
		return Answer{}, false
	}
	return Answer{Status: Differs, State: "its configuration was read, and is not what the site says any more", Since: x.At, Cause: x.Evidence,
		Action: "Find out who else writes it. `ironrail plan --refresh` shows what differs now, `ironrail apply` sets it right."}, true
}

// answerSwitchCables are findings about what is plugged into it.
func answerSwitchCables(s SwitchExplanation, as question) (Answer, bool) {
	if len(s.Near) == 0 {
		return Answer{}, false
	}
	f := s.Near[0]
	state := "a cable of it was found to be wrong"
	if n := len(s.Near); n > 1 {
		state = fmt.Sprintf("%d findings are about its cables", n)
	}
	return Answer{Status: Suspected, State: state + ", by step " + f.Step, Cause: f.Cause, Evidence: firstOf(f.Evidence, mostEvidence), Action: addApplyAgain(f.Action, as.running)}, true
}

// answerSwitchConforms is a switch that was configured, or swept, and nothing found.
func answerSwitchConforms(s SwitchExplanation, as question) (Answer, bool) {
	for _, x := range s.Steps {
		if x.State == state.StepIsFailed { // of other ports: what is about none is told before
			return Answer{Up: true, Status: Conforms, State: "its configuration is what the site says; other ports of the switch do not keep theirs", Since: x.Ended,
				Action: fmt.Sprintf("`ironrail why %s` names them.", s.Name)}, true
		}
		if x.State == state.StepIsDone && (s.Read == nil || s.Read.Conforms) {
			a := Answer{Up: true, Status: Conforms, State: "its configuration is what the site says", Since: x.Ended}
			switch {
			case s.Seen != nil && s.Seen.State == stage.Conforms:
				a.State += fmt.Sprintf(" (read last at %s)", formatMoment(s.Seen.At, as.now))
			case s.Read != nil:
				a.State += fmt.Sprintf(" (read last at %s)", formatMoment(s.Read.At, as.now))
			}
			return a, true
		}
	}
	if x := s.Sweep; x != nil && !x.Ended.IsZero() && x.State != state.StepIsCut {
		return Answer{Up: true, Status: Conforms, State: fmt.Sprintf("the sweep of fabric %s found nothing wrong with its cables; its own configuration is not looked at", s.Fabric), Since: x.Ended}, true
	}
	return Answer{}, false
}

// answerSwitchUntouched is a switch of which nothing is known.
func answerSwitchUntouched(s SwitchExplanation) Answer {
	switch {
	case s.Kind == "infiniband" || s.Kind == "nvlink":
		return Answer{Status: Untouched, State: "no step has looked at it yet: it is seen when its fabric is brought up", Action: "`ironrail apply` does that."}
	case s.Login == "":
		return Answer{Status: Unmanaged, State: "ironrail has no login for it, and leaves it as it is",
			Action: "`ironrail fabric render` writes what it is to have where it is a SONiC switch; `login` of the switch or its fabric lets ironrail do it."}
	}
	return Answer{Status: Untouched, State: "nothing was done with it yet", Action: "`ironrail plan --refresh` reads it and shows what would change, `ironrail apply` does it."}
}

// Text is the story of a switch for a person.
func (s SwitchExplanation) Text(now time.Time) string { return s.text(now, shownLines) }

// FullText is Text with everything that happened.
func (s SwitchExplanation) FullText(now time.Time) string { return s.text(now, len(s.Lines)) }

// title names what is asked about.
func (s SwitchExplanation) title() string {
	if s.Port != "" {
		return "Port " + s.Port
	}
	return "Switch " + s.Name
}

func (s SwitchExplanation) text(now time.Time, most int) string {
	var p page
	verb := "is not as the site says"
	switch s.Answer.Status {
	case Conforms:
		verb = "is as the site says"
	case Unmanaged, Untouched:
		verb = "is not known"
	}
	p.verdict(s.title()+" "+verb, s.Answer, now)
	p.rest(s)
	p.section("Seen", len(s.Answer.Evidence))
	for _, e := range s.Answer.Evidence {
		p.linef("  seen  %s", e)
	}
	p.section("What happened", len(s.Lines))
	if n := len(s.Lines) - most; n > 0 {
		p.linef("  (%d earlier: `ironrail why --all %s`)", n, s.Name)
	}
	for _, l := range s.Lines[max(0, len(s.Lines)-most):] {
		p.linef("  %s  %-8s %s%s", formatMoment(l.Time, now), l.From, shortenText(l.Text), formatTimes(l, now))
	}
	p.switchPlace(s, now)
	return p.String()
}

// rest are the findings that the answer is not about, each cause once.
func (p *page) rest(s SwitchExplanation) {
	reported := map[string]bool{s.Answer.Cause: true}
	for _, f := range append(append([]stage.Finding(nil), s.Suspect...), s.Near...) {
		if !reported[f.Cause] {
			reported[f.Cause] = true
			p.linef("Found as well: %s (by step %s). %s", strings.TrimRight(f.Cause, "."), f.Step, endSentence(f.Action))
		}
	}
}

// mostText is how much of what happened is shown, bytes: a patch of a whole switch is
// long, and --json has it.
const mostText = 320

// shortenText cuts a text that is too long for a line.
func shortenText(text string) string {
	if len(text) <= mostText {
		return text
	}
	return strings.ToValidUTF8(text[:mostText], "") + "... (--json has all)"
}

// mostCables is how many cables are listed; one finding is about few of them.
const mostCables = 8

// switchPlace is where a technician goes, and the cables that the answer is about.
func (p *page) switchPlace(s SwitchExplanation, now time.Time) {
	p.section("Where it is", 1)
	row := func(name, value string) {
		if value != "" {
			p.linef("  %-9s%s", name, value)
		}
	}
	if s.Rack != "" {
		row("rack", strings.TrimSuffix(fmt.Sprintf("%s, unit %d", s.Rack, s.Unit), ", unit 0"))
	}
	row("fabric", strings.TrimSpace(strings.Join([]string{s.Fabric, s.Tier}, " ")))
	row("model", strings.TrimSpace(s.Model+" "+s.OS))
	login := "no login"
	if s.Login != "" {
		login = "login " + s.Login
	}
	row("address", strings.TrimPrefix(s.Address+", "+login, ", "))
	about := s.Answer.Cause + " " + strings.Join(s.Answer.Evidence, " ")
	shown, heard := 0, 0
	for _, c := range s.Cables {
		if c.Heard != "" {
			heard++
		}
		if s.Port == "" && !namesPort(about, c.To) && !namesPort(about, c.Port) || shown == mostCables {
			continue
		}
		shown++
		far := "nothing was heard there"
		if c.Heard != "" {
			far = "its other end heard " + c.Heard + ", " + formatMoment(c.HeardAt, now)
		}
		p.linef("  %s to %s (%s)", c.Port, c.To, far)
	}
	if rest := len(s.Cables) - shown; rest > 0 {
		row("cables", fmt.Sprintf("%d in all; at %d of them the other end has heard the switch", len(s.Cables), heard))
	}
}
