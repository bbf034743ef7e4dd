// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fact"
)

// keeper is the stage.Run of a step whose context is over: facts and evidence are
// kept all the same.
type keeper struct {
	stage.Run
	full     error // of the disk
	facts    []fact.Fact
	evidence map[string]string
	notes    []string
}

func (k *keeper) Learn(ctx context.Context, f ...fact.Fact) error {
	k.facts = append(k.facts, f...)
	return ctx.Err()
}

func (k *keeper) Attach(name string, content []byte) (string, error) {
	if k.full != nil {
		return "", k.full
	}
	k.evidence[name] = string(content)
	return "sha256:0/" + name, nil
}

func (k *keeper) Emit(e event.Event) { k.notes = append(k.notes, e.Text) }
func (k *keeper) Clock() clock.Clock { return clock.Wall{} }

// TestConsoleIsKept: the end of a console is kept of a step that has failed, also when the time of the step is
// over; one that says nothing or cannot be kept changes nothing.
func TestConsoleIsKept(t *testing.T) {
	t.Parallel()
	n := site().Nodes[0]
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf("line %d", i))
	}
	for _, c := range []struct {
		name  string
		lines []string
		full  error
		kept  []string
	}{
		{"much", many, nil, many[15:]},
		{"nothing", nil, nil, nil},
		{"disk full", many[:3], errors.New("no space left"), many[:3]},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			run := &keeper{evidence: map[string]string{}, full: c.full}
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			<-ctx.Done()
			KeepTail(ctx, run, n, plan.Step{ID: StepOf("n1", Netboot)}, c.lines)
			if len(c.kept) == 0 {
				if len(run.facts) > 0 || len(run.evidence) > 0 {
					t.Errorf("kept %v %v", run.facts, run.evidence)
				}
				return
			}
			tail, err := ConsoleFact.Get(run.facts[0])
			if err != nil || strings.Join(tail.Lines, "|") != strings.Join(c.kept, "|") || tail.Step != StepOf("n1", Netboot) {
				t.Errorf("%+v, %v", tail, err)
			}
			if c.full == nil && (tail.Ref == "" || run.evidence["console.txt"] != strings.Join(many, "\n")+"\n") {
				t.Errorf("ref %q, evidence %q", tail.Ref, run.evidence)
			}
			if c.full != nil && (tail.Ref != "" || len(run.notes) != 1) {
				t.Errorf("ref %q, notes %q", tail.Ref, run.notes)
			}
		})
	}
}
