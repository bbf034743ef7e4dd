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

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/errkind"
	"github.com/ironrail/ironrail/provision/fact"
	"github.com/ironrail/ironrail/provision/plan"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/subject"
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

// Plan implements stage.Stage.
func (s *Stage) Plan(stage.View) ([]plan.Step, hcl.Diagnostics) {
	members := map[*inventory.Fabric][]*inventory.Node{}
	var order []*inventory.Fabric
	for _, n := range s.inv.Nodes {
		for _, f := range Of(n) {
			if members[f] == nil {
				order = append(order, f)
			}
			members[f] = append(members[f], n)
		}
	}
	var steps []plan.Step
	var diags hcl.Diagnostics
	for _, f := range order {
		found := s.check(f, members[f])
		diags = append(diags, found...)
		if found.HasErrors() {
			continue
		}
		for _, n := range members[f] {
			steps = append(steps, s.step(f, n))
		}
	}
	return steps, diags
}

func (s *Stage) check(f *inventory.Fabric, nodes []*inventory.Node) hcl.Diagnostics {
	if k := s.kinds[f.Kind]; k != nil {
		return k.Check(f, nodes)
	}
	use := fmt.Sprintf(", and %d nodes have ports on it", len(nodes))
	return stage.NoSuchKind("Fabric", f.Name, f.Kind, s.kinds, use, "", f.Decl)
}

func (s *Stage) step(f *inventory.Fabric, n *inventory.Node) plan.Step {
	return plan.Step{
		ID: StepID(n.Name, f.Name), Stage: StageName, Action: plan.Create,
		Subject:  subject.OfNode(n.Name),
		Title:    fmt.Sprintf("bring up fabric %s", f.Name),
		Needs:    needs(n),
		Yields:   []fact.Key{Ports(f.Name).Of(subject.OfNode(n.Name))},
		May:      plan.Effects(plan.Config),
		Decl:     stage.Source(f.Decl),
		Deadline: plan.Budget{Limit: 5 * time.Minute, Expected: 10 * time.Second},
		Inputs:   s.kinds[f.Kind].Inputs(f, n),
		Version:  1,
		DepthKey: n.Name,
		Params:   map[string]plan.Value{"fabric": plan.Literal(f.Name)},
	}
}

// needs are all the drivers of the node, or its first boot when it has none.
func needs(n *inventory.Node) []plan.Need {
	var list []plan.Need
	for _, d := range n.Drivers {
		list = append(list, plan.Need{Step: plan.StepID(n.Name + "/drivers." + d.Name), On: plan.Success, Renews: true})
	}
	if len(list) == 0 {
		list = []plan.Need{{Step: plan.StepID(n.Name + "/install.boot"), On: plan.Success, Renews: true}}
	}
	return list
}

// Observe implements stage.Stage.
func (s *Stage) Observe(ctx context.Context, run stage.Run, st plan.Step) (stage.Observation, error) {
	f, n, err := s.find(st)
	if err != nil {
		return stage.Observation{State: stage.Unknown}, err
	}
	o, ports, err := s.kinds[f.Kind].Observe(ctx, run, f, n)
	if err != nil || o.State != stage.Conforms {
		return o, err
	}
	return o, learn(ctx, run, f, n, ports)
}

// Apply implements stage.Stage.
func (s *Stage) Apply(ctx context.Context, run stage.Run, st plan.Step) error {
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
	return learn(ctx, run, f, n, ports)
}

func learn(ctx context.Context, run stage.Run, f *inventory.Fabric, n *inventory.Node, ports []Port) error {
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
	}
	return nil, nil, errkind.New(errkind.Mismatch, "step %s is not in this inventory", st.ID).Do("Plan again: the site's files changed after the plan was made.")
}
