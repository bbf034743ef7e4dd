// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"time"

	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/images/driver/cuda"
	"github.com/ironrail/ironrail/images/driver/doca"
	"github.com/ironrail/ironrail/images/driver/inbox"
	"github.com/ironrail/ironrail/images/driver/rocm"
	"github.com/ironrail/ironrail/images/driver/stack"
	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/power"
	"github.com/ironrail/ironrail/provision/artifacts"
	"github.com/ironrail/ironrail/provision/handover/ansible"
	"github.com/ironrail/ironrail/provision/handover/command"
	"github.com/ironrail/ironrail/provision/handover/kubernetes"
	"github.com/ironrail/ironrail/provision/handover/slurm"
	"github.com/ironrail/ironrail/validate/floor"
)

// Load reads the site in a folder with every kind and every check that there is,
// as inventory.Load does. It is how every command reads a site.
func Load(dir string, o inventory.Options) (*inventory.Inventory, inventory.Diagnostics, inventory.Files) {
	kinds := siteKinds(o.Now)
	o.Kinds, o.Checks = &kinds, siteChecks()
	return inventory.Load(dir, o)
}

// siteKinds are the language's kinds with what their owners add: checks, and the
// topology of fabrics. now decides what has ended, such as a driver's support.
// All topologies are computed before the first check; then a kind's check runs once
// for each of its blocks.
func siteKinds(now time.Time) inventory.Kinds {
	kinds := inventory.DefaultKinds()

	checked(kinds.Driver, cuda.Name, cuda.Check(now))
	checked(kinds.Driver, rocm.Name, rocm.Check)
	checked(kinds.Driver, doca.Name, doca.Check)
	checked(kinds.Driver, inbox.Name, inbox.Check)

	designed(kinds.Fabric, infiniband.Name, infiniband.Design)
	checked(kinds.Fabric, infiniband.Name, infiniband.Check)
	designed(kinds.Fabric, roce.Name, roce.Design)
	checked(kinds.Fabric, roce.Name, roce.Check)
	checked(kinds.Fabric, nvlink.Name, nvlink.Check)

	checked(kinds.Handover, slurm.Name, slurm.Check)
	checked(kinds.Handover, kubernetes.Name, kubernetes.Check)
	checked(kinds.Handover, ansible.Name, ansible.Check)
	checked(kinds.Handover, command.Name, command.Check)

	return kinds
}

// siteChecks look at the whole site, after the checks of the kinds.
func siteChecks() []inventory.Check {
	return []inventory.Check{
		artifacts.CheckLock,     // ironrail.lock, and the addresses that it holds
		power.Check,             // PDUs, phases and feeds; room, weight and cooling of racks
		cable.Check,             // ways, lengths and types of cables
		stack.CheckRepositories, // keys of the repositories of drivers
		usage.Missing,           // GPUs without a driver stack
		floor.Check,             // limits and quorums that faulty hardware would keep
		checkUnimplemented,
	}
}

// checked gives a kind the check of its owner.
func checked(kinds map[string]inventory.KindSpec, kind string, check func(*inventory.Inventory, inventory.Block) diag.List) {
	spec := kinds[kind]
	spec.Check = check
	kinds[kind] = spec
}

// designed gives a kind of fabric the rule that computes its topology.
func designed(kinds map[string]inventory.KindSpec, kind string, design func(*inventory.Inventory, *inventory.Fabric) ([]*inventory.Switch, []*inventory.Cable, diag.List)) {
	spec := kinds[kind]
	spec.Design = design
	kinds[kind] = spec
}
