// SPDX-License-Identifier: Apache-2.0

// Package command is the handover kind "exec": the site's own programs take a
// node out of service and put it into service. Each gets the node as JSON on its
// standard input; status zero means that it is done. They run on the controller,
// without a shell, with a fixed PATH and nothing else in the environment.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	"github.com/ironrail/ironrail/provision/handover"
)

// Name is the kind's name in the language.
const Name = "exec"

const (
	defaultTimeout = 5 * time.Minute
	maxOutput      = 64 << 10 // bytes of a program's output that are kept
	path           = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// verb is one thing that a program does. Without an argument vector of its own
// it is the `command` of the block with the verb as last argument.
type verb string

const (
	join   verb = "join"   // a node that was not in service yet
	resume verb = "resume" // one that was, and was taken out
	drain  verb = "drain"  // take it out; ends when no work is on it
)

// Node is what a program reads on its standard input.
type Node struct {
	Verb     string `json:"verb"`
	Handover string `json:"handover"`
	Name     string `json:"name"`
	Address  string `json:"address"`
	Address6 string `json:"address6,omitempty"` // IPv6, where the boot network has a cidr6
	Rack     string `json:"rack,omitempty"`
	Serial   string `json:"serial,omitempty"`
	Reason   string `json:"reason,omitempty"` // of a drain
}

// Service is the fact of what the programs were told last of a node.
type Service struct {
	In      bool      `json:"in"`
	Life    time.Time `json:"life"` // the acceptance that it was told of
	Notices int       `json:"told"` // how often it was told something
}

// InService returns the fact's name for a handover.
func InService(handover string) fact.Name[Service] {
	return fact.Name[Service]("handover.service." + handover)
}

// Command runs the programs. Its zero value is ready for use.
type Command struct{}

// argvOf returns the argument vector of a verb; empty when there is none.
func argvOf(h *inventory.Handover, v verb) []string {
	if list := h.Texts(string(v)); len(list) > 0 {
		return list
	}
	if list := h.Texts("command"); len(list) > 0 {
		return append(list, string(v))
	}
	return nil
}

func timeoutOf(h *inventory.Handover) time.Duration {
	if d, err := unit.ParseDuration(h.Text("timeout")); err == nil && d > 0 {
		return d
	}
	return defaultTimeout
}

// Check implements handover.Kind.
func (Command) Check(h *inventory.Handover, _ []*inventory.Node) hcl.Diagnostics {
	var diags hcl.Diagnostics
	for _, v := range []verb{join, drain} {
		if len(argvOf(h, v)) == 0 {
			diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Handover has no program", Subject: h.Decl.Ptr(),
				Detail: fmt.Sprintf("Handover %q of kind \"exec\" needs `%s`, or a `command` that is run with %q as its last argument.", h.Name, v, v)})
		}
	}
	return diags
}

// Inputs implements handover.Kind. A changed program alone is no reason to run
// it for nodes that are in service.
func (Command) Inputs(*inventory.Inventory, *inventory.Handover, []*inventory.Node) []plan.Input {
	return nil
}

// DrainLimit implements handover.Kind.
func (Command) DrainLimit(h *inventory.Handover) time.Duration { return timeoutOf(h) }

// dueVerb says which verb a member needs now; "" for none.
func dueVerb(run stage.Run, t handover.Target, m handover.Member) verb {
	service, known := serviceOf(run, t, m)
	switch {
	case m.InService && !known:
		return join
	case m.InService && (!service.In || !service.Life.Equal(m.AcceptedAt)):
		return resume
	case !m.InService && known && service.In:
		return drain
	}
	return ""
}

func serviceOf(run stage.Run, t handover.Target, m handover.Member) (Service, bool) {
	f, ok := run.Fact(InService(t.Name).Of(subject.OfNode(m.Node.Name)))
	if !ok {
		return Service{}, false
	}
	s, err := InService(t.Name).Get(f)
	return s, err == nil
}

// Observe implements handover.Kind.
func (Command) Observe(_ context.Context, run stage.Run, t handover.Target) (stage.Observation, error) {
	var open []string
	for _, m := range t.Members {
		if v := dueVerb(run, t, m); v != "" {
			open = append(open, fmt.Sprintf("%s %s", v, m.Node.Name))
		}
	}
	if len(open) > 0 {
		return stage.Observation{State: stage.Differs, Evidence: "to do: " + strings.Join(open, ", ")}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: "every node was told of"}, nil
}

// Apply implements handover.Kind. One program that fails does not keep the
// others from being told.
func (c Command) Apply(ctx context.Context, run stage.Run, t handover.Target) error {
	var failed []string
	var first error
	for _, m := range t.Members {
		v := dueVerb(run, t, m)
		if v == "" {
			continue
		}
		if err := c.runVerb(ctx, run, t, m, v); err != nil {
			failed = append(failed, m.Node.Name)
			if first == nil {
				first = err
			}
		}
	}
	if first != nil {
		return fmt.Errorf("handover %s: %d nodes could not be told of (%s): %w", t.Name, len(failed), strings.Join(failed, ", "), first)
	}
	return nil
}

// Drain implements handover.Kind. A node that the programs were never told of is
// not drained.
func (c Command) Drain(ctx context.Context, run stage.Run, t handover.Target, node string) error {
	i := slices.IndexFunc(t.Members, func(m handover.Member) bool { return m.Node.Name == node })
	if i < 0 {
		return errkind.New(errkind.NotFound, "node %s does not belong to handover %s", node, t.Name)
	}
	if service, known := serviceOf(run, t, t.Members[i]); known && !service.In {
		return nil
	}
	return c.runVerb(ctx, run, t, t.Members[i], drain)
}

// runVerb runs a verb's program for a member and remembers what it was told. The
// count of tellings names the effect, so that a crash between the program's end
// and the memory of it does not run it twice.
func (c Command) runVerb(ctx context.Context, run stage.Run, t handover.Target, m handover.Member, v verb) error {
	args := argvOf(t.Handover, v)
	if len(args) == 0 && v == resume {
		args = argvOf(t.Handover, join)
	}
	n := Node{Verb: string(v), Handover: t.Name, Name: m.Node.Name, Address: m.Node.Address.String(), Serial: m.Node.Serial}
	if m.Node.Address6.IsValid() {
		n.Address6 = m.Node.Address6.String()
	}
	if m.Node.Rack != nil {
		n.Rack = m.Node.Rack.Name
	}
	if v == drain {
		n.Reason = m.Reason
	}
	service, _ := serviceOf(run, t, m)
	err := run.Effect(ctx, stage.Effect{
		Key:  fmt.Sprintf("%s/handover.%s/%d-%s", n.Name, t.Name, service.Notices+1, v),
		Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("%s %s with %s", v, n.Name, args[0]),
		Do:   func(ctx context.Context) error { return runProgram(ctx, run, timeoutOf(t.Handover), args, n) },
	})
	if err != nil {
		return err
	}
	f, err := InService(t.Name).New(subject.OfNode(n.Name), Service{In: v != drain, Life: m.AcceptedAt, Notices: service.Notices + 1}, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, f)
}

// runProgram runs one program to its end.
func runProgram(ctx context.Context, run stage.Run, limit time.Duration, args []string, n Node) error {
	stdin, err := json.Marshal(n)
	if err != nil {
		return err
	}
	run.Emit(event.Event{Type: event.StepProgress, Node: n.Name, Text: fmt.Sprintf("%s: %s", n.Verb, args[0])})
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = []string{path}, "/", 5*time.Second
	cmd.Stdin = bytes.NewReader(stdin)
	out := &capped{max: maxOutput}
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	if err == nil {
		return nil
	}
	text := ""
	if out.Len() > 0 {
		ref, aerr := run.Attach(n.Verb+"-"+n.Name+".txt", out.Bytes())
		if aerr != nil {
			return aerr
		}
		text = " (" + ref + ")"
	}
	kind := errkind.Refused
	if ctx.Err() != nil {
		kind = errkind.Of(ctx.Err())
	}
	return errkind.New(kind, "node %s: %s: %s: %w%s", n.Name, n.Verb, args[0], err, text).
		Do("Run the program by hand with the same JSON on its standard input, repair it, then apply again.")
}

// capped keeps the first max bytes that are written to it.
type capped struct {
	bytes.Buffer
	max int
}

// Write keeps what fits and takes the rest.
func (c *capped) Write(p []byte) (int, error) {
	if room := c.max - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
