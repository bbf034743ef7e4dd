// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/command"
	"github.com/ironrail/ironrail/provision/handover/kubernetes"
	"github.com/ironrail/ironrail/provision/handover/slurm"
	"github.com/ironrail/ironrail/provision/hook"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/overrides"
	"github.com/ironrail/ironrail/provision/reach"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/supply"
	"github.com/ironrail/ironrail/validate"
)

// world is what the stages of a run reach. The zero world reaches nothing: it is
// enough to plan with.
type world struct {
	bmc      func(ctx context.Context, node string) (oob.BMC, error)
	ask      func(node string) (*bmc.Handle, error) // as bmc, for what only some can tell; nil: none is asked
	install  install.World
	nodes    onnode.Nodes
	repos    manager.Repositories
	store    state.Reader
	feeds    *reach.Feeds                        // nil: PDUs are not asked
	accept   func(stage.Stage) stage.Stage       // around the stage that accepts nodes; nil: nothing
	inv      *inventory.Inventory                // the site's, or one that plans are made of
	subnets  func(fabric string) infiniband.Host // where a subnet manager runs; nil: nowhere
	switches switchos.Switches                   // nil: they cannot be reached
	links    []*roce.Links                       // addresses that were allocated; those of the site
}

// listens is the step in which a node hears its neighbours.
func listens(node string) plan.StepID { return install.StepOf(node, install.Configure) }

// handover is the stage that gives nodes to their schedulers and takes them back.
func (s *Site) handover(w world) stage.Stage {
	return handover.New(s.Inv, handoverKinds(s, w), standings{w.store}).Keeping(s.over.Orphaned)
}

// bareStages is the stage table: the way of a node from power-off to its scheduler.
// A stage's steps need those of stages above it.
func (s *Site) bareStages(digests map[string]string, w world) []stage.Stage {
	return []stage.Stage{
		oob.New(s.Inv, w.bmc).Reaching(w.nodes),                     // reach the BMC, compare its serial, BIOS settings
		install.New(s.Inv, digests, w.install),                      // power, netboot, identify, write, boot from disk
		cabling.New(s.Inv, listens, w.nodes),                        // cables against what nodes hear by LLDP
		driver.New(s.Inv, driverKinds(w)),                           // driver stacks, verified by what runs
		fabric.New(s.Inv, fabricKinds(w)),                           // InfiniBand, RoCE, NVLink
		validate.New(s.Inv, w.nodes).Asking(reach.ChassisBy(w.ask)), // pairs, collectives, acceptance
		supply.New(s.Inv, w.feeds),                                  // PDUs, once their nodes were under load
		s.handover(w),                                               // to the scheduler, and drains
		overrides.Retirement{Inv: s.Inv},                            // nodes that are in no file any more
		s.hooks(w),                                                  // the site's own programs, before and after the steps of the others
	}
}

// stages is the stage table with what surrounds the stages.
func (s *Site) stages(digests map[string]string, w world) []stage.Stage {
	w.links, w.inv = s.links, s.Inv
	all := s.bareStages(digests, w)
	for i := range all {
		for _, wrap := range s.middleware(w) {
			all[i] = wrap(all[i])
		}
	}
	return all
}

// middleware is put around a stage; one that does not concern a stage returns it as it is.
type middleware func(stage.Stage) stage.Stage

// middleware is what surrounds the stages, from the inside out: each sees what those
// before it have made of a stage.
func (s *Site) middleware(w world) (list []middleware) {
	if withBIOS(s.Inv) { // nothing is installed before the BIOS is as it should be
		list = append(list, func(st stage.Stage) stage.Stage { return settingsFirst{st, s.Inv} })
	}
	if w.accept != nil { // the baseline of a node that is accepted
		list = append(list, func(st stage.Stage) stage.Stage {
			if st.Name() != validate.StageName {
				return st
			}
			return w.accept(st)
		})
	}
	if w.feeds != nil { // PDUs are asked before a silent node is blamed
		list = append(list, func(st stage.Stage) stage.Stage { return w.feeds.Around(st) })
	}
	if w.store != nil { // parts that were found bad before are known again
		list = append(list, func(st stage.Stage) stage.Stage { return recalled{st, s.Inv, w.store} })
	}
	return list
}

// world is what the stages of this run reach.
func (s *Site) world(r *Running) world {
	ssh := s.access().Nodes(r.ssh, r.fact)
	return world{
		bmc: func(_ context.Context, node string) (oob.BMC, error) { return r.bmcs.Handle(node) },
		ask: r.bmcs.Handle,
		install: install.World{
			BMC: func(_ context.Context, node string) (install.Control, error) { return r.bmcs.Handle(node) },
			Hub: r.srv.Hub(), Boots: r.srv.Boots(), Images: s.Artifacts.Library(r.srv.Root()), Nodes: ssh, Evidence: r.saw.Of, Console: r.said.Open, Printed: r.said.Printed,
			BootNetwork: r.srv.BootNetwork, OtherOwner: r.srv.OtherOwner(), SSHKey: remote.AuthorizedKey(s.Keys.SSH, "ironrail@"+s.Inv.Site.Name),
		},
		nodes:    ssh,
		switches: r.switches,
		subnets:  s.subnets,
		accept: func(st stage.Stage) stage.Stage {
			return s.observer().RecordBaselines(st, ssh, r.bmcs, drift.Keeper{Store: r.store, Fence: r.fence})
		},
		store: r.store,
		feeds: s.access().Feeds(r.fact),
		repos: s.Artifacts.Repositories(r.srv.Root()),
	}
}

// standings answers where nodes stand from the state. It implements
// handover.Standings.
type standings struct{ store state.Reader }

// Standing implements handover.Standings.
func (s standings) Standing(ctx context.Context, node string) (handover.Standing, error) {
	n, _, err := state.Get[state.Node](ctx, s.store, state.NodeKey(node))
	st := handover.Standing{Served: n.Accepted || n.Adopted}
	switch {
	case err != nil:
		return st, err
	case n.Hold != nil:
		st.Reason = "held: " + n.Hold.Reason
	case n.Quarantine != nil:
		st.Reason = n.Quarantine.Finding.Cause
	case n.Doubt != "":
		st.Reason = "not accepted since: " + n.Doubt
	case !st.Served: // an adopted node serves its scheduler as it did before
		st.Reason = "not accepted"
	default:
		st.InService, st.AcceptedAt = true, n.AcceptedAt
	}
	return st, nil
}

// Changed implements handover.Standings, from the journal's effects.
func (s standings) Changed(ctx context.Context, since map[string]time.Time) (map[string]bool, error) {
	effects, err := state.ReadEffects(ctx, s.store)
	if err != nil {
		return nil, err
	}
	changed := map[string]bool{}
	for _, e := range effects {
		node, step, _ := strings.Cut(string(e.Step), "/")
		at, asked := since[node]
		if asked && e.At.After(at) && e.Kind != plan.Load && e.State != state.EffectNotDone && !strings.HasPrefix(step, handover.StageName+".") {
			changed[node] = true
		}
	}
	return changed, nil
}

// The kinds of every seam, each in one place: a new kind is a new package and
// one line here.

// driverKinds are the kinds of `driver` blocks.
func driverKinds(w world) map[string]driver.Kind {
	kinds := map[string]driver.Kind{
		inbox.Name: inbox.New(w.nodes, w.repos),
	}
	for name, recipe := range artifacts.StackRecipes() {
		kinds[name] = stack.New(recipe, w.nodes, w.repos)
	}
	return kinds
}

// fabricKinds are the kinds of `fabric` blocks.
func fabricKinds(w world) map[string]fabric.Kind {
	return map[string]fabric.Kind{
		roce.Name:       switchos.New(roce.New(w.nodes, w.links...), w.inv, w.switches, w.links),
		infiniband.Name: infiniband.New(w.inv, w.nodes, w.subnets),
		nvlink.Name:     nvlink.New(w.inv, w.nodes),
	}
}

// handoverKinds are the kinds of `handover` blocks.
func handoverKinds(s *Site, w world) map[string]handover.Kind {
	return map[string]handover.Kind{
		slurm.Name:      slurm.New(s.path("handover", "slurm"), s.schedulers().Programs(w.nodes)),
		kubernetes.Name: kubernetes.New(s.schedulers().Clusters(w.nodes)),
		command.Name:    command.Command{},
	}
}

// settingsFirst is a stage whose steps stand in the right order with those that
// set up a node's firmware.
type settingsFirst struct {
	stage.Stage
	inv *inventory.Inventory
}

// Plan implements stage.Stage.
func (s settingsFirst) Plan(v stage.View) ([]plan.Step, hcl.Diagnostics) {
	steps, diags := s.Stage.Plan(v)
	return oob.Weave(s.inv, steps), diags
}

// withBIOS reports whether the site gives settings to any firmware.
func withBIOS(inv *inventory.Inventory) bool {
	for _, h := range inv.Hardware {
		if len(h.BIOS) > 0 {
			return true
		}
	}
	return false
}

// hooked adds the site's own steps before and after those of the stages.
func (s *Site) hooked(steps []plan.Step) []plan.Step { return hook.Place(s.Inv, steps) }

// hooks is the stage that runs the site's own programs.
func (s *Site) hooks(w world) *hook.Stage {
	dir, err := filepath.Abs(s.Inv.Dir)
	if err != nil {
		dir = s.Inv.Dir // the working folder is gone; the program fails by itself
	}
	if w.store == nil {
		return hook.New(s.Inv, dir, nil)
	}
	return hook.New(s.Inv, dir, func(ctx context.Context, node string) (string, error) {
		n, _, err := state.Get[state.Node](ctx, w.store, state.NodeKey(node))
		return standingWords(n), err
	})
}

// standingWords says in a few words where a node stands.
func standingWords(n state.Node) string {
	switch {
	case n.Hold != nil:
		return "held: " + n.Hold.Reason
	case n.Quarantine != nil:
		return "quarantined: " + n.Quarantine.Finding.Cause
	case n.Accepted:
		return "accepted"
	case n.Adopted:
		return "adopted"
	}
	return "not accepted"
}
