// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/rebuild"
)

// restartDrain is how long a restart waits for jobs that a scheduler still has on the node:
// longer than Slurm takes to find that a node is gone (SlurmdTimeout, 300 s as a rule).
const restartDrain = 10 * time.Minute

// Restart is what is done about nodes whose system was in memory and that have booted again by
// themselves.
type Restart struct {
	Plan    *plan.Plan        // nil: none of them is started
	Nodes   []string          // that Plan starts
	Refused map[string]string // why the others are not, by node

	request rebuild.Request
}

// PlanRestart plans to start such nodes from the image again, with the steps and inputs that have
// brought them into service: what was approved then, and no more. A node is refused that is not
// accepted, on hold or in quarantine, on which a system runs, or for which the files ask for something
// else now. Nothing is erased, and no other node takes part. Nothing is changed in the state, and nobody
// is asked but the SSH ports of the nodes.
func (s *Site) PlanRestart(ctx context.Context, r state.Reader, nodes []string, now time.Time) (x Restart, err error) {
	x.Refused = map[string]string{}
	known, err := state.ReadNodes(ctx, r)
	if err != nil {
		return x, err
	}
	for _, name := range nodes {
		n, here := s.Inv.Node(name)
		if why := refuseRestart(n, here, known[name]); why != "" {
			x.Refused[name] = why
		} else {
			x.Nodes = append(x.Nodes, name)
		}
	}
	if err := x.refuseEdited(ctx, s, r, now); err != nil {
		return x, err
	}
	if x.refuseRunning(ctx, s.observer()); len(x.Nodes) == 0 {
		return x, nil
	}
	made, err := s.planAlone(ctx, r, PlanOptions{Replace: x.Nodes, Retest: x.Nodes, Targets: x.Nodes, Now: now})
	if err != nil {
		return x, err
	}
	p := made.plan
	if why := refuseRestartPlan(p, x.Nodes); why != "" {
		for _, n := range x.Nodes {
			x.Refused[n] = why
		}
		x.Nodes = nil
		return x, nil
	}
	handover.SetDrainOptions(p, handover.DrainOptions{Wait: restartDrain})
	p.Sum, err = p.Digest()
	x.Plan = p
	x.request = rebuild.Request{Nodes: x.Nodes, Reason: "it booted again, and its system was in memory", By: "serve", At: now}
	return x, err
}

// planAlone plans without asking anybody.
func (s *Site) planAlone(ctx context.Context, r state.Reader, o PlanOptions) (*planning, error) {
	o.Offline = true
	p, err := s.plan(ctx, r, o)
	if err == nil && p.diags.HasErrors() {
		err = errkind.New(errkind.Invalid, "the site cannot be planned as it stands: %w", p.diags)
	}
	return p, err
}

// refuseRestart is why a node that boots is not started again by itself; "": it may be.
func refuseRestart(n *inventory.Node, here bool, st state.Node) string {
	switch {
	case !here || !n.Diskless():
		return "its system is not kept in memory"
	case st.Hold != nil:
		return "it is on hold"
	case st.Quarantine != nil || st.Doubt != "":
		return "it is in quarantine"
	case !st.Accepted:
		return "it was never accepted, or a change of it did not end well"
	}
	return ""
}

// refuseEdited takes out the nodes for which the files ask for something that was not approved.
func (x *Restart) refuseEdited(ctx context.Context, s *Site, r state.Reader, now time.Time) error {
	if len(x.Nodes) == 0 {
		return nil
	}
	p, err := s.planAlone(ctx, r, PlanOptions{Targets: x.Nodes, Now: now})
	if err != nil {
		return err
	}
	for i := range p.plan.Steps {
		st := &p.plan.Steps[i]
		text := fmt.Sprintf("the site's files ask for more than what it had: %s (%s)", st.ID, st.Title)
		for _, n := range x.Nodes {
			if x.Refused[n] == "" && (st.Subject.Kind != subject.Node || st.Subject.Name == n) {
				x.Refused[n] = text
			}
		}
	}
	for _, n := range x.Nodes {
		if x.Refused[n] == "" && p.edits.Has(n) {
			x.Refused[n] = "the site's files have other host settings than it had"
		}
	}
	x.leaveOut()
	return nil
}

// refuseRunning takes out the nodes on which a system runs: whoever can use one, also without its
// administrator's rights, can fetch its boot script, and a system may have come from a disk.
func (x *Restart) refuseRunning(ctx context.Context, ob observe.Observer) {
	runs := make([]string, len(x.Nodes))
	var wg sync.WaitGroup
	for i, name := range x.Nodes {
		n, _ := ob.Inv.Node(name)
		wg.Go(func() { runs[i] = ob.Banner(ctx, n) })
	}
	wg.Wait()
	for i, name := range x.Nodes {
		if runs[i] != "" {
			x.Refused[name] = "a system runs on it: " + runs[i]
		}
	}
	x.leaveOut()
}

// leaveOut takes the nodes that are refused out of those that are started.
func (x *Restart) leaveOut() {
	x.Nodes = slices.DeleteFunc(x.Nodes, func(n string) bool { return x.Refused[n] != "" })
}

// refuseRestartPlan is why a plan is not one that may be done without being asked for.
func refuseRestartPlan(p *plan.Plan, nodes []string) string {
	if len(p.Refusals) > 0 {
		return p.Refusals[0].Cause
	}
	for i := range p.Steps {
		switch st := &p.Steps[i]; {
		case st.May.Has(plan.Erase):
			return fmt.Sprintf("%s would erase %s", st.ID, st.Erases)
		case st.Subject.Kind == subject.Node && !slices.Contains(nodes, st.Subject.Name):
			return fmt.Sprintf("%s is of another node", st.ID)
		case st.Group != nil && slices.ContainsFunc(st.Group.Members, func(m subject.ID) bool {
			return m.Kind == subject.Node && !slices.Contains(nodes, m.Name)
		}) && st.May.Has(plan.Load):
			return fmt.Sprintf("%s would load other nodes", st.ID)
		}
	}
	return ""
}

// Approve makes it durable that the nodes are started again, and returns the approval that the run
// is recorded with.
func (x *Restart) Approve(ctx context.Context, store state.Store, fence state.Fence, budget int) (*state.Approval, error) {
	if err := rebuild.Record(ctx, store, fence, &x.request, x.Plan); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return &state.Approval{By: x.request.By, Host: host, At: x.request.At.UTC(), How: state.ByRecord, MaxErase: &budget, Sum: x.Plan.Sum}, nil
}
