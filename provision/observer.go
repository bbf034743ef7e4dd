// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"context"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/provision/adopt"
	"github.com/ironrail/ironrail/provision/encryption"
	"github.com/ironrail/ironrail/provision/host"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/nics"
	"github.com/ironrail/ironrail/provision/observe"
	"github.com/ironrail/ironrail/provision/services"
	"github.com/ironrail/ironrail/validate/target"
)

// Observer looks at the site with what r overrides of its files.
func (s *Site) Observer(ctx context.Context, r state.Reader) (observe.Observer, error) {
	if err := s.Keys.CheckVirtual(ctx, r); err != nil {
		return observe.Observer{}, err
	}
	s, err := s.Desired(ctx, r, nil)
	if err != nil {
		return observe.Observer{}, err
	}
	return s.observer(), nil
}

// Adopter adopts nodes of the site with what r overrides of its files.
func (s *Site) Adopter(ctx context.Context, r state.Reader) (adopt.Adopter, error) {
	if err := s.Keys.CheckVirtual(ctx, r); err != nil {
		return adopt.Adopter{}, err
	}
	s, err := s.Desired(ctx, r, nil)
	if err != nil {
		return adopt.Adopter{}, err
	}
	steps := func(v stage.View) ([]plan.Step, error) {
		list, _, err := s.desired(v) // what cannot be planned is not recorded
		return list, err
	}
	return adopt.Adopter{Observer: s.observer(), Steps: steps}, nil
}

// observer looks at the site as it is desired.
func (s *Site) observer() observe.Observer {
	return observe.Observer{
		Access: s.access(),
		Stages: s.observedStages,
		NodeStages: func(nodes onnode.Nodes) []stage.Stage {
			w := s.offlineWorld()
			w.nodes, w.repos = nodes, s.Artifacts.Repositories("")
			return []stage.Stage{host.New(s.Inv, nodes), encryption.New(s.Inv, nodes, w.recovery, target.ReadyNeeds), driver.New(s.Inv, driverKinds(w)), nics.New(s.Inv, nodes, nil), fabric.New(s.Inv, fabricKinds(w)), w.mounts()}
		},
		Fabrics: func(nodes onnode.Nodes, switches switchos.Switches) map[string]fabric.Kind {
			w := s.offlineWorld()
			w.nodes, w.switches, w.subnets = nodes, switches, s.subnets
			return fabricKinds(w)
		},
		SwitchKind: func() *switchos.Kind {
			return fabricKinds(s.offlineWorld())[roce.Name].(*switchos.Kind)
		},
	}
}

// observedStages are the stages of a world that is only looked at: nodes over SSH, and
// BMCs and switches where they are asked. No service is opened.
func (s *Site) observedStages(ctx context.Context, r state.Reader, o observe.Dependencies) ([]stage.Stage, error) {
	boots, err := services.LoadBoots(ctx, r, s.Inv, s.over.BootMACs(), s.Keys.Boot)
	if err != nil {
		return nil, err
	}
	digests, err := s.Artifacts.Digests()
	if err != nil {
		return nil, err
	}
	control := func(context.Context, string) (install.Control, error) { return nil, observe.ErrNotAsked }
	w := s.offlineWorld()
	w.bmc, w.nodes, w.switches, w.store, w.repos = o.BMC, o.Nodes, o.Switches, r, s.Artifacts.Repositories("")
	w.install = install.Dependencies{Boots: boots, Hub: hub.New(hub.Config{Grants: boots}), Nodes: o.Nodes, BMC: control}
	return w.stages(digests), nil
}
