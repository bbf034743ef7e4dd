// SPDX-License-Identifier: Apache-2.0

package validate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/target"
	"github.com/ironrail/ironrail/validate/trunk"
)

// Sweeper compares the cables of a fabric with the site once more, as fabric.Sweeping does.
type Sweeper func(context.Context, stage.Run, *inventory.Fabric) (fabric.Swept, error)

// Verifier compares the ports of a node on a fabric with their settings, as fabric.Verifying does.
type Verifier func(context.Context, stage.Run, *inventory.Fabric, *inventory.Node) ([]stage.Finding, error)

// ManagerCheck looks once more who manages a fabric, as fabric.Managed does.
type ManagerCheck func(context.Context, stage.Run, *inventory.Fabric, fabric.Sweep) (lost, weaker []stage.Finding, before bool, err error)

// How the last look is done.
const (
	// sweepAge is how old the last look at a fabric may be when a node is accepted: the nodes of a
	// group are accepted within seconds of each other, and share one.
	sweepAge = time.Minute
	// What could be read before is asked for several times, each time so long and after such a
	// pause: a subnet manager that sweeps, and a switch that reloads its configuration, answer
	// again within a minute.
	readTries = 3
	readWait  = 2 * time.Minute
	readPause = 30 * time.Second
)

// lastSweeps are the last looks at fabrics: their cables by a sweep, and what their
// switches counted since a test read that. It is safe for concurrent use.
type lastSweeps struct {
	inv    *inventory.Inventory
	read   target.CounterReader // nil: counters are not read
	sweep  Sweeper              // nil: there are no sweeps
	verify Verifier             // nil: settings are not compared
	manage ManagerCheck         // nil: managers are not asked

	turn    chan struct{}      // of one, guards what follows; taken while a fabric is looked at
	counted map[string]counted // by the tests, by fabric
	swept   map[string]swept
}

// newLastSweeps has looked at nothing yet, and can look at nothing.
func newLastSweeps(inv *inventory.Inventory) lastSweeps {
	return lastSweeps{inv: inv, turn: make(chan struct{}, 1), counted: map[string]counted{}, swept: map[string]swept{}}
}

// counted is what the switches of a fabric had counted when they were read last, and those
// that could be read in this run.
type counted struct {
	trunk.Reading
	switches map[string]bool
}

// swept is one look at a fabric.
type swept struct {
	at       time.Time
	findings []stage.Finding
	unread   []unread
}

// unread is what of a fabric could be read before, and not in the last look, and what was found in it that
// makes of the fabric another one than was tested.
type unread struct {
	finding stage.Finding
	nodes   map[string]bool // that it concerns; nil: all of the fabric
}

// take waits for the turn; what it returns ends it.
func (l *lastSweeps) take(ctx context.Context) (end func(), err error) {
	select {
	case l.turn <- struct{}{}:
		return func() { <-l.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// counters is the reader of tests: what it reads last is what the last look compares with.
func (l *lastSweeps) counters(run stage.Run) target.CounterReader {
	if l.read == nil {
		return nil
	}
	return func(ctx context.Context, f *inventory.Fabric) (map[fabric.SwitchPort]fabric.SwitchCounters, error) {
		ports, err := l.read(ctx, f)
		if len(ports) == 0 {
			return ports, err
		}
		end, stopped := l.take(ctx)
		if stopped != nil {
			return ports, errors.Join(err, stopped)
		}
		defer end()
		return ports, errors.Join(err, l.note(ctx, run, f, trunk.Reading{At: run.Clock().Now(), Ports: ports}))
	}
}

// note keeps a reading of counters, of whose ports some may be missing; what a later run and
// `ironrail drift` compare with is made durable. The turn is taken.
func (l *lastSweeps) note(ctx context.Context, run stage.Run, f *inventory.Fabric, r trunk.Reading) error {
	c := counted{r, map[string]bool{}}
	maps.Copy(c.switches, l.counted[f.Name].switches)
	maps.Copy(c.switches, fabric.SwitchesOf(l.inv, r.Ports))
	l.counted[f.Name] = c
	kept := fabric.CountedOf(r.Ports, r.At)
	kept.Switches = slices.Sorted(maps.Keys(c.switches))
	return target.LearnFact(ctx, run, fabric.CountedFact, subject.ID{Kind: subject.Fabric, Name: f.Name}, kept)
}

// countedBefore is what the switches of a fabric had counted, by this run or an earlier one; of that it
// is known only who answered. false: none ever did. The turn is taken.
func (l *lastSweeps) countedBefore(run stage.Run, f *inventory.Fabric) (counted, bool) {
	if c, ok := l.counted[f.Name]; ok {
		return c, true
	}
	before, ok := target.ReadFact(run, fabric.CountedFact, subject.ID{Kind: subject.Fabric, Name: f.Name})
	c := counted{switches: map[string]bool{}}
	for _, name := range before.Switches {
		c.switches[name] = true
	}
	return c, ok && l.read != nil
}

// look looks at the fabrics of a node, unless another node's acceptance has a moment ago, and
// returns what is found of the node, and what is about no node where this look is the first
// to find it. The error says that what could be read before could not be read now.
func (l *lastSweeps) look(ctx context.Context, run stage.Run, n *inventory.Node) (list []stage.Finding, refused error) {
	for _, f := range fabric.Of(n) {
		last, fresh, err := l.lookAt(ctx, run, f)
		if err != nil {
			return list, err
		}
		for _, x := range last.findings {
			if concerns(x, n) || fresh && !slices.ContainsFunc(x.Suspects, func(s stage.Suspect) bool { return s.Subject.Kind == subject.Node }) {
				list = append(list, x)
			}
		}
		for _, u := range last.unread {
			if fresh {
				list = append(list, u.finding)
			}
			if refused == nil && (u.nodes == nil || u.nodes[n.Name]) {
				refused = &stage.BlockedError{Err: errkind.New(errkind.Refused, "%s is not accepted: %s", n.Name, u.finding.Cause).Do(u.finding.Action)}
			}
		}
		wrong, err := l.verifyAgain(ctx, run, f, n)
		if list = append(list, wrong...); err != nil {
			return list, err
		}
	}
	return list, refused
}

// verifyAgain compares the ports of a node on a fabric with their settings once more.
func (l *lastSweeps) verifyAgain(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]stage.Finding, error) {
	if l.verify == nil || !gate.IsUp(run, f, n) {
		return nil, nil
	}
	wrong, err := retried(ctx, run, func(ctx context.Context) ([]stage.Finding, error) { return l.verify(ctx, run, f, n) })
	if err == nil || ctx.Err() != nil {
		return wrong, context.Cause(ctx)
	}
	return append(wrong, stage.Finding{Suspects: []stage.Suspect{{Subject: subject.OfNode(n.Name)}}, Evidence: []string{err.Error()},
		Cause:  fmt.Sprintf("the settings of its ports on fabric %s could not be read again, %d times: whether they are as they were tested is not known", f.Name, readTries),
		Action: "See why the node does not report them (log in, `journalctl -b`); then run `ironrail apply` again: the node is tested again."}), nil
}

// retried asks until it is answered, or has asked as often as it may, and returns the last
// answer. What is not implemented is not asked for again.
func retried[T any](ctx context.Context, run stage.Run, ask func(context.Context) (T, error)) (answer T, err error) {
	for try := range readTries {
		if try > 0 && run.Clock().Sleep(ctx, readPause) != nil {
			return answer, err
		}
		within, cancel := run.Clock().WithTimeout(ctx, readWait)
		answer, err = ask(within)
		cancel()
		if err == nil || ctx.Err() != nil || errkind.Of(err) == errkind.Unsupported {
			return answer, err
		}
	}
	return answer, err
}

// noteUnseen notes that a fabric was not looked at, and never was before: that it could be is
// proven by the steps before.
func noteUnseen(run stage.Run, f *inventory.Fabric, err error) {
	run.Emit(event.Event{Type: event.Note, Text: "fabric " + f.Name + " was not looked at once more: " + err.Error()})
}

// concerns reports whether a finding suspects a node.
func concerns(x stage.Finding, n *inventory.Node) bool {
	return slices.ContainsFunc(x.Suspects, func(s stage.Suspect) bool { return s.Subject == subject.OfNode(n.Name) })
}

// lookAt looks at one fabric; fresh: nobody has a moment ago.
func (l *lastSweeps) lookAt(ctx context.Context, run stage.Run, f *inventory.Fabric) (is swept, fresh bool, err error) {
	end, err := l.take(ctx)
	if err != nil {
		return swept{}, false, err
	}
	defer end()
	if last, ok := l.swept[f.Name]; ok && run.Clock().Now().Sub(last.at) < sweepAge {
		return last, false, nil
	}
	var seen fabric.Sweep
	if l.sweep != nil {
		seen = l.sweepAgain(ctx, run, f, &is)
	}
	if l.manage != nil && len(is.unread) == 0 { // who cannot be swept cannot be asked
		l.manageAgain(ctx, run, f, seen, &is)
	}
	if was, counted := l.countedBefore(run, f); counted {
		if err := l.countAgain(ctx, run, f, was, &is); err != nil {
			return swept{}, false, err
		}
	}
	if ctx.Err() != nil { // what was not read by then proves nothing
		return swept{}, false, context.Cause(ctx)
	}
	is.at = run.Clock().Now()
	l.swept[f.Name] = is
	return is, true, nil
}

// sweepAgain compares the cables of a fabric once more, and returns what it has seen; nil: nothing.
func (l *lastSweeps) sweepAgain(ctx context.Context, run stage.Run, f *inventory.Fabric, is *swept) fabric.Sweep {
	s, err := retried(ctx, run, func(ctx context.Context) (fabric.Swept, error) { return l.sweep(ctx, run, f) })
	is.findings = append(is.findings, s.Found...)
	switch {
	case err == nil:
		return s.Seen
	case !s.Before:
		noteUnseen(run, f, err)
	default:
		is.unread = append(is.unread, unread{finding: stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Fabric, Name: f.Name}}}, Evidence: []string{err.Error()},
			Cause:  fmt.Sprintf("the cables of fabric %s could not be swept again, %d times: whether they are as they were tested is not known", f.Name, readTries),
			Action: "See that its subnet manager runs and answers (`ibnetdiscover` there), then run `ironrail apply` again: the nodes are tested again."}})
	}
	return nil
}

// manageAgain looks once more who manages a fabric. One that is not managed as it was tested takes no node
// in: of which partitions its ports are, and what happens to a port that comes up, is then not known. seen
// is the sweep of a moment ago, and serves for the first try.
func (l *lastSweeps) manageAgain(ctx context.Context, run stage.Run, f *inventory.Fabric, seen fabric.Sweep, is *swept) {
	before := false
	var lost []stage.Finding
	weaker, err := retried(ctx, run, func(ctx context.Context) (list []stage.Finding, err error) {
		lost, list, before, err = l.manage(ctx, run, f, seen)
		seen = nil
		return list, err
	})
	is.findings = append(is.findings, weaker...)
	for _, x := range lost {
		is.unread = append(is.unread, unread{finding: x})
	}
	switch {
	case err == nil:
	case !before:
		noteUnseen(run, f, err)
	default:
		is.unread = append(is.unread, unread{finding: stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Fabric, Name: f.Name}, Part: "subnet manager"}}, Evidence: []string{err.Error()},
			Cause:  fmt.Sprintf("the subnet manager of fabric %s could not be asked again, %d times: whether it is the one by which the fabric was tested is not known", f.Name, readTries),
			Action: "See that it runs and answers (`sminfo`, `saquery SMIR` on its controller), then run `ironrail apply` again: the nodes are tested again."}})
	}
}

// countAgain compares what the switches of a fabric count with what they had counted in a test.
func (l *lastSweeps) countAgain(ctx context.Context, run stage.Run, f *inventory.Fabric, was counted, is *swept) error {
	var silent []string
	ports, err := retried(ctx, run, func(ctx context.Context) (ports map[fabric.SwitchPort]fabric.SwitchCounters, err error) {
		ports, err = l.read(ctx, f)
		if silent = missing(was.switches, fabric.SwitchesOf(l.inv, ports)); err == nil || len(silent) > 0 {
			return ports, err
		}
		noteUnseen(run, f, err) // only those did not answer that never did
		return ports, nil
	})
	if err != nil {
		is.unread = append(is.unread, l.unreadSwitches(f, silent, err)...)
	}
	now := trunk.Reading{At: run.Clock().Now(), Ports: ports}
	is.findings = append(is.findings, trunk.WornFindings(trunk.WornBetween(l.inv, f, was.Reading, now), nil)...)
	if len(ports) == 0 {
		return nil
	}
	return l.note(ctx, run, f, now)
}

// missing are the names of one set that are not in another, sorted.
func missing(all, some map[string]bool) (list []string) {
	for name := range all {
		if !some[name] {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

const doSwitch = "See that it answers, and that ironrail can log in on it; then run `ironrail apply` again: the nodes are tested again."

// unreadSwitches are one of each switch that could be read before. A switch with nodes concerns
// those, and any other one all of the fabric.
func (l *lastSweeps) unreadSwitches(f *inventory.Fabric, silent []string, why error) (list []unread) {
	for _, name := range silent {
		u := unread{finding: stage.Finding{Suspects: []stage.Suspect{{Subject: subject.ID{Kind: subject.Switch, Name: name}}}, Evidence: []string{why.Error()},
			Cause:  fmt.Sprintf("the counters of switch %s, on fabric %s, could not be read again, %d times: whether its cables made errors since the tests is not known", name, f.Name, readTries),
			Action: doSwitch}}
		for _, c := range l.inv.Cables {
			for _, ends := range [2][2]*inventory.CableEnd{{&c.From, &c.To}, {&c.To, &c.From}} {
				if ends[0].Switch != nil && ends[0].Switch.Name == name && ends[1].Node != nil {
					if u.nodes == nil {
						u.nodes = map[string]bool{}
					}
					u.nodes[ends[1].Node.Name] = true
				}
			}
		}
		list = append(list, u)
	}
	return list
}
