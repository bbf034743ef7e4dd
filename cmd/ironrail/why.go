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
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/state"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why NODE",
		Short: "Say why a node is not up, and what to do",
		Long: `Tell one node's story: what it waits for, since when and until when, what the
boot services saw of it or refused, the cause of its last failure and the next
action. Works while apply runs and afterwards.`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			w, err := a.why(c.Context(), args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(w)
			}
			writeWhy(a.out, w)
			return nil
		},
	}
}

func (a *app) why(ctx context.Context, node string) (control.Why, error) {
	if _, owned, err := control.Find(a.stateDir()); err != nil {
		return control.Why{}, err
	} else if owned {
		return control.NewClient(a.stateDir()).Why(ctx, node)
	}
	r, closeState, err := a.openReader()
	if err != nil {
		return control.Why{}, err
	}
	defer closeState()
	w, err := control.Explain(ctx, r, node)
	if err != nil {
		return w, err
	}
	w.Evidence, err = a.loggedEvidence(node)
	return w, err
}

// quotedEvidence is how many sightings are shown, the last ones.
const quotedEvidence = 12

func writeWhy(w io.Writer, y control.Why) {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s: %s\n", y.Node.Name, standing(y.Node))
	for _, x := range y.Active {
		fmt.Fprintf(b, "  now:     %s: %s, since %s%s\n", x.ID, event.Escape(x.Text), x.Since.Local().Format(time.TimeOnly), until(x.Until))
	}
	if q := y.Node.Quarantine; q != nil {
		fmt.Fprintf(b, "  since:   %s\n", q.At.Local().Format(time.DateTime))
		writeFinding(b, q.Finding)
	}
	for _, r := range y.Skipped {
		fmt.Fprintf(b, "  skipped: %s: %s\n", r.Step, skipCause(r))
	}
	for _, s := range y.Steps {
		fmt.Fprintf(b, "  step:    %-26s %-11s %s%s\n", s.ID, s.State, s.Started.Local().Format(time.TimeOnly), took(s))
	}
	for _, e := range y.Effects {
		fmt.Fprintf(b, "  effect:  %-8s %-7s %s\n", e.Kind, e.State, event.Escape(e.Does))
	}
	for _, e := range y.Evidence[max(0, len(y.Evidence)-quotedEvidence):] {
		fmt.Fprintf(b, "  seen:    %s %s\n", e.Time.Local().Format(time.TimeOnly), event.Escape(e.Text))
	}
	io.WriteString(w, b.String())
}

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
	return event.Escape(c.Text)
}
