// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/command"
	"github.com/ironrail/ironrail/provision/handover/kubernetes"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

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
