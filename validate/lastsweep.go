// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/trunk"
)

// Sweeper compares the cables of a fabric with the site once more, as fabric.Sweeping does.
type Sweeper func(context.Context, stage.Run, *inventory.Fabric) ([]stage.Finding, error)

// Verifier compares the ports of a node on a fabric with their settings, as fabric.Verifying does.
type Verifier func(context.Context, stage.Run, *inventory.Fabric, *inventory.Node) ([]stage.Finding, error)

// sweepAge is how old the last look at a fabric may be when a node is accepted: the nodes of a
// group are accepted within seconds of each other, and share one.
const sweepAge = time.Minute

// lastSweeps are the last looks at fabrics: their cables by a sweep, and what their
// switches counted since a test read that. It is safe for concurrent use.
type lastSweeps struct {
	inv    *inventory.Inventory
	read   target.CounterReader // nil: counters are not read
	sweep  Sweeper              // nil: there are no sweeps
	verify Verifier             // nil: settings are not compared

	turn    chan struct{}            // of one, guards what follows; taken while a fabric is looked at
	counted map[string]trunk.Reading // by the tests, by fabric
	swept   map[string]swept
}

// newLastSweeps has looked at nothing yet, and can look at nothing.
func newLastSweeps(inv *inventory.Inventory) lastSweeps {
	return lastSweeps{inv: inv, turn: make(chan struct{}, 1), counted: map[string]trunk.Reading{}, swept: map[string]swept{}}
}

// swept is one look at a fabric.
type swept struct {
	at       time.Time
	findings []stage.Finding
}

// counters is the reader of tests: what it reads last is what the last look compares with.
func (l *lastSweeps) counters(run stage.Run) target.CounterReader {
	if l.read == nil {
		return nil
	}
	return func(ctx context.Context, f *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
		ports, err := l.read(ctx, f)
		if err == nil {
			l.turn <- struct{}{}
			defer func() { <-l.turn }()
			l.counted[f.Name] = trunk.Reading{At: run.Clock().Now(), Ports: ports}
		}
		return ports, err
	}
}

// look looks at the fabrics of a node, unless another node's acceptance has a moment ago, and
// returns what is found of the node, and what is about no node where this look is the first
// to find it.
func (l *lastSweeps) look(ctx context.Context, run stage.Run, n *inventory.Node) (list []stage.Finding) {
	for _, f := range fabric.Of(n) {
		found, fresh := l.lookAt(ctx, run, f)
		for _, x := range found {
			if concerns(x, n) || fresh && !slices.ContainsFunc(x.Suspects, func(s stage.Suspect) bool { return s.Subject.Kind == subject.Node }) {
				list = append(list, x)
			}
		}
		if l.verify != nil && gate.IsUp(run, f, n) {
			wrong, err := l.verify(ctx, run, f, n)
			if err != nil {
				noteUnseen(run, f, err)
			}
			list = append(list, wrong...)
		}
	}
	return list
}

// noteUnseen notes that a fabric was not looked at: that it could be is proven by the steps before.
func noteUnseen(run stage.Run, f *inventory.Fabric, err error) {
	run.Emit(event.Event{Type: event.Note, Text: "fabric " + f.Name + " was not looked at once more: " + err.Error()})
}

// concerns reports whether a finding suspects a node.
func concerns(x stage.Finding, n *inventory.Node) bool {
	return slices.ContainsFunc(x.Suspects, func(s stage.Suspect) bool { return s.Subject == subject.OfNode(n.Name) })
}

// lookAt looks at one fabric; fresh: nobody has a moment ago. What cannot be read is a note.
func (l *lastSweeps) lookAt(ctx context.Context, run stage.Run, f *inventory.Fabric) (found []stage.Finding, fresh bool) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	now := run.Clock().Now()
	if last, ok := l.swept[f.Name]; ok && now.Sub(last.at) < sweepAge {
		return last.findings, false
	}
	if l.sweep != nil {
		list, err := l.sweep(ctx, run, f)
		if err != nil {
			noteUnseen(run, f, err)
		}
		found = append(found, list...)
	}
	if was, counted := l.counted[f.Name]; counted {
		ports, err := l.read(ctx, f)
		if err != nil {
			noteUnseen(run, f, err)
		} else {
			is := trunk.Reading{At: now, Ports: ports}
			found = append(found, trunk.WornFindings(trunk.WornBetween(l.inv, f, was, is), nil)...)
			l.counted[f.Name] = is
		}
	}
	l.swept[f.Name] = swept{now, found}
	return found, true
}
