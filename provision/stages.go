// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"
	"strings"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/manager"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/bmc"
	"github.com/ironrail/ironrail/provision/handover"
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
		accept:   func(st stage.Stage) stage.Stage { return r.accepting(st, ssh) },
		store:    r.store,
		feeds:    s.access().Feeds(r.fact),
		repos:    s.Artifacts.Repositories(r.srv.Root()),
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
