// SPDX-License-Identifier: Apache-2.0

// Package handover is the stage that gives accepted nodes to a scheduler, and
// takes them back before they are changed. What a kind of scheduler
// wants is its own package's business: handover/slurm, handover/command.
package handover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/validate/accept"
	"github.com/ironrail/ironrail/validate/result"
)

// StageName is the name of the stage in plans.
const StageName = "handover"

// hardware is learned by the install stage in the ramdisk.
const hardware = fact.Name[wire.Hardware]("node.hardware")

// NodeStatus is where a node stands now.
type NodeStatus struct {
	InService  bool      // accepted, and neither quarantined nor held
	Served     bool      // accepted or adopted, whatever is the matter with it now
	AcceptedAt time.Time // of the last acceptance; zero: never, or adopted
	Reason     string    // why it is not in service, in a few words
}

// NodeStatuses tells where nodes stand. It is asked while a step runs, and answers
// from the state of that moment. It is safe for concurrent use.
type NodeStatuses interface {
	NodeStatus(ctx context.Context, node string) (NodeStatus, error)
	// Changed returns the nodes of since that something was done to after that time:
	// power, configuration, firmware or disks, but no test and no drain.
	Changed(ctx context.Context, since map[string]time.Time) (map[string]bool, error)
}

// Member is a node of a handover as its kind sees it.
type Member struct {
	Node       *inventory.Node
	InService  bool
	Known      bool          // it was accepted at some time, so the scheduler may know it
	AcceptedAt time.Time     // of the last acceptance; names one life of the node
	Reason     string        // why it is not in service
	Hardware   wire.Hardware // as inspected; zero when it was never
}

// Target is one handover with all nodes that belong to it, by name.
type Target struct {
	*inventory.Handover
	Site      string
	Inventory *inventory.Inventory // for what is between the members; read-only
	Members   []Member
}

// Kind is one kind of scheduler. Check and Inputs are pure; the others may reach
// the world and block. All are safe for concurrent use for different handovers.
type Kind interface {
	// Check finds what cannot be handed over.
	Check(h *inventory.Handover, nodes []*inventory.Node) hcl.Diagnostics
	// Inputs declares what decides the result beside the nodes that are accepted.
	Inputs(inv *inventory.Inventory, h *inventory.Handover, nodes []*inventory.Node) []plan.Input
	// Observe looks whether the scheduler has what Apply gives it.
	Observe(ctx context.Context, run stage.Run, t Target) (stage.Observation, error)
	// Apply gives the scheduler the members in service, and takes away those that
	// are known and not in service. Doing it twice is harmless.
	Apply(ctx context.Context, run stage.Run, t Target) error
	// Drain takes the named member out, and returns when no work is on it any
	// more, as far as the kind can know. The member is not in service in t.
	Drain(ctx context.Context, run stage.Run, t Target, node string) error
	// DrainLimit bounds Drain.
	DrainLimit(h *inventory.Handover) time.Duration
}

// Stage plans and applies the handovers of a site.
type Stage struct {
	inv      *inventory.Inventory
	kinds    map[string]Kind
	statuses NodeStatuses
	orphaned []*inventory.Node // in no file any more
	rounds   *rounds           // of questions which jobs run
	listing  chan struct{}     // held while the lists without a drained node are written: the last to be written is without all of them
}

// New returns the stage. kinds are the kinds that can be applied, by name.
func New(inv *inventory.Inventory, kinds map[string]Kind, statuses NodeStatuses) *Stage {
	return &Stage{inv: inv, kinds: kinds, statuses: statuses, rounds: &rounds{open: map[string]*round{}}, listing: make(chan struct{}, 1)}
}

// Keeping adds nodes that are in no file any more and that nobody decommissions:
// those that serve stay with their scheduler, which must not lose a node under its
// jobs.
func (s *Stage) Keeping(nodes []*inventory.Node) *Stage {
	s.orphaned = nodes
	return s
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return StageName }

// Version implements stage.Stage.
func (s *Stage) Version() int { return 1 }

// StepID returns the step that hands nodes over.
func StepID(handover string) plan.StepID { return plan.StepID("site/handover." + handover) }

// DrainID returns the step that takes a node out before it is erased. The install
// stage, which needs it, has its name.
func DrainID(node string) plan.StepID { return install.DrainStep(node) }

// Plan implements stage.Stage. The drains are planned only when their node is in
// use and is about to be changed.
func (s *Stage) Plan(view stage.View) ([]plan.Step, hcl.Diagnostics) {
	steps := make([]plan.Step, 0, len(s.inv.Nodes)+len(s.inv.Handovers))
	var diags hcl.Diagnostics
	for _, h := range s.inv.Handovers {
		nodes := s.members(h)
		if len(nodes) == 0 {
			// What the last node left behind is taken away as well.
			if s.kinds[h.Kind] != nil && (h.Export || len(s.leaving(h)) > 0 || len(forgottenInputs(view, h)) > 0) {
				steps = append(steps, s.step(h, nil, view))
			}
			continue
		}
		found := s.check(h, nodes)
		diags = append(diags, found...)
		if !found.HasErrors() {
			steps = append(steps, s.step(h, nodes, view))
		}
	}
	for _, n := range s.inv.Nodes {
		steps = append(steps, s.drainStep(n))
	}
	return steps, diags
}

// Check implements stage.Checker.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	for _, h := range s.inv.Handovers {
		if nodes := s.members(h); len(nodes) > 0 {
			diags = append(diags, s.check(h, nodes)...)
		}
	}
	return diags
}

func (s *Stage) members(h *inventory.Handover) []*inventory.Node {
	var list []*inventory.Node
	for _, n := range s.inv.Nodes {
		if (n.Handover == h || slices.Contains(n.Exports, h)) && !n.Retired {
			list = append(list, n)
		}
	}
	return list
}

// staying are the nodes of no file that a handover keeps. The inventory may be a copy
// of the one that they were made with.
func (s *Stage) staying(h *inventory.Handover) []*inventory.Node {
	var list []*inventory.Node
	for _, n := range s.orphaned {
		if n.Handover.Name == h.Name {
			list = append(list, n)
		}
	}
	return list
}

// byName joins lists in the order of the names, as an inventory has its nodes.
func byName(lists ...[]*inventory.Node) []*inventory.Node {
	all := slices.Concat(lists...)
	slices.SortStableFunc(all, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// leaving are the nodes that a handover has for the last time.
func (s *Stage) leaving(h *inventory.Handover) []*inventory.Node {
	var list []*inventory.Node
	for _, n := range s.inv.Nodes {
		if n.Handover == h && n.Retired {
			list = append(list, n)
		}
	}
	return list
}

func (s *Stage) check(h *inventory.Handover, nodes []*inventory.Node) hcl.Diagnostics {
	if k := s.kinds[h.Kind]; k != nil {
		return k.Check(h, nodes)
	}
	use := fmt.Sprintf(", and %d nodes go to it", len(nodes))
	return stage.DiagnoseUnsupportedKind("Handover", h.Name, h.Kind, s.kinds, use, "", h.Decl)
}

func (s *Stage) step(h *inventory.Handover, nodes []*inventory.Node, view stage.View) plan.Step {
	st := plan.Step{ID: StepID(h.Name), Stage: StageName, Action: plan.Create, Subject: SubjectOf(h.Name),
		Title: fmt.Sprintf("hand the accepted nodes to %s %s", h.Kind, h.Name), May: plan.Effects(plan.Config), Decl: stage.Source(h.Decl), Version: 1,
		Deadline: plan.Budget{Limit: 30 * time.Minute, Expected: 2 * time.Second}, Inputs: s.kinds[h.Kind].Inputs(s.inv, h, byName(nodes, s.staying(h))), Barrier: true,
		Needs: make([]plan.Need, 0, 3*len(nodes))}
	st.Inputs = append(st.Inputs, forgottenInputs(view, h)...)
	since := listDrained(view, nodes)
	if len(since) > 0 {
		st.Params = map[string]plan.Value{leftParam: plan.Literal(since)}
	}
	for _, n := range nodes {
		_, out := since[n.Name]
		// A repeated acceptance changes nothing for a scheduler; a first one does,
		// and so does a node that was drained to be changed.
		st.Needs = append(st.Needs, plan.Need{Step: DrainID(n.Name), On: plan.Settled, Triggers: true},
			plan.Need{Step: accept.ID(n.Name), On: plan.Settled, TriggersIfNew: true, Triggers: out})
		if n.Image != nil {
			st.Needs = append(st.Needs, plan.Need{Step: install.StepOf(n.Name, install.Boot), On: plan.Settled, Triggers: true})
		}
	}
	for _, n := range s.leaving(h) {
		st.Needs = append(st.Needs, plan.Need{Step: install.StepOf(n.Name, install.Off), On: plan.Settled, Triggers: true})
	}
	return st
}

// drainStep is there for every node, so that a plan can always order it before
// what changes the node; without a scheduler it has nothing to do.
func (s *Stage) drainStep(n *inventory.Node) plan.Step {
	st := plan.Step{ID: DrainID(n.Name), Stage: StageName, Action: plan.Change, Subject: subject.OfNode(n.Name), Title: "take out of service",
		May: plan.Effects(plan.Config), Only: plan.WhenDisturbed, Decl: stage.Source(n.Decl), Version: 1, DepthKey: n.Name,
		Yields: []fact.Key{DrainedFact.Of(subject.OfNode(n.Name))}, Deadline: plan.Budget{Limit: time.Minute}}
	if n.Image != nil || n.Retired {
		// A node whose BMC cannot be used is not taken out of service for nothing.
		st.Needs = []plan.Need{{Step: plan.StepID(n.Name + "/bmc"), On: plan.Success}}
	}
	if n.Handover == nil && len(n.Exports) > 0 {
		st.Title = "take off the lists of nodes in service"
	}
	if n.Handover != nil && s.kinds[n.Handover.Kind] != nil {
		st.Title = "drain from " + n.Handover.Kind + " " + n.Handover.Name
		st.Deadline.Limit = s.kinds[n.Handover.Kind].DrainLimit(n.Handover) + time.Minute
	}
	return st
}

// Observe implements stage.Stage. A drain is always done: it is planned only
// when its node is about to be changed.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	if st.Subject.Kind == subject.Node {
		return stage.Observation{State: stage.Unknown}, nil
	}
	h, err := s.find(st)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	t, err := s.target(ctx, run, h, "", endedDrains(run, st, s.members(h)))
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	return s.kinds[h.Kind].Observe(ctx, run, t)
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	if st.Subject.Kind == subject.Node {
		o, err := optionsOf(st)
		if err != nil {
			return err
		}
		return s.Drain(ctx, run, st.Subject.Name, o)
	}
	h, err := s.find(st)
	if err != nil {
		return err
	}
	ends := endedDrains(run, st, s.members(h))
	t, err := s.target(ctx, run, h, "", ends)
	if err != nil {
		return err
	}
	if err := s.kinds[h.Kind].Apply(ctx, run, t); err != nil {
		return err
	}
	var in []string
	for _, m := range t.Members {
		// Who has its work says that a node is in service again, else its first list does.
		own := m.Node.Handover == nil || m.Node.Handover.Name == h.Name
		if own && m.InService && ends[m.Node.Name] && readDrained(run, m.Node.Name).Out {
			in = append(in, m.Node.Name)
		}
	}
	return markDrained(ctx, run, false, in...)
}

// Drain takes a node out of its scheduler. It is what a drain step does. Where jobs
// run, or may run, it fails with a stage.BusyError and the node is as it was.
func (s *Stage) Drain(ctx context.Context, run stage.Run, node string, o DrainOptions) error {
	n, ok := s.inv.Node(node)
	if !ok {
		return errkind.New(errkind.NotFound, "node %s is not in this inventory", node)
	}
	if n.Handover == nil {
		if len(n.Exports) == 0 {
			return nil
		}
		return errors.Join(markDrained(ctx, run, true, node), s.takeOff(ctx, run, n))
	}
	k := s.kinds[n.Handover.Kind]
	if k == nil {
		return errkind.New(errkind.Unsupported, "handover kind %q is not supported, so that node %s cannot be drained", n.Handover.Kind, node)
	}
	t, err := s.target(ctx, run, n.Handover, node, nil)
	if err != nil {
		return err
	}
	if asks, ok := k.(Scheduler); ok {
		if err := s.empty(ctx, run, asks, t, node, o); err != nil {
			return err
		}
	}
	if err := markDrained(ctx, run, true, node); err != nil {
		return err
	}
	if err := k.Drain(ctx, run, t, node); err != nil {
		return err
	}
	return s.takeOff(ctx, run, n)
}

// takeOff has the exports that list a node write their files without it. The node was
// marked as drained before. Drains run beside each other; this one waits for its turn.
func (s *Stage) takeOff(ctx context.Context, run stage.Run, n *inventory.Node) error {
	if len(n.Exports) == 0 {
		return nil
	}
	select {
	case s.listing <- struct{}{}:
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for _, h := range n.Exports {
		k := s.kinds[h.Kind]
		if k == nil {
			continue
		}
		t, err := s.target(ctx, run, h, n.Name, nil)
		if err != nil {
			return err
		}
		if err := k.Drain(ctx, run, t, n.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stage) find(st plan.Step) (*inventory.Handover, error) {
	for _, h := range s.inv.Handovers {
		if StepID(h.Name) == st.ID.Base() && s.kinds[h.Kind] != nil {
			return h, nil
		}
	}
	return nil, errkind.New(errkind.NotFound, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}

// target gathers what is known of the members, among them nodes that leave the site,
// or its files only, and are not drained yet: where a drain failed there may be jobs, and the scheduler
// must not lose the node under them. The node that leaves, if any, is
// out of service from here on, whatever the state says yet; so are those that
// were drained, but for the ones whose drain ends now. It does not end for a node
// that was changed and not accepted since.
func (s *Stage) target(ctx context.Context, run stage.Run, h *inventory.Handover, leaves string, ends map[string]bool) (Target, error) {
	t := Target{Handover: h, Site: s.inv.Site.Name, Inventory: s.inv}
	doubtful := map[string]time.Time{}
	for _, n := range byName(s.members(h), s.leaving(h), s.staying(h)) {
		st, err := s.statuses.NodeStatus(ctx, n.Name)
		if err != nil {
			return t, fmt.Errorf("status of node %s: %w", n.Name, err)
		}
		d := readDrained(run, n.Name)
		if n.Retired && n.Name != leaves && (d.Out || !st.Served) {
			continue
		}
		m := Member{Node: n, InService: st.InService, Reason: st.Reason}
		switch {
		case n.Name == leaves || m.InService && !ends[n.Name] && d.Out:
			m.InService, m.Reason = false, "is being changed"
		case m.InService && d.Out && !st.AcceptedAt.After(d.At):
			doubtful[n.Name] = d.At
		}
		if err := m.readFacts(run); err != nil {
			return t, err
		}
		t.Members = append(t.Members, m)
	}
	return t, s.keepOut(ctx, t.Members, doubtful)
}

// readFacts fills in when a member was accepted and what hardware it has, where that
// is known.
func (m *Member) readFacts(run stage.Run) error {
	node := subject.OfNode(m.Node.Name)
	if f, ok := run.Fact(result.AcceptedFact.Of(node)); ok {
		a, err := result.AcceptedFact.Get(f)
		if err != nil {
			return err
		}
		m.Known, m.AcceptedAt = true, a.At
	}
	if f, ok := run.Fact(hardware.Of(node)); ok {
		hw, err := hardware.Get(f)
		if err != nil {
			return err
		}
		m.Hardware = hw
	}
	return nil
}

// keepOut takes those members out of service that were changed since they were
// drained. The state calls them accepted, and what was accepted is not there any
// more: the run ended before their tests, or these could not be judged.
func (s *Stage) keepOut(ctx context.Context, members []Member, drainedAt map[string]time.Time) error {
	if len(drainedAt) == 0 {
		return nil
	}
	changed, err := s.statuses.Changed(ctx, drainedAt)
	if err != nil {
		return fmt.Errorf("what was done to drained nodes: %w", err)
	}
	for i := range members {
		if m := &members[i]; changed[m.Node.Name] {
			m.InService, m.Reason = false, "was changed, and is not accepted since"
		}
	}
	return nil
}
