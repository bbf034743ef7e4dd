// SPDX-License-Identifier: Apache-2.0

// Package fabric is the stage that brings up the high-speed networks of nodes:
// one step for each node and fabric. What a kind of fabric does is its own
// package's business, such as fabric/roce.
package fabric

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
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

// StageName is the name of the stage in plans.
const StageName = "fabric"

// Port is one port of a node on a fabric, as it was found to be. It is all that
// a test needs to send over it.
type Port struct {
	Rail      int          `json:"rail"`
	Netdev    string       `json:"netdev,omitempty"`
	Device    string       `json:"device"`              // RDMA device, such as mlx5_0 or rxe0
	GIDIndex  int          `json:"gid_index,omitempty"` // of GID in the device's table
	GID       string       `json:"gid,omitempty"`
	MTU       int          `json:"mtu,omitempty"`        // bytes of IP
	ActiveMTU int          `json:"active_mtu,omitempty"` // bytes of RDMA payload
	Address   netip.Prefix `json:"address,omitzero"`
}

// Ports is the fact of a node's ports on the named fabric, by rail.
func Ports(fabric string) fact.Name[[]Port] { return fact.Name[[]Port]("fabric.ports." + fabric) }

// Kind is one kind of fabric. Apply and Observe reach the world and may block;
// all methods are safe for concurrent use.
type Kind interface {
	// Check finds what cannot be brought up of f on the nodes that are on it. It
	// is pure.
	Check(f *inventory.Fabric, nodes []*inventory.Node) hcl.Diagnostics
	// Inputs declares what decides the configuration of n. It is pure and asked
	// only where Check found no error.
	Inputs(f *inventory.Fabric, n *inventory.Node) []plan.Input
	// Apply configures n. Doing it twice is harmless.
	Apply(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) ([]Port, error)
	// Observe looks whether n is configured, and returns its ports when it is.
	Observe(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node) (stage.Observation, []Port, error)
}

// Staged is a Kind with further steps: work on the fabric as a whole, such as its
// subnet manager's configuration, and what that must know of each node before.
type Staged interface {
	Kind
	// Steps are the further ones, with their ids, subjects, needs and facts; the
	// stage fills in the rest. needs are those of a node's own step. It is pure.
	Steps(v stage.View, f *inventory.Fabric, nodes []*inventory.Node, needs func(*inventory.Node) []plan.Need) []plan.Step
	// Needs are the further steps that the step of a node waits for. It is pure.
	Needs(f *inventory.Fabric, n *inventory.Node) []plan.Need
	// ObserveStep and ApplyStep are Observe and Apply of a further step.
	ObserveStep(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) (stage.Observation, error)
	ApplyStep(ctx context.Context, run stage.Run, f *inventory.Fabric, st plan.Step) error
}

// Portless is a Kind whose fabrics have nodes that no NIC puts on them.
type Portless interface {
	Kind
	// Members are the nodes of a fabric. It is pure.
	Members(f *inventory.Fabric) []*inventory.Node
}

// PartID returns a further step of a fabric, about a node or the whole site
// ("site").
func PartID(of, fabric, part string) plan.StepID { return StepID(of, fabric) + plan.StepID("."+part) }

// Stage plans and applies the fabrics of a site.
type Stage struct {
	inv   *inventory.Inventory
	kinds map[string]Kind
}

// New returns the stage. kinds are the kinds that can be applied, by name.
func New(inv *inventory.Inventory, kinds map[string]Kind) *Stage {
	return &Stage{inv: inv, kinds: kinds}
}

// Name implements stage.Stage.
func (s *Stage) Name() string { return StageName }

// Version implements stage.Stage.
func (s *Stage) Version() int { return 1 }

// StepID returns the step that brings a fabric up on a node.
func StepID(node, fabric string) plan.StepID { return plan.StepID(node + "/fabric." + fabric) }

// Of lists the fabrics that a node's hardware has ports on, by name.
func Of(n *inventory.Node) []*inventory.Fabric {
	var list []*inventory.Fabric
	if n.Hardware == nil {
		return nil
	}
	for _, nic := range n.Hardware.NICs {
		if nic.Fabric != nil && !slices.Contains(list, nic.Fabric) {
			list = append(list, nic.Fabric)
		}
	}
	slices.SortFunc(list, func(a, b *inventory.Fabric) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// members are the nodes of each fabric that has some, and those fabrics in order.
func (s *Stage) members() (order []*inventory.Fabric, members map[*inventory.Fabric][]*inventory.Node) {
	members = map[*inventory.Fabric][]*inventory.Node{}
	for _, n := range s.inv.Nodes {
		for _, f := range Of(n) {
			if members[f] == nil {
				order = append(order, f)
			}
			members[f] = append(members[f], n)
		}
	}
	for _, f := range s.inv.Fabrics {
		if k, ok := s.kinds[f.Kind].(Portless); ok && members[f] == nil {
			if list := k.Members(f); len(list) > 0 {
				order, members[f] = append(order, f), list
			}
		}
	}
	return order, members
}

// Check implements stage.Checker.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	order, members := s.members()
	for _, f := range order {
		diags = append(diags, s.check(f, members[f])...)
	}
	return diags
}

// Plan implements stage.Stage.
func (s *Stage) Plan(v stage.View) ([]plan.Step, hcl.Diagnostics) {
	order, members := s.members()
	all := 0
	for _, f := range order {
		all += len(members[f])
	}
	steps := make([]plan.Step, 0, all)
	var diags hcl.Diagnostics
	for _, f := range order {
		found := s.check(f, members[f])
		diags = append(diags, found...)
		if found.HasErrors() {
			continue
		}
		same := plan.Step{Stage: StageName, Action: plan.Create, Title: "bring up fabric " + f.Name, May: plan.Effects(plan.Config),
			Decl: stage.Source(f.Decl), Deadline: plan.Budget{Limit: 5 * time.Minute, Expected: 10 * time.Second}, Version: 1,
			Params: map[string]plan.Value{"fabric": plan.Literal(f.Name)}}
		steps = append(steps, s.further(v, f, members[f])...)
		for _, n := range members[f] {
			steps = append(steps, same)
			s.fill(&steps[len(steps)-1], f, n)
		}
	}
	return steps, diags
}

func (s *Stage) check(f *inventory.Fabric, nodes []*inventory.Node) hcl.Diagnostics {
	if k := s.kinds[f.Kind]; k != nil {
		return k.Check(f, nodes)
	}
	use := fmt.Sprintf(", and %d nodes have ports on it", len(nodes))
	return stage.DiagnoseUnsupportedKind("Fabric", f.Name, f.Kind, s.kinds, use, "", f.Decl)
}

// fill makes what the steps of a fabric have in common the step of one node.
func (s *Stage) fill(st *plan.Step, f *inventory.Fabric, n *inventory.Node) {
	st.ID, st.Subject, st.DepthKey = StepID(n.Name, f.Name), subject.OfNode(n.Name), n.Name
	st.Needs, st.Yields = driverNeeds(n), []fact.Key{Ports(f.Name).Of(st.Subject)}
	st.Inputs = s.kinds[f.Kind].Inputs(f, n)
	if k, ok := s.kinds[f.Kind].(Staged); ok {
		st.Needs = append(st.Needs, k.Needs(f, n)...)
	}
}

// further are the steps that a kind has beside those of the nodes.
func (s *Stage) further(v stage.View, f *inventory.Fabric, nodes []*inventory.Node) []plan.Step {
	k, ok := s.kinds[f.Kind].(Staged)
	if !ok {
		return nil
	}
	steps := k.Steps(v, f, nodes, driverNeeds)
	for i := range steps {
		st := &steps[i]
		st.Stage, st.Decl, st.Version = StageName, stage.Source(f.Decl), s.Version()
		st.Params = map[string]plan.Value{"fabric": plan.Literal(f.Name)}
		if st.Subject.Kind == subject.Node {
			st.DepthKey = st.Subject.Name
		}
	}
	return steps
}

// furtherOf is the kind and the fabric of a further step.
func (s *Stage) furtherOf(st plan.Step) (Staged, *inventory.Fabric, bool) {
	for _, f := range s.inv.Fabrics {
		k, ok := s.kinds[f.Kind].(Staged)
		if _, part, found := strings.Cut(string(st.ID), "/fabric."+f.Name+"."); ok && found && !strings.Contains(part, ".") {
			return k, f, true
		}
	}
	return nil, nil, false
}

// driverNeeds are all the drivers of the node, or its first boot when it has none.
func driverNeeds(n *inventory.Node) []plan.Need {
	list := make([]plan.Need, 0, max(1, len(n.Drivers)))
	for _, d := range n.Drivers {
		list = append(list, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success, Triggers: true})
	}
	if len(list) == 0 {
		list = append(list, plan.Need{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Triggers: true})
	}
	return list
}

// Observe implements stage.Stage.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	if k, f, ok := s.furtherOf(st); ok {
		return k.ObserveStep(ctx, run, f, st)
	}
	f, n, err := s.find(st)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	o, ports, err := s.kinds[f.Kind].Observe(ctx, run, f, n)
	if err != nil || o.State != stage.Conforms {
		return o, err
	}
	return o, learnPorts(ctx, run, f, n, ports)
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
	if k, f, ok := s.furtherOf(st); ok {
		return k.ApplyStep(ctx, run, f, st)
	}
	f, n, err := s.find(st)
	if err != nil {
		return err
	}
	var ports []Port
	err = run.Effect(ctx, stage.Effect{
		// Idempotent, so that each attempt is an effect of its own.
		Key:  fmt.Sprintf("%s/apply-%d", st.ID, run.Clock().Now().UnixNano()),
		Kind: plan.Config, Repeatable: true,
		Does: fmt.Sprintf("configure fabric %s on %s", f.Name, n.Name),
		Do: func(ctx context.Context) (err error) {
			ports, err = s.kinds[f.Kind].Apply(ctx, run, f, n)
			return err
		},
	})
	if err != nil {
		return err
	}
	return learnPorts(ctx, run, f, n, ports)
}

func learnPorts(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node, ports []Port) error {
	fc, err := Ports(f.Name).New(subject.OfNode(n.Name), ports, "")
	if err != nil {
		return err
	}
	return run.Learn(ctx, fc)
}

func (s *Stage) find(st plan.Step) (*inventory.Fabric, *inventory.Node, error) {
	if n, ok := s.inv.Node(st.Subject.Name); ok {
		for _, f := range Of(n) {
			if StepID(n.Name, f.Name) == st.ID && s.kinds[f.Kind] != nil {
				return f, n, nil
			}
		}
		for _, f := range s.inv.Fabrics {
			if k, ok := s.kinds[f.Kind].(Portless); ok && StepID(n.Name, f.Name) == st.ID && slices.Contains(k.Members(f), n) {
				return f, n, nil
			}
		}
	}
	return nil, nil, errkind.New(errkind.NotFound, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}
