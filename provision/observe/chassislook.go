// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/validate/chassis"
	"github.com/ironrail/ironrail/validate/gate/host"
	"github.com/ironrail/ironrail/validate/gate/judge"
)

// mostLogFaults is how many entries of one event log are remembered, the newest.
const mostLogFaults = 8

// ChassisMemory is what is known of event logs from one look at chassis to the next: where each
// ended, and what was found in it since its node was accepted. One look at a time uses it.
type ChassisMemory struct {
	mu    sync.Mutex // guards nodes
	nodes map[string]chassisMemory
}

type chassisMemory struct {
	since time.Time // of the acceptance that end and log come after
	end   chassis.LogMark
	known bool // end is
	log   []judge.Fault
}

// ChassisReport is what BMCs say of power supplies, fans, the air that comes in, and of what is new in
// their event logs since their nodes were accepted.
type ChassisReport struct {
	Asked  int                      // BMCs
	Faults map[string][]judge.Fault // by node; of the log, also those that an earlier look found
	Silent map[string]string        // why a BMC was not read, by node
}

// LookAtChassis asks the BMCs of nodes that are accepted or adopted and not on hold, driftBMCs at a
// time, each with one session. Nothing is changed.
func (o Observer) LookAtChassis(ctx context.Context, r state.Reader, m *ChassisMemory) (ChassisReport, error) {
	out := ChassisReport{Faults: map[string][]judge.Fault{}, Silent: map[string]string{}}
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return out, err
	}
	facts := lookedUp(reach.Facts(r))
	b := o.BMCs(facts)
	var wg sync.WaitGroup
	var mu sync.Mutex // guards out
	slots := make(chan struct{}, driftBMCs)
	for _, n := range o.Inv.Nodes {
		if st := known[n.Name]; !st.Accepted && !st.Adopted || st.Hold != nil || n.Hardware == nil {
			continue
		}
		out.Asked++
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			faults, err := m.look(ctx, n, facts, b)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Silent[n.Name] = errkind.Line(err)
			}
			if len(faults) > 0 {
				out.Faults[n.Name] = faults
			}
		})
	}
	wg.Wait()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	_ = b.Pool.Close(end) // a session that is not closed expires at its BMC
	return out, ctx.Err()
}

// look asks the BMC of one node. Of a BMC that does not answer what is remembered of its log stays.
func (m *ChassisMemory) look(ctx context.Context, n *inventory.Node, facts lookedUp, b reach.BMCs) ([]judge.Fault, error) {
	ctx, cancel := context.WithTimeout(ctx, host.ChassisWait)
	defer cancel()
	mem := m.recall(n, facts)
	h, err := reach.ChassisBy(b.Handle)(n.Name)
	if err != nil {
		return mem.log, err
	}
	parts, err := h.Parts(ctx)
	if err != nil && errkind.Of(err) != errkind.Unsupported {
		return mem.log, err
	}
	var from *chassis.LogMark
	if mem.known {
		from = &mem.end
	}
	end, log, err := h.Log(ctx, from)
	if err == nil {
		mem.end, mem.known = end, true
	}
	now, _ := host.JudgeChassis(n.Hardware, host.Chassis{Parts: parts, Watched: host.IsWatched(n)})
	// By itself: beside a part that is bad now an entry would be evidence of that part, and gone with it.
	logged, _ := host.JudgeChassis(n.Hardware, host.Chassis{Log: log, Logged: err == nil})
	mem.log = append(mem.log, logged...)
	mem.log = mem.log[max(0, len(mem.log)-mostLogFaults):]
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes[n.Name] = mem
	return append(now, mem.log...), err
}

// recall is what is remembered of a node since it was accepted last. Of one that nothing is known
// of, its log is read from where it ended then.
func (m *ChassisMemory) recall(n *inventory.Node, facts lookedUp) chassisMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes == nil {
		m.nodes = map[string]chassisMemory{}
	}
	mem := m.nodes[n.Name]
	if end, at, ok := host.LastLogMark(facts, n); ok && at.After(mem.since) {
		mem = chassisMemory{since: at, end: end, known: true}
	}
	return mem
}
