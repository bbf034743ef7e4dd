package provision

import (
	"context"

	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/onnode"
	"github.com/ironrail/ironrail/provision/oob"
	"github.com/ironrail/ironrail/provision/remote"
	"github.com/ironrail/ironrail/provision/stage"
	"github.com/ironrail/ironrail/provision/state"
	"github.com/ironrail/ironrail/provision/supply"
	"github.com/ironrail/ironrail/validate"
)

// world is what the stages of a run reach. The zero world reaches nothing: it is
// enough to plan with.
type world struct {
	bmc     func(ctx context.Context, node string) (oob.BMC, error)
	install install.World
	nodes   onnode.Nodes
	repos   inbox.Repositories
	store   state.Reader
	feeds   *feeds        // nil: PDUs are not asked
	links   []*roce.Links // addresses that were allocated; those of the site
}

// stages is the stage table: the way of a node from power-off to its scheduler.
// A stage's steps need those of stages above it.
func (s *Site) stages(digests map[string]string, w world) []stage.Stage {
	w.links = s.links
	all := []stage.Stage{
		oob.New(s.Inv, w.bmc),                                     // reach the BMC, compare its serial
		install.New(s.Inv, digests, w.install),                    // power, netboot, identify, write, boot from disk
		cabling.New(s.Inv, w.nodes),                               // cables against what nodes hear by LLDP
		driver.New(s.Inv, driverKinds(w)),                         // driver stacks, verified by what runs
		fabric.New(s.Inv, fabricKinds(w)),                         // InfiniBand, RoCE, NVLink
		validate.New(s.Inv, w.nodes),                              // pairs, collectives, acceptance
		supply.New(s.Inv, w.feeds),                                // PDUs, once their nodes were under load
		handover.New(s.Inv, handoverKinds(s), standings{w.store}), // to the scheduler, and drains
	}
	if w.feeds != nil {
		for i, st := range all {
			all[i] = powered{st, w.feeds}
		}
	}
	return all
}

// world is what the stages of this run reach.
func (s *Site) world(r *Running) world {
	ssh := nodes{inv: s.Inv, pool: r.ssh, signer: s.Keys.SSH, facts: r.fact}
	return world{
		bmc: func(_ context.Context, node string) (oob.BMC, error) { return r.bmcs.handle(node) },
		install: install.World{
			BMC: func(_ context.Context, node string) (install.Control, error) { return r.bmcs.handle(node) },
			Hub: r.srv.hub, Boots: r.srv.boots, Images: library{s, r.srv.boot.Root()}, Nodes: ssh, Evidence: r.saw.of,
			SSHKey: remote.AuthorizedKey(s.Keys.SSH, "ironrail@"+s.Inv.Site.Name),
		},
		nodes: ssh,
		store: r.store,
		feeds: s.newFeeds(r.fact),
		repos: repositories{site: s, root: r.srv.boot.Root()},
	}
}

// standings answers where nodes stand from the state. It implements
// handover.Standings.
type standings struct{ store state.Reader }

// Standing implements handover.Standings.
func (s standings) Standing(ctx context.Context, node string) (handover.Standing, error) {
	n, _, err := state.Get[state.Node](ctx, s.store, state.NodeKey(node))
	switch {
	case err != nil:
		return handover.Standing{}, err
	case n.Hold != nil:
		return handover.Standing{Reason: "held: " + n.Hold.Reason}, nil
	case n.Quarantine != nil:
		return handover.Standing{Reason: n.Quarantine.Finding.Cause}, nil
	case !n.Accepted:
		return handover.Standing{Reason: "not accepted"}, nil
	}
	return handover.Standing{InService: true}, nil
}
