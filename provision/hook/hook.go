// SPDX-License-Identifier: Apache-2.0

// Package hook is the stage of a site's own steps: a program that is run on the
// controller before or after another stage worked on a node. It gets the node as
// JSON on its standard input; a status other than zero fails its step, and with it
// the node.
//
// Programs are run without a shell, in a process group of their own, with a fixed
// environment, in the site's folder. A program may be run twice for the same
// call, since a controller may die while it runs: it has to bear that.
package hook

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
)

// The stage's name and the version of its fingerprints.
const (
	StageName = "hook"
	Version   = 1
)

// The times of a hook, as the language has them.
const (
	Before = "before"
	After  = "after"
)

// Resource is used by every hook: so many programs of the site run at a time.
const Resource = "hooks"

// leave is how long a step may last beyond its program's timeout.
const leave = 30 * time.Second

// Calls is the fact of how often a hook was called for a node, by the hook's place
// such as install.before-2. It makes the key of the next call.
func Calls(place string) fact.Name[Called] { return fact.Name[Called]("hook." + place) }

// Called is the last good call of a hook for a node.
type Called struct {
	Count int       `json:"count"`
	At    time.Time `json:"at"`
}

// Stage runs hooks. It plans nothing by itself: Place puts the steps between those
// of the other stages. It is safe for concurrent use.
type Stage struct {
	inv        *inventory.Inventory
	dir        string // where programs run: the site's folder, absolute
	nodeStatus func(context.Context, string) (string, error)
	program    Program
}

// Program runs the program of a hook to its end. A status other than zero is an
// exec.ExitError; what it prints goes to out.
type Program func(ctx context.Context, argv, environ []string, dir string, stdin []byte, out io.Writer) error

// New makes the stage. dir is the folder that programs run in. nodeStatus says in a
// few words where a node stands; nil: nothing is said.
func New(inv *inventory.Inventory, dir string, nodeStatus func(ctx context.Context, node string) (string, error)) *Stage {
	return &Stage{inv: inv, dir: dir, nodeStatus: nodeStatus, program: runProgram}
}

// WithProgram is the stage with something else than the operating system that runs
// programs, as in a rehearsal; nil changes nothing.
func (s *Stage) WithProgram(p Program) *Stage {
	if p != nil {
		s.program = p
	}
	return s
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return StageName }

// Version implements stage.Stage.
func (s *Stage) Version() int { return Version }

// Plan implements stage.Stage: see Place.
func (s *Stage) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) { return nil, nil }

// Observe implements stage.Stage: what a program did is its own business.
func (s *Stage) Observe(context.Context, stage.Run, plan.Step) (stage.Observation, error) {
	return stage.Observation{State: stage.Unknown}, nil
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	n, err := s.inv.Planned(st.Subject.Name)
	if err != nil {
		return err
	}
	place := placeOf(st)
	h, ok := findHook(s.inv, place)
	if !ok || !sameInputs(st.Inputs, hookInputs(h, place)) {
		return errkind.New(errkind.Mismatch, "hook %s is not what it was when the plan was made", place).Do("Make a new plan: `ironrail plan`.")
	}
	key, calls, err := s.key(run, n.Name, place)
	if err != nil {
		return err
	}
	c, err := s.call(ctx, run, h, n, key)
	if err != nil {
		return err
	}
	err = run.Effect(ctx, stage.Effect{Key: key, Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("run %s for %s, %s %s", h.Command[0], n.Name, h.When, h.Stage),
		Do:   func(ctx context.Context) error { return s.start(ctx, run, h, c) }})
	if err != nil {
		return err
	}
	f, err := Calls(place).New(st.Subject, Called{Count: calls.Count + 1, At: run.Clock().Now().UTC()}, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}

// key names the next call of a hook for a node: after a death of the controller
// in the middle of a call it is the same again.
func (s *Stage) key(run stage.Run, node, place string) (string, Called, error) {
	f, ok := run.Fact(Calls(place).Of(subject.OfNode(node)))
	if !ok {
		return fmt.Sprintf("%s/hook.%s/1", node, place), Called{}, nil
	}
	c, err := Calls(place).Get(f)
	return fmt.Sprintf("%s/hook.%s/%d", node, place, c.Count+1), c, err
}

// placeOf is the place of a hook's step: n1/install.before-2 is at install.before-2.
func placeOf(st plan.Step) string {
	id := string(st.ID.Base())
	return id[strings.LastIndexByte(id, '/')+1:]
}

// findHook returns the hook at a place.
func findHook(inv *inventory.Inventory, place string) (*inventory.Hook, bool) {
	for _, p := range listPlaces(inv.Hooks) {
		if p.name == place {
			return p.hook, true
		}
	}
	return nil, false
}

// sameInputs compares what a plan showed with what stands in the files.
func sameInputs(a, b []plan.Input) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Name != b[i].Name || a[i].Value != b[i].Value {
			return false
		}
	}
	return true
}
