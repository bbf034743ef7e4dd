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

// printed is a console that has said something.
type printed struct {
	lines  []string
	closed int
}

func (p *printed) Lines() ([]string, error) { return p.lines, nil }
func (p *printed) Close()                   { p.closed++ }

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

// TestConsoleIsKept: the end of a console is kept of a boot that failed, and of no
// other; a console that is not there, says nothing or cannot be kept changes no end.
func TestConsoleIsKept(t *testing.T) {
	t.Parallel()
	n, failed := site().Nodes[0], errors.New("no hello")
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf("line %d", i))
	}
	for _, c := range []struct {
		name    string
		console *printed
		end     error
		full    error
		kept    []string
	}{
		{"failed", &printed{lines: many}, failed, nil, many[15:]},
		{"went well", &printed{lines: many}, nil, nil, nil},
		{"said nothing", &printed{}, failed, nil, nil},
		{"has none", nil, failed, nil, nil},
		{"disk full", &printed{lines: many[:3]}, failed, errors.New("no space left"), many[:3]},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := New(site(), nil, Dependencies{Console: func(context.Context, string) Console {
				if c.console == nil {
					return nil
				}
				return c.console
			}})
			run := &keeper{evidence: map[string]string{}, full: c.full}
			ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
			defer cancel()
			<-ctx.Done()
			err := s.listening(ctx, run, n, plan.Step{ID: StepOf("n1", Netboot)}, func() error { return c.end })
			if !errors.Is(err, c.end) {
				t.Errorf("ended with %v", err)
			}
			if c.console != nil && c.console.closed != 1 {
				t.Errorf("closed %d times", c.console.closed)
			}
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
