package provision

import (
	"time"

	"github.com/ironrail/ironrail/fabric/cable"
	"github.com/ironrail/ironrail/images/driver/cuda"
	"github.com/ironrail/ironrail/images/driver/doca"
	"github.com/ironrail/ironrail/images/driver/rocm"
	"github.com/ironrail/ironrail/images/driver/usage"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
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
func siteKinds(now time.Time) inventory.Kinds {
	kinds := inventory.DefaultKinds()
	checked(kinds.Driver, cuda.Kind, cuda.Check(now))
	checked(kinds.Driver, rocm.Kind, rocm.Check)
	checked(kinds.Driver, doca.Kind, doca.Check)
	return kinds
}

// checked gives a kind the check of its owner.
func checked(kinds map[string]inventory.KindSpec, kind string, check func(*inventory.Inventory, inventory.Block) diag.List) {
	spec := kinds[kind]
	spec.Check = check
	kinds[kind] = spec
}

// siteChecks look at the whole site.
func siteChecks() []inventory.Check {
	return []inventory.Check{
		checkLock, // ironrail.lock, and the addresses that it holds
		cable.Check,
		usage.Missing,
		floor.Check,
	}
}
