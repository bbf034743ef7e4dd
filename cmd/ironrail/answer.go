package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/apply"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/state"
)

// answer says in one paragraph why a node is not up.
type answer struct {
	Up     bool      `json:"up"`
	State  string    `json:"state"` // what it waits for or why it is not up, a clause
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`  // when the wait ends at the latest
	Cause  string    `json:"cause,omitempty"` // the most likely one
	Action string    `json:"action,omitempty"`
}

// text is the answer as a paragraph.
func (a answer) text(node string, now time.Time) string {
	up := "is not up"
	if a.Up {
		up = "is up"
	}
	first := fmt.Sprintf("%s %s: %s", node, up, a.State)
	if when := span(a.Since, a.Until, now); when != "" {
		first += ", " + when
	}
	parts := []string{sentence(first)}
	if a.Cause != "" {
		parts = append(parts, sentence("Most likely cause: "+a.Cause))
	}
	if a.Action != "" {
		parts = append(parts, sentence("Next: "+a.Action))
	}
	return strings.Join(parts, " ")
}

// sentence ends a text with a full stop.
func sentence(s string) string { return strings.TrimRight(s, " .") + "." }

// answerOf finds the answer: the first of these that applies.
func answerOf(s story, running bool) answer {
	for _, try := range []func(story, bool) (answer, bool){held, quarantined, active, accepted, cut, skipped, waits, taken} {
		if a, ok := try(s, running); ok {
			return a
		}
	}
	return answer{State: "nothing was done with it yet", Action: "`ironrail plan` shows what would be done, `ironrail apply` does it."}
}

func held(s story, _ bool) (answer, bool) {
	h := s.Node.Hold
	if h == nil {
		return answer{}, false
	}
	a := answer{Up: s.Node.Accepted, State: "it is held by " + h.By, Since: h.At,
		Action: fmt.Sprintf("`ironrail release %s` lets it go, then `ironrail apply`.", s.Node.Name)}
	if h.Reason != "" {
		a.State += " (" + h.Reason + ")"
	}
	a.State += ", and nothing is done with it"
	return a, true
}

func quarantined(s story, _ bool) (answer, bool) {
	q := s.Node.Quarantine
	if q == nil {
		return answer{}, false
	}
	a := answer{State: "it is quarantined", Since: q.At, Cause: q.Finding.Cause, Action: q.Finding.Action}
	if q.Finding.Step != "" {
		a.State += " by " + q.Finding.Step
	}
	if who, ok := stray(s, q.Finding.Step, time.Time{}); ok {
		a.Cause = strings.TrimRight(a.Cause, ".") + ". " + who
	}
	return a, true
}

func active(s story, _ bool) (answer, bool) {
	if len(s.Active) == 0 {
		return answer{}, false
	}
	x := s.Active[len(s.Active)-1]
	a := answer{State: fmt.Sprintf("%s: %s", x.ID, progressed(x.Text, x.Done, x.Total)), Since: x.Since, Until: x.Until,
		Action: "wait; the run goes on by itself."}
	if x.Stage == install.Name {
		a.Cause, a.Action = lastSign(s, x, a.Action)
	}
	return a, true
}

// lastSign reads the boot services' evidence about a step that waits for a node:
// a refusal, or a client that may be it under another MAC, or how far it came.
func lastSign(s story, x apply.StepStatus, wait string) (cause, action string) {
	for i := len(s.Evidence) - 1; i >= 0; i-- {
		e := s.Evidence[i]
		switch {
		case e.Time.Before(x.Since):
		case e.Data["refused"] != "":
			return "it asked and was refused (" + e.Text + ")", "correct what the refusal names in the site's files, then `ironrail apply`."
		default:
			return "none yet; the last that was seen of it is " + e.Text, wait
		}
	}
	if who, ok := stray(s, string(x.ID), x.Since); ok {
		return who, "compare that MAC with the node's boot_mac in the site's files."
	}
	return "", wait
}

// stray suspects the last refused client that no node owns when nothing was seen
// of the node itself since its netboot began.
func stray(s story, step string, since time.Time) (string, bool) {
	if !strings.HasSuffix(step, "/"+install.Name+".netboot") || len(s.Refused) == 0 {
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

func accepted(s story, _ bool) (answer, bool) {
	if !s.Node.Accepted {
		return answer{}, false
	}
	return answer{Up: true, State: "it is accepted", Since: s.Node.AcceptedAt}, true
}

// cut is a run that died or was stopped in the middle of a step.
func cut(s story, running bool) (answer, bool) {
	if running || len(s.Steps) == 0 {
		return answer{}, false
	}
	x := s.Steps[len(s.Steps)-1]
	if x.State != state.StepRunning && x.State != state.StepIsCut {
		return answer{}, false
	}
	return answer{State: fmt.Sprintf("the last run ended in the middle of %s", x.ID), Since: x.Started,
		Action: "`ironrail apply` goes on from there; what was done is not repeated."}, true
}

// skipped is a step that was not started, by no fault of the node.
func skipped(s story, _ bool) (answer, bool) {
	if len(s.Skipped) == 0 {
		return answer{}, false
	}
	r := s.Skipped[0]
	var c state.Cause
	if err := json.Unmarshal(r.Data, &c); err != nil {
		c.Text = "the cause is not readable"
	}
	a := answer{State: r.Step + " was not started", Since: r.Time, Cause: c.Text, Action: "repair what failed first, then `ironrail apply`."}
	switch c.Kind {
	case state.ByInterrupt:
		a.Action = "`ironrail apply` goes on from there."
	case state.NotJudged:
		a.Action = "bring up the other nodes of its group, then `ironrail apply`."
	}
	return a, true
}

func waits(_ story, running bool) (answer, bool) {
	return answer{State: "it waits for steps of others", Action: "`ironrail status` shows which run now."}, running
}

// taken is a node that ironrail has touched and not finished, or adopted.
func taken(s story, _ bool) (answer, bool) {
	switch {
	case s.Node.Adopted:
		return answer{Up: true, State: "it was adopted as it was found, and nothing about it is verified", Since: s.Node.AdoptedAt}, true
	case s.Node.Run != "":
		return answer{State: "it is not accepted yet", Action: "`ironrail plan` shows what is left, `ironrail apply` does it."}, true
	}
	return answer{}, false
}
