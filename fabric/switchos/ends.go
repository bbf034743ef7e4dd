// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/mlnxqos"
)

// lastObserved returns how a switch was read last; false: it never was.
func lastObserved(run stage.Run, s *inventory.Switch) (ObservedState, bool, error) {
	f, ok := run.Fact(ObservedFact.Of(Of(s)))
	if !ok {
		return ObservedState{}, false, nil
	}
	now, err := ObservedFact.Get(f)
	return now, err == nil, err
}

// ends implements roce.Ends: each rail against the switch port that its cable is
// meant for. Where that switch could not be read nothing is said about the rail.
func (k *Kind) ends(run stage.Run, f *inventory.Fabric, n *inventory.Node, states []wire.RoCEPortState) (list []stage.Finding, err error) {
	for _, s := range k.managed(f) {
		var now ObservedState
		asked, known := false, false
		for i := range s.Ports {
			p := &s.Ports[i]
			state, rail, ok := stateOf(p, n, states)
			if !ok {
				continue
			}
			if !asked {
				asked = true
				if now, known, err = lastObserved(run, s.Switch); err != nil {
					return nil, err
				}
			}
			if !known {
				run.Emit(event.Event{Type: event.Note, Text: fmt.Sprintf("rail %d of %s is not compared with %s, which could not be read", rail, n.Name, s.Switch.Name)})
				continue
			}
			if found := k.end(s, p, now, rail, state); found != nil {
				list = append(list, *found)
			}
		}
	}
	return list, nil
}

// stateOf is what the node said of the port at the far end of a switch port.
func stateOf(p *sonic.Port, n *inventory.Node, states []wire.RoCEPortState) (wire.RoCEPortState, int, bool) {
	if p.Far.Node != n || p.Far.NIC == nil || p.Far.Port >= len(p.Far.NIC.Ports) {
		return wire.RoCEPortState{}, 0, false
	}
	rail := p.Far.NIC.Ports[p.Far.Port].Rail
	i := slices.IndexFunc(states, func(s wire.RoCEPortState) bool { return s.Rail == rail })
	if i < 0 || states[i].Sorting == nil {
		return wire.RoCEPortState{}, rail, false
	}
	return states[i], rail, true
}

// end compares one rail; nil: both ends fit.
func (k *Kind) end(s *sonic.Switch, p *sonic.Port, now ObservedState, rail int, state wire.RoCEPortState) *stage.Finding {
	node, _ := nodeOf(p)
	var what []string
	for _, m := range s.CompareEnd(p, now.Ports[p.Name], hostPort(p, state)) {
		what = append(what, m.What)
	}
	if len(what) == 0 {
		return nil
	}
	return &stage.Finding{
		Suspects: []stage.Suspect{{Subject: Of(s.Switch), Part: PartOf(p)}}, Affected: []subject.ID{node},
		Cause: fmt.Sprintf("rail %d of %s and port %s of %s do not fit: %s", rail, node.Name, p.Name, s.Switch.Name, strings.Join(what, "; ")),
		Evidence: []string{fmt.Sprintf("%s (rail %d) is as the site says: it pauses %v, DSCP %d has priority %d, MTU %d", state.Netdev, rail, state.Sorting.Paused, s.Lossless.DSCP, state.Sorting.Priorities[s.Lossless.DSCP], state.MTU),
			fmt.Sprintf("%s %s was read: %s", s.Switch.Name, p.Name, describeQoS(now.Ports[p.Name]))},
		Action: fmt.Sprintf("Fix the configuration of %s first, whose own step says what is wrong with it; then apply again.", s.Switch.Name),
	}
}

// describeQoS says a port's settings in short.
func describeQoS(q sonic.QoS) string {
	return fmt.Sprintf("it pauses %v, DSCPs have priorities %v, it marks queues %v, MTU %d", q.Paused, q.Priority, q.Marked, q.MTU)
}

// hostPort is what a node said, as dumps are compared. The two ends' MTUs are of
// IP packets both.
func hostPort(p *sonic.Port, state wire.RoCEPortState) sonic.HostPort {
	q := &mlnxqos.QoS{Trust: state.Sorting.Trust, DSCP: map[string]int{}, PFC: make([]bool, 8)}
	for d, prio := range state.Sorting.Priorities {
		q.DSCP[strconv.Itoa(d)] = prio
	}
	for _, prio := range state.Sorting.Paused {
		if prio >= 0 && prio < len(q.PFC) {
			q.PFC[prio] = true
		}
	}
	return sonic.HostPort{Name: p.Far.String(), QoS: q, MTU: state.MTU, TrafficClass: state.Sorting.TrafficClass}
}

// trunks compares both ends of the cables between switches that have been read and
// are as they should be: what is wrong with the others was said.
func (k *Kind) trunks(run stage.Run, f *inventory.Fabric) (found []stage.Finding, compared int, err error) {
	list := k.managed(f)
	read := map[*inventory.Switch]ObservedState{}
	for _, s := range list {
		now, known, err := lastObserved(run, s.Switch)
		if err != nil {
			return nil, 0, err
		}
		if known && now.Conforms {
			read[s.Switch] = now
		}
	}
	for _, s := range list {
		for i := range s.Ports {
			p := &s.Ports[i]
			here, ok := read[s.Switch]
			there, ok2 := read[p.Far.Switch]
			q := portAt(list, p.Far)
			if !ok || !ok2 || q == nil || p.Far.Switch.Name <= s.Switch.Name {
				continue // of each cable once, from the end whose switch comes first by name
			}
			compared++
			if x := compareTrunk(s.Switch, p, here.Ports[p.Name], q, there.Ports[q.Name]); x != nil {
				found = append(found, *x)
			}
		}
	}
	return found, compared, nil
}

// portAt is the port of a switch that a cable ends in; nil: of none of these.
func portAt(list []*sonic.Switch, e inventory.CableEnd) *sonic.Port {
	for _, s := range list {
		if s.Switch != e.Switch {
			continue
		}
		for i := range s.Ports {
			if o := s.Ports[i].End; o.Port == e.Port && o.Lane == e.Lane {
				return &s.Ports[i]
			}
		}
	}
	return nil
}

// compareTrunk compares the two ends of a cable; nil: they fit.
func compareTrunk(s *inventory.Switch, p *sonic.Port, here sonic.QoS, q *sonic.Port, there sonic.QoS) *stage.Finding {
	what := sonic.CompareTrunk(here, there)
	if len(what) == 0 {
		return nil
	}
	far := p.Far.Switch
	return &stage.Finding{
		Suspects: []stage.Suspect{{Subject: Of(s), Part: PartOf(p)}, {Subject: Of(far), Part: PartOf(q)}},
		Cause:    fmt.Sprintf("the cable of %s %s to %s %s has two ends that do not fit: %s", s.Name, p.Name, far.Name, q.Name, strings.Join(what, "; ")),
		Evidence: []string{s.Name + " " + p.Name + ": " + describeQoS(here), far.Name + " " + q.Name + ": " + describeQoS(there)},
		Action:   "Set both ends alike: the site gives every switch of a fabric the same, so that one was changed by hand since.",
	}
}

// observeTrunks looks at them as they were read last.
func (k *Kind) observeTrunks(run stage.Run, f *inventory.Fabric) (stage.Observation, error) {
	found, compared, err := k.trunks(run, f)
	switch {
	case err != nil:
		return stage.Observation{State: stage.Unknown}, err
	case len(found) > 0:
		return stage.Observation{State: stage.Differs, Evidence: found[0].Cause}, nil
	}
	return stage.Observation{State: stage.Conforms, Evidence: fmt.Sprintf("both ends of %d cables fit", compared)}, nil
}

// blameTrunks fails where two ends do not fit.
func (k *Kind) blameTrunks(ctx context.Context, run stage.Run, f *inventory.Fabric) error {
	found, _, err := k.trunks(run, f)
	for _, x := range found {
		err = errors.Join(err, run.Blame(ctx, x))
	}
	if err != nil || len(found) == 0 {
		return err
	}
	return errkind.New(errkind.Mismatch, "%s", found[0].Cause).Do(found[0].Action)
}
