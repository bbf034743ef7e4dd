package provision

import (
	"github.com/ironrail/ironrail/fabric"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/images/driver"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/command"
	"github.com/ironrail/ironrail/provision/handover/slurm"
)

// The kinds of every seam, each in one place: a new kind is a new package and
// one line here.

// driverKinds are the kinds of `driver` blocks.
func driverKinds(w world) map[string]driver.Kind {
	return map[string]driver.Kind{
		inbox.Name: inbox.New(w.nodes, w.repos),
	}
}

// fabricKinds are the kinds of `fabric` blocks.
func fabricKinds(w world) map[string]fabric.Kind {
	return map[string]fabric.Kind{
		roce.Name: roce.New(w.nodes, w.links...),
	}
}

// handoverKinds are the kinds of `handover` blocks.
func handoverKinds(s *Site) map[string]handover.Kind {
	return map[string]handover.Kind{
		slurm.Name:   slurm.New(s.path("handover", "slurm")),
		command.Name: command.Command{},
	}
}
