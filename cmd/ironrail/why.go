package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ironrail/ironrail/provision/control"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/state"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why NODE",
		Short: "Say why a node is not up, and what to do",
		Long: `Say first why the node is not up or what it waits for, since when, the most
likely cause and the next action. Then tell its story: what was found, which steps
ran and had which effects, what the boot services saw of it, and which clients
they refused that belong to no node of the inventory. Works while apply runs and
afterwards.

--json prints one object: answer, and the details in node, steps, effects,
skipped, active, evidence and refused.`,
		Example:           "  ironrail why n7\n  ironrail why n7 --json | jq .answer",
		Args:              usage(cobra.ExactArgs(1)),
		ValidArgsFunction: a.completeNodes,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.why(c.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(s)
			}
			writeWhy(a.out, s, a.now())
			return nil
		},
	}
}

// story is what why tells: the answer, and what it rests on. Evidence is of the
// node alone; what was refused to strangers stands in Refused.
type story struct {
	Answer answer `json:"answer"`
	control.Why
	Refused []stranger `json:"refused"`
}

// stranger is a client that no node of the inventory owns, refused for one
// reason any number of times.
type stranger struct {
	MAC    string    `json:"mac,omitempty"`
	Reason string    `json:"reason"`
	Times  int       `json:"times"`
	Last   time.Time `json:"last"`
}

// why asks the owner for a node's story, or reads it when there is none.
func (a *app) why(ctx context.Context, node string) (story, error) {
	var y control.Why
	owned, err := a.asked(func(c *control.Client) (err error) {
		y, err = c.Why(ctx, node)
		return err
	})
	if err == nil && !owned {
		y, err = a.storedWhy(ctx, node)
	}
	if err != nil {
		return story{}, err
	}
	return tell(y, owned), nil
}

// storedWhy reads a node's story from the state and the events that are kept. A
// node that the state does not know has one as well: nothing was done yet.
func (a *app) storedWhy(ctx context.Context, node string) (y control.Why, err error) {
	if _, err := a.inventory(node); err != nil {
		return y, err
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return y, err
	}
	defer closeState()
	y, err = control.Explain(ctx, r, node)
	if err != nil && errkind.Of(err) != errkind.Mismatch {
		return y, err
	}
	y.Node.Name = node
	y.Evidence, err = a.loggedEvidence(node)
	return y, err
}

// tell makes a story of what is known; running says that a run is active.
func tell(y control.Why, running bool) story {
	s := story{Why: y, Refused: []stranger{}}
	s.Evidence = []event.Event{}
	index := map[string]int{}
	for _, e := range y.Evidence {
		switch {
		case e.Node != "":
			s.Evidence = append(s.Evidence, e)
		case e.Data["refused"] != "":
			key := e.Data["mac"] + " " + e.Text
			i, seen := index[key]
			if !seen {
				i = len(s.Refused)
				index[key] = i
				s.Refused = append(s.Refused, stranger{MAC: e.Data["mac"], Reason: e.Text})
			}
			s.Refused[i].Times++
			s.Refused[i].Last = e.Time
		}
	}
	s.Answer = answerOf(s, running)
	return s
}

// How much of each kind of detail is shown, the last of it.
const (
	quotedEvidence = 12
	quotedRefused  = 8
)

func writeWhy(w io.Writer, s story, now time.Time) {
	var p page
	p.linef("%s", s.Answer.text(s.Node.Name, now))
	if q := s.Node.Quarantine; q != nil {
		section(&p, "Found", 1)
		writeFinding(&p, q.Finding)
	}
	writeSkipped(&p, s)
	section(&p, "Steps", len(s.Steps))
	for _, x := range s.Steps {
		p.linef("  %-26s %-11s %s%s", x.ID, x.State, moment(x.Started, now), took(x))
	}
	section(&p, "Effects", len(s.Effects))
	for _, e := range s.Effects {
		p.linef("  %-8s %-7s %s %s", e.Kind, e.State, moment(e.At, now), e.Does)
	}
	section(&p, "Seen of it", len(s.Evidence))
	for _, e := range last(s.Evidence, quotedEvidence) {
		p.linef("  %s %s%s", moment(e.Time, now), plainWord(e), e.Text)
	}
	section(&p, "Refused clients that no node owns", len(s.Refused))
	for _, r := range last(s.Refused, quotedRefused) {
		p.linef("  %s %s (%d times, last %s)", or(r.MAC, "unknown MAC"), r.Reason, r.Times, moment(r.Last, now))
	}
	p.to(w)
}

// writeSkipped names the steps that were not started, by cause. The one that
// stands above already is not repeated.
func writeSkipped(p *page, s story) {
	section(p, "Not started", len(s.Skipped))
	steps, causes := map[string][]string{}, []string{}
	for _, r := range s.Skipped {
		c := skipCause(r)
		if steps[c] == nil {
			causes = append(causes, c)
		}
		steps[c] = append(steps[c], r.Step)
	}
	for _, c := range causes {
		text := c
		if q := s.Node.Quarantine; q != nil && q.Finding.Cause == c {
			text = "for the cause above"
		}
		p.linef("  %s: %s", strings.Join(steps[c], ", "), text)
	}
}

// section begins a section that has lines.
func section(p *page, title string, lines int) {
	if lines > 0 {
		p.linef("")
		p.linef("%s:", title)
	}
}

// last returns the last n of a list.
func last[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// plainWord marks a refusal.
func plainWord(e event.Event) string {
	if e.Data["refused"] != "" {
		return "refused: "
	}
	return ""
}

// took is how long a step took that has ended.
func took(s state.Step) string {
	if s.Ended.IsZero() {
		return ""
	}
	return fmt.Sprintf(" (%s)", s.Ended.Sub(s.Started).Round(time.Second/10))
}

// skipCause reads why a step was skipped.
func skipCause(r state.Record) string {
	var c state.Cause
	if err := json.Unmarshal(r.Data, &c); err != nil {
		return "cause not readable"
	}
	return c.Text
}
