package provision

import (
	"github.com/ironrail/ironrail/inventory"
)

// Load reads the site in a folder with every kind and every check that there is,
// as inventory.Load does. It is how every command reads a site.
func Load(dir string, o inventory.Options) (*inventory.Inventory, inventory.Diagnostics, inventory.Files) {
	kinds := siteKinds()
	o.Kinds, o.Checks = &kinds, siteChecks()
	return inventory.Load(dir, o)
}

// siteKinds are the language's kinds with what their owners add: checks, and the
// topology of fabrics.
func siteKinds() inventory.Kinds {
	return inventory.DefaultKinds()
}

// siteChecks look at the whole site.
func siteChecks() []inventory.Check {
	return nil
}
