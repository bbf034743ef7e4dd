package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/ironrail/ironrail/provision/apply"
	"github.com/ironrail/ironrail/provision/event"
	"github.com/ironrail/ironrail/provision/stage"
)

// writeResult says how a run ended: each node in a line, with cause, evidence
// and next action for those that are not done.
func writeResult(w io.Writer, res apply.Result) {
	b := &strings.Builder{}
	fmt.Fprintf(b, "\nRun %s: %s after %s.\n", res.Run, res.Outcome, res.Ended.Sub(res.Started).Round(time.Second))
	for _, n := range res.Nodes {
		word := string(n.Outcome)
		if n.Accepted {
			word = "accepted"
		}
		fmt.Fprintf(b, "  %-12s %s\n", n.Name, word)
		switch {
		case n.Finding != nil:
			writeFinding(b, *n.Finding)
		case n.Cause != nil:
			fmt.Fprintf(b, "      because: %s\n", event.Escape(n.Cause.Text))
		}
	}
	io.WriteString(w, b.String())
}

// writeFinding shows a finding, indented.
func writeFinding(b *strings.Builder, f stage.Finding) {
	var parts []string
	for _, s := range f.Suspects {
		part := s.Subject.Name
		if s.Part != "" {
			part += " " + s.Part
		}
		parts = append(parts, part)
	}
	fmt.Fprintf(b, "      cause:   %s\n", event.Escape(f.Cause))
	if len(parts) > 0 {
		fmt.Fprintf(b, "      part:    %s\n", event.Escape(strings.Join(parts, ", ")))
	}
	if f.Step != "" {
		fmt.Fprintf(b, "      step:    %s\n", event.Escape(f.Step))
	}
	for _, e := range f.Evidence {
		fmt.Fprintf(b, "      seen:    %s\n", event.Escape(e))
	}
	fmt.Fprintf(b, "      do:      %s\n", event.Escape(f.Action))
}

// printLine prints one value as a line of JSON.
func (a *app) printLine(v any) {
	// An error here is a closed pipe: there is nobody left to tell.
	_ = json.NewEncoder(a.out).Encode(v)
}
