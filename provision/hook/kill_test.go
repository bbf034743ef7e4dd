// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	engine "github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/provision/hook"
)

// booking is a hook as docs/hooks.md asks for: it passes its key on, so that the
// same call twice is one booking. It kills its controller when that is asked for.
const booking = `echo "$IRONRAIL_KEY" >>calls
[ -e kill-inside ] && rm kill-inside && kill -9 $PPID
grep -qx "$IRONRAIL_KEY" booked 2>/dev/null || echo "$IRONRAIL_KEY" >>booked`

// deadly is a store that kills its process at the outcome of an effect.
type deadly struct {
	state.Store
	before, after bool // that it is durable
}

func (d deadly) Append(ctx context.Context, f state.Fence, b state.Batch) (uint64, error) {
	outcome := slices.ContainsFunc(b.Records, func(r state.Record) bool { return r.Kind == state.EffectOutcome })
	if outcome && d.before {
		die()
	}
	seq, err := d.Store.Append(ctx, f, b)
	if outcome && d.after {
		die()
	}
	return seq, err
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// nothing is the stage that the hook stands after.
type nothing struct{}

func (nothing) Name() string                                      { return "validate" }
func (nothing) Version() int                                      { return 1 }
func (nothing) Plan(stage.View) ([]plan.Step, hcl.Diagnostics)    { return nil, nil }
func (nothing) Apply(context.Context, stage.Run, plan.Step) error { return nil }
func (nothing) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown}, nil
}

// life is one process: it begins plan id, or continues with what was begun.
func life(t *testing.T, dir, id, how string) (err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := state.Open(filepath.Join(dir, "state.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fence, err := s.Claim(ctx, "test")
	if err != nil {
		return err
	}
	p, _, err := state.ReadUnfinishedPlan(ctx, s)
	if err != nil {
		return err
	}
	inv := site(t, dir, booking, time.Minute)
	resume := p != nil
	if !resume {
		p = &plan.Plan{Format: plan.Format, ID: id, Lineage: s.Info().Lineage, Steps: hook.Place(inv, []plan.Step{accept})}
		for i := range p.Steps {
			p.Steps[i].Deadline = plan.Budget{Limit: time.Minute}
		}
	}
	r, err := engine.Run(ctx, engine.Config{Plan: p, Store: deadly{s, how == "before", how == "after"}, Fence: fence, Resume: resume, EvidenceDir: filepath.Join(dir, "evidence"),
		Stages: map[string]stage.Stage{"validate": nothing{}, hook.StageName: hook.New(inv, dir, nil)}, Capacity: map[string]int{hook.Resource: 1}})
	if err == nil && r.Outcome != state.RunDone {
		text, _ := json.Marshal(r)
		err = fmt.Errorf("outcome %s: %s", r.Outcome, text)
	}
	return err
}

// TestKilledInsideAHook kills the controller, a real process with its state on disk,
// while a hook runs, when it has ended and nobody knows it yet, and when that is
// recorded. What is not known to have ended is called again with the same key, what
// is known never is, and the next call has another key.
func TestKilledInsideAHook(t *testing.T) {
	if dir := os.Getenv("IRONRAIL_TEST_HOOK_DIR"); dir != "" {
		if err := life(t, dir, os.Getenv("IRONRAIL_TEST_HOOK_PLAN"), os.Getenv("IRONRAIL_TEST_HOOK_KILL")); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Parallel()
	const one, two = "n1/hook.validate.after/1", "n1/hook.validate.after/2"
	for _, c := range []struct {
		kill  string
		calls []string
	}{
		{"inside", []string{one, one, two}},
		{"before", []string{one, one, two}},
		{"after", []string{one, two}},
	} {
		t.Run(c.kill, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.kill == "inside" {
				if err := os.WriteFile(filepath.Join(dir, "kill-inside"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := child(dir, "p1", c.kill); err == nil {
				t.Fatal("the controller was not killed")
			}
			for _, p := range []string{"p1", "p2"} { // the end of the first plan, then another
				if err := child(dir, p, ""); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Fields(read(t, dir, "calls")); !slices.Equal(got, c.calls) {
				t.Errorf("called %q, want %q", got, c.calls)
			}
			if got := strings.Fields(read(t, dir, "booked")); !slices.Equal(got, []string{one, two}) {
				t.Errorf("booked %q", got)
			}
		})
	}
}

// child is a life in a process of its own.
func child(dir, id, kill string) error {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilledInsideAHook$")
	cmd.Env = append(os.Environ(), "IRONRAIL_TEST_HOOK_DIR="+dir, "IRONRAIL_TEST_HOOK_PLAN="+id, "IRONRAIL_TEST_HOOK_KILL="+kill)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}
