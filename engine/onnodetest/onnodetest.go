// SPDX-License-Identifier: Apache-2.0

// Package onnodetest gives tests of stages a world to work on: nodes that
// answer commands by rules, and a stage.Run that remembers what was recorded.
package onnodetest

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
)

// Call is one command as a node saw it.
type Call struct {
	Node string
	onnode.Command
}

// Line is the call as one line, for matching and for messages.
func (c Call) Line() string { return strings.Join(c.Argv, " ") }

// Rule answers calls. It returns false for calls that it does not know.
type Rule func(ctx context.Context, c Call) (onnode.Output, error, bool)

// Nodes answers each command by its first rule that knows it; a command that
// none knows fails with status 127. Files written by onnode.Write are kept.
type Nodes struct {
	Rules []Rule

	mu    sync.Mutex
	calls []Call
	files map[string][]byte // node:path
}

// Run implements onnode.Nodes.
func (n *Nodes) Run(ctx context.Context, node string, c onnode.Command) (onnode.Output, error) {
	call := Call{Node: node, Command: c}
	n.mu.Lock()
	n.calls = append(n.calls, call)
	n.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return onnode.Output{}, err
	}
	for _, r := range n.Rules {
		if out, err, ok := r(ctx, call); ok {
			Stream(c, out)
			return out, err
		}
	}
	if len(c.Argv) == 6 && c.Argv[0] == "sh" && c.Argv[1] == "-c" && strings.Contains(c.Argv[2], "mv -fT") {
		n.Put(node, c.Argv[4], c.Stdin)
		return onnode.Output{}, nil
	}
	return onnode.Output{Exit: 127, Stderr: []byte("no rule for: " + call.Line())}, nil
}

// Stream gives an output to whoever reads the command's streams.
func Stream(c onnode.Command, out onnode.Output) {
	if c.Stdout != nil {
		_, _ = c.Stdout.Write(out.Stdout)
	}
	if c.Stderr != nil {
		_, _ = c.Stderr.Write(out.Stderr)
	}
}

// Put sets a file of a node.
func (n *Nodes) Put(node, file string, content []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.files == nil {
		n.files = map[string][]byte{}
	}
	n.files[node+":"+path.Clean(file)] = content
}

// File returns a file of a node.
func (n *Nodes) File(node, file string) ([]byte, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b, ok := n.files[node+":"+path.Clean(file)]
	return b, ok
}

// Calls returns the calls so far whose line contains text.
func (n *Nodes) Calls(text string) []Call {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []Call
	for _, c := range n.calls {
		if strings.Contains(c.Line(), text) {
			out = append(out, c)
		}
	}
	return out
}

// On is a rule: calls whose line starts with prefix get this answer.
func On(prefix, stdout string, exit int) Rule {
	return func(_ context.Context, c Call) (onnode.Output, error, bool) {
		if !strings.HasPrefix(c.Line(), prefix) {
			return onnode.Output{}, nil, false
		}
		return onnode.Output{Stdout: []byte(stdout), Exit: exit}, nil, true
	}
}

// Run is a stage.Run that keeps everything in memory. Sleeps return at once.
type Run struct {
	Subjects []subject.ID
	Now      time.Time

	mu       sync.Mutex
	facts    map[fact.Key]fact.Fact
	Findings []stage.Finding
	Effects  []string // keys, in order
	Events   []event.Event
	Evidence map[string][]byte // by reference
}

// NewRun returns a run whose step has the given members.
func NewRun(members ...subject.ID) *Run {
	return &Run{Subjects: members, Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), facts: map[fact.Key]fact.Fact{}, Evidence: map[string][]byte{}}
}

// Members implements stage.Run.
func (r *Run) Members() []subject.ID { return r.Subjects }

// Examined implements stage.Run: none is out.
func (r *Run) Examined() []subject.ID { return nil }

// Fact implements stage.Run and stage.View.
func (r *Run) Fact(k fact.Key) (fact.Fact, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, ok := r.facts[k]
	return f, ok
}

// Learn implements stage.Run.
func (r *Run) Learn(_ context.Context, fs ...fact.Fact) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range fs {
		r.facts[f.Key] = f
	}
	return nil
}

// Effect implements stage.Run: it does the effect once for each key.
func (r *Run) Effect(ctx context.Context, e stage.Effect) error {
	r.mu.Lock()
	for _, k := range r.Effects {
		if k == e.Key {
			r.mu.Unlock()
			return nil
		}
	}
	r.mu.Unlock()
	if err := e.Do(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Effects = append(r.Effects, e.Key)
	return nil
}

// Blame implements stage.Run.
func (r *Run) Blame(_ context.Context, f stage.Finding) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Findings = append(r.Findings, f)
	return nil
}

// Release implements stage.Run.
func (r *Run) Release(string) {}

// Emit implements stage.Run.
func (r *Run) Emit(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Events = append(r.Events, e)
}

// Attach implements stage.Run.
func (r *Run) Attach(name string, content []byte) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(content) == 0 {
		return "", errors.New("empty evidence " + name)
	}
	ref := fmt.Sprintf("evidence/%d-%s", len(r.Evidence), name)
	r.Evidence[ref] = content
	return ref, nil
}

// Clock implements stage.Run.
func (r *Run) Clock() clock.Clock { return &jump{r: r} }

// jump is a clock on which sleeping takes no time but moves Now; looking at it
// takes a millisecond.
type jump struct{ r *Run }

func (j *jump) Now() time.Time {
	j.r.mu.Lock()
	defer j.r.mu.Unlock()
	j.r.Now = j.r.Now.Add(time.Millisecond)
	return j.r.Now
}

func (j *jump) Sleep(ctx context.Context, d time.Duration) error {
	j.r.mu.Lock()
	j.r.Now = j.r.Now.Add(d)
	j.r.mu.Unlock()
	return context.Cause(ctx)
}

func (j *jump) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
