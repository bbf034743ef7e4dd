// SPDX-License-Identifier: Apache-2.0

package resident

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/provision"
)

// When nodes are started again whose system was in memory and that have booted: once no other has
// for a while, so that a rack that had its power back is one run, and at the latest so long after the
// first; a node that boots again and again is left to people.
const (
	restartQuiet  = 10 * time.Second
	restartLatest = time.Minute
	restartMost   = 3 // times a node
	restartWithin = 24 * time.Hour
)

// restart is what is known of nodes whose system was in memory. Resident.mu guards it.
type restart struct {
	kept map[string]string      // why one is not started again, by node
	new  map[string]time.Time   // since when one has booted that nothing was decided about, by node
	seen map[string]time.Time   // until when boots were decided about, by node
	done map[string][]time.Time // when each was started again
	at   map[string]time.Time   // when each booted last, by node; not of those that were accepted after that
}

// restartNodes begins a run for nodes that have booted with nothing in memory, and reports whether
// it looked at any; r.turn is held.
func (r *Resident) restartNodes(ctx context.Context) bool {
	due, err := r.listRestarts(ctx, time.Now())
	if err == nil && len(due) > 0 {
		err = r.beginRestart(ctx, due)
	}
	if err != nil {
		r.keepNodes(due, errkind.Line(err))
	}
	return len(due) > 0
}

// listRestarts lists the nodes without a system on disk that have booted since they were accepted, and that
// nothing was decided about.
func (r *Resident) listRestarts(ctx context.Context, now time.Time) (due []string, err error) {
	r.mu.Lock()
	here, boot, busy := r.idle, r.boot.up, r.loan != nil || r.ended
	if boot != nil {
		r.restart.noteBoots(boot.Booted())
	}
	booted := maps.Clone(r.restart.at)
	r.mu.Unlock()
	if here == nil || boot == nil || busy {
		return nil, nil
	}
	for _, n := range here.site.Inv.Nodes {
		at := booted[n.Name]
		if at.IsZero() || !n.Diskless() {
			continue
		}
		is, err := r.isDue(ctx, n.Name, at)
		if err != nil {
			return nil, err
		}
		if is {
			due = append(due, n.Name)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.restart.isQuiet(due, now) {
		return nil, nil
	}
	return due, nil
}

// noteBoots notes when nodes without a system on disk have booted: services are closed and opened anew,
// and nothing was decided about what the former ones saw last. r.mu is held.
func (x *restart) noteBoots(booted map[string]time.Time) {
	if x.at == nil {
		x.at = map[string]time.Time{}
	}
	for n, at := range booted {
		if at.After(x.at[n]) {
			x.at[n] = at
		}
	}
}

// takeRun notes which nodes have booted while a run was active, which has ended, and has those looked
// at again that were not started before it: why may be no more. r.mu is held.
func (x *restart) takeRun(booted map[string]time.Time) {
	x.noteBoots(booted)
	for n := range x.kept {
		delete(x.seen, n)
	}
}

// isQuiet reports whether no node has joined these for a while, or they wait for long; a node that
// boots again and again has joined once.
func (x *restart) isQuiet(due []string, now time.Time) bool {
	if x.new == nil {
		x.kept, x.new, x.seen, x.done = map[string]string{}, map[string]time.Time{}, map[string]time.Time{}, map[string][]time.Time{}
	}
	first, last := now, time.Time{}
	for _, n := range due {
		at, known := x.new[n]
		if !known {
			at, x.new[n] = now, now
		}
		if at.Before(first) {
			first = at
		}
		if at.After(last) {
			last = at
		}
	}
	return now.Sub(last) >= restartQuiet || now.Sub(first) >= restartLatest
}

// isDue reports whether a boot of a node is to be decided about: the node was in service before, and else has
// lost nothing, or was on its way there.
func (r *Resident) isDue(ctx context.Context, node string, at time.Time) (bool, error) {
	if r.isDecided(node, at) {
		return false, nil
	}
	st, _, err := state.Get[state.Node](ctx, r.cfg.Store, state.NodeKey(node))
	if err == nil && !at.After(st.AcceptedAt) {
		r.forgetBoot(node, at)
		return false, nil
	}
	was := st.Accepted || st.Adopted || !st.AcceptedAt.IsZero()
	return was, err
}

// forgetBoot forgets a boot of a node that was accepted after it, so that the state is not asked about it again
// and again: of all nodes that a run has brought up, and each question to etcd takes its way.
func (r *Resident) forgetBoot(node string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.restart.at[node].Equal(at) {
		delete(r.restart.at, node)
	}
}

// isDecided reports whether this boot of a node was decided about.
func (r *Resident) isDecided(node string, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !at.After(r.restart.seen[node])
}

// keepNodes notes that nodes are not started again, and why, and says what is new in that. They are
// looked at again once they boot again or are released.
func (r *Resident) keepNodes(nodes []string, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range nodes {
		if r.restart.kept[n] != why {
			r.cfg.Bus.Emit(event.Event{Type: event.Note, Node: n, Text: "it has booted, its system was in memory, and it is not started again: " + why,
				Data: map[string]string{"action": "`ironrail rebuild " + n + "` does it."}})
		}
	}
	r.restart.decide(nodes, why, time.Now())
}

// forgetKept has a node that was released looked at again.
func (r *Resident) forgetKept(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.restart.kept, node)
	delete(r.restart.seen, node)
}

// decide notes what was decided about nodes; "" is that they are started again.
func (x *restart) decide(nodes []string, why string, now time.Time) {
	for _, n := range nodes {
		x.seen[n] = now
		delete(x.new, n)
		delete(x.kept, n)
		if why != "" {
			x.kept[n] = why
			continue
		}
		x.done[n] = append(slices.DeleteFunc(x.done[n], func(t time.Time) bool { return now.Sub(t) > restartWithin }), now)
	}
}

// takeOften takes out the nodes that were started again too often, and returns the others.
func (r *Resident) takeOften(nodes []string, now time.Time) (few []string) {
	var often []string
	r.mu.Lock()
	for _, n := range nodes {
		if done := r.restart.done[n]; len(done) >= restartMost && now.Sub(done[len(done)-restartMost]) < restartWithin {
			often = append(often, n)
		} else {
			few = append(few, n)
		}
	}
	r.mu.Unlock()
	r.keepNodes(often, fmt.Sprintf("it was started again %d times within a day", restartMost))
	return few
}

// beginRestart begins a run that starts nodes again, of those that may be; r.turn is held.
func (r *Resident) beginRestart(ctx context.Context, due []string) error {
	last, _, err := state.Get[state.Run](ctx, r.cfg.Store, state.LastRun)
	if err != nil {
		return err
	}
	if last.Resumable() {
		r.keepNodes(due, "run "+last.ID+" was interrupted, and `ironrail apply` resumes it first")
		return nil
	}
	site, _, err := r.cfg.Load(true)
	if err != nil {
		return err
	}
	now := time.Now()
	x, err := site.PlanRestart(ctx, r.cfg.Store, r.takeOften(due, now), now)
	if err != nil {
		return err
	}
	for _, n := range due {
		if why := x.Refused[n]; why != "" {
			r.keepNodes([]string{n}, why)
		}
	}
	if x.Plan == nil {
		return nil
	}
	approval, err := x.Approve(ctx, r.cfg.Store, r.cfg.Fence, site.Inv.Site.MaxErase)
	if err != nil {
		return err
	}
	begun, err := r.launch(ctx, control.Borrower{Identity: r.cfg.Owner, Program: r.cfg.Version}, r.checkEnded, func(context.Context) (*provision.Site, provision.RunOptions, error) {
		return site, provision.RunOptions{Plan: x.Plan, Approval: approval}, nil
	})
	if err != nil {
		r.keepNodes(x.Nodes, errkind.Line(err))
		return nil
	}
	r.mu.Lock()
	r.restart.decide(x.Nodes, "", now)
	r.mu.Unlock()
	r.note(fmt.Sprintf("run %s starts again what was in memory: %s", begun.Run, strings.TrimSpace(subject.Some(x.Nodes, 10))))
	return nil
}

// checkEnded refuses what would begin while this owner ends.
func (r *Resident) checkEnded() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errEnding
	}
	return nil
}
