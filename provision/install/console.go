// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
)

// Tail is the end of what a node printed on its serial console while a step waited
// for it in vain.
type Tail struct {
	Step  plan.StepID `json:"step"`
	At    time.Time   `json:"at"`    // when the step ended
	Lines []string    `json:"lines"` // the last of them, escaped, oldest first
	Ref   string      `json:"ref"`   // evidence that holds more; empty: none
}

// ConsoleFact is the last Tail of a node.
const ConsoleFact = fact.Name[Tail]("install.console")

// TailLines is how many lines a Tail has at most.
const TailLines = 10

// consoleFile is the name of what a console said, as evidence.
const consoleFile = "console.txt"

// printed is what the console of a node has said while a step waits for the node.
func (s *Stage) printed(node string) (lines []string, ever int) {
	if s.w.Printed == nil {
		return nil, 0
	}
	return s.w.Printed(node)
}

// KeepTail makes the end of a console durable that a step has failed at: what was printed since the step began,
// escaped and bounded, oldest first. The step has its own error already: what goes wrong here is said by an event
// and not returned.
func KeepTail(ctx context.Context, run stage.Run, n *inventory.Node, st plan.Step, lines []string) {
	if len(lines) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	ref, err := run.Attach(consoleFile, []byte(strings.Join(lines, "\n")+"\n"))
	if err != nil {
		run.Emit(event.Event{Type: event.Note, Text: "the console of " + n.Name + " is not kept as evidence: " + err.Error()})
	}
	t := Tail{Step: st.ID, At: run.Clock().Now().UTC(), Lines: lines[max(0, len(lines)-TailLines):], Ref: ref}
	if err := learnFact(ctx, run, ConsoleFact, n, t); err != nil {
		run.Emit(event.Event{Type: event.Note, Text: err.Error()})
	}
}
