// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/engine/apply"
	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/validate"
	"github.com/ironrail/ironrail/validate/result"
	"github.com/ironrail/ironrail/validate/uniform"
)

// run is the tests of hosts: those of package validate, on a site that exists in
// memory alone.
type run struct {
	*session
	inv      *inventory.Inventory
	store    *state.Memory
	fence    state.Fence
	stage    *validate.Stage
	plan     *plan.Plan
	evidence string
	res      apply.Result               // how it ended
	parts    map[string][]install.Fault // what a host is not made of, by host
	why      map[string]string          // why there is no reference for a host
	unloaded map[string]bool            // hosts whose GPUs are not measured
	busy     map[string]string          // hosts that were not loaded though it was asked for, and why
	skipped  []skip                     // what was not run on a host, and why
}

// skip is what was not run on a host.
type skip struct{ host, what string }

// newRun makes the site in memory and plans the tests on it.
func newRun(ctx context.Context, s *session, want *Expected, evidence string) (*run, error) {
	r := &run{session: s, inv: &inventory.Inventory{Fabrics: want.inv.Fabrics, Hardware: want.inv.Hardware}, store: state.NewMemory(), evidence: evidence,
		parts: map[string][]install.Fault{}, why: map[string]string{}, unloaded: map[string]bool{}, busy: map[string]string{}}
	r.inv.Site.Name = "hosts"
	var err error
	if r.fence, err = r.store.Claim(ctx, "ironrail test"); err != nil {
		return nil, err
	}
	var facts []fact.Fact
	for _, c := range s.cohorts {
		learned, err := r.add(c, want)
		if err != nil {
			return nil, err
		}
		facts = append(facts, learned...)
	}
	slices.SortFunc(r.inv.Nodes, func(a, b *inventory.Node) int { return strings.Compare(a.Name, b.Name) })
	if err := r.learn(ctx, facts); err != nil {
		return nil, err
	}
	r.stage = validate.New(r.inv, s.fleet)
	return r, r.makePlan(ctx)
}

// add adds a cohort to the site, and holds its hosts against their hardware block.
func (r *run) add(c cohort, want *Expected) (facts []fact.Fact, err error) {
	h := want.hardware(c)
	if h == nil {
		return nil, fmt.Errorf("hosts %s have no hardware block", strings.Join(c.names(), ", "))
	}
	role := &inventory.Role{Name: c.name, Hardware: h, Decl: h.Decl}
	r.inv.Roles = append(r.inv.Roles, role)
	with, without := r.validations(c, want)
	for _, s := range c.members {
		n := &inventory.Node{Name: s.name, Role: role, Hardware: h, Address: r.fleet.nodes[s.name].addr, Foreign: true, Validation: without, Decl: r.fleet.nodes[s.name].host.Decl}
		noLoad, noWrites := r.noLoad(s), r.noWrites(s, h)
		switch {
		case noWrites == "":
			n.Validation = with
		case r.Load && noLoad != "":
			r.busy[s.name] = noLoad
		case r.Load:
			r.skipped = append(r.skipped, skip{s.name, "transfers to and from other nodes were not measured: " + noWrites})
		}
		if noLoad != "" || h.GPUCount() == 0 {
			r.unloaded[s.name] = true
		}
		r.inv.Nodes = append(r.inv.Nodes, n)
		r.parts[s.name] = install.CompareHardware(n, s.hw)
		if c.why != "" {
			r.why[s.name] = c.why
		}
		of, err := factsOf(n, s, r.probes[s.name])
		if err != nil {
			return nil, err
		}
		facts = append(facts, of...)
	}
	if len(c.members) < fewest {
		return facts, nil
	}
	compared, err := uniform.Fact.New(result.OfGroup(c.name+"/parts"), uniform.Report{At: r.Now().UTC(), Role: c.name + " (parts)", Nodes: len(c.members), Rows: c.rows}, "")
	return append(facts, compared), err
}

// factsOf is what the stages of a site would have learned of a node.
func factsOf(n *inventory.Node, s survey, p probe) ([]fact.Fact, error) {
	me := subject.OfNode(n.Name)
	hw, err := install.HardwareFact.New(me, s.hw, "")
	if err != nil {
		return nil, err
	}
	system, err := install.SystemFact.New(me, install.System{Kernel: s.seen.Health.Kernel}, "")
	if err != nil {
		return nil, err
	}
	facts := []fact.Fact{hw, system}
	for _, f := range fabric.Of(n) {
		ports, err := fabric.Ports(f.Name).New(me, portsOn(n, f, s, p), "")
		if err != nil {
			return nil, err
		}
		facts = append(facts, ports)
	}
	return facts, nil
}

// portsOn are the ports of a node on a fabric, as it shows them.
func portsOn(n *inventory.Node, f *inventory.Fabric, s survey, with probe) []fabric.Port {
	list := []fabric.Port{}
	for _, nic := range n.Hardware.NICs {
		if nic.Fabric != f {
			continue
		}
		for _, p := range nic.Ports {
			for _, seen := range s.seen.Health.Ports {
				if strings.EqualFold(seen.PCI, p.PCI) {
					list = append(list, fabric.Port{Rail: p.Rail, Device: seen.Device, Netdev: netdevOf(s, seen), GIDIndex: with.gids[seen.Device]})
					break
				}
			}
		}
	}
	return list
}

// netdevOf is the network interface of an RDMA port.
func netdevOf(s survey, p wire.InfiniBandPort) string {
	for _, nic := range s.hw.NICs {
		if p.Netdev == "" && nic.PCI == p.PCI {
			return nic.Name
		}
	}
	return p.Netdev
}

// learn puts facts into the state in memory.
func (r *run) learn(ctx context.Context, facts []fact.Fact) error {
	var b state.Batch
	for _, f := range facts {
		p, err := state.PutOf(state.FactKey(f.Key), f)
		if err != nil {
			return err
		}
		b.Puts = append(b.Puts, p)
	}
	return state.AppendParts(ctx, r.store, r.fence, b.Split()...)
}

// makePlan takes of what the stage plans the steps that are for these hosts.
func (r *run) makePlan(ctx context.Context) error {
	prior, err := state.ReadPrior(ctx, r.store)
	if err != nil {
		return err
	}
	if prior.Facts, err = state.ReadFacts(ctx, r.store); err != nil {
		return err
	}
	steps, diags := r.stage.Plan(prior)
	if diags.HasErrors() {
		return diags
	}
	steps = slices.DeleteFunc(steps, r.leavesOut)
	there := map[plan.StepID]bool{}
	for _, st := range steps {
		there[st.ID] = true
	}
	for i := range steps { // there is no bring-up that they could wait for
		steps[i].Needs = slices.DeleteFunc(steps[i].Needs, func(n plan.Need) bool { return !there[n.Step] })
	}
	r.plan = &plan.Plan{Format: plan.Format, ID: "hosts-" + rand.Text()[:8], Lineage: r.store.Info().Lineage, Created: r.Now().UTC(), Site: r.inv.Site.Name, Steps: steps}
	return nil
}

// leavesOut reports whether a step loads hosts that are not loaded, or compares what they made
// of a load.
func (r *run) leavesOut(st plan.Step) bool {
	switch checkOf(st.ID) {
	case "bandwidth":
		return r.unloaded[st.Subject.Name]
	case "speed":
		return !r.Load || r.busy[st.Subject.Name] != ""
	case "speeds":
		return !r.Load
	}
	return false
}

// checkOf is the name of the check that a step is of.
func checkOf(id plan.StepID) string {
	_, check, _ := strings.Cut(string(id[strings.LastIndexByte(string(id), '/')+1:]), ".")
	return check
}

// apply runs the plan.
func (r *run) apply(ctx context.Context, bus *event.Bus) (apply.Result, error) {
	return apply.Run(ctx, apply.Config{Plan: r.plan, Stages: map[string]stage.Stage{r.stage.Name(): r.stage}, Store: r.store, Fence: r.fence, Bus: bus,
		Capacity: map[string]int{"test/": 1}, Parallel: parallel, EvidenceDir: r.evidence})
}
