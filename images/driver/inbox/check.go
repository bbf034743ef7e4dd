// SPDX-License-Identifier: Apache-2.0

package inbox

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/repo/repodata"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// Check asks for packages whose names a package can have. It is pure.
func Check(inv *inventory.Inventory, b inventory.Block) diag.List {
	var found diag.List
	i := slices.IndexFunc(inv.Drivers, func(d *inventory.Driver) bool { return d.Kind == b.Kind && d.Name == b.Name })
	if i < 0 {
		return nil
	}
	at := b.Place("packages")
	if len(inv.Drivers[i].Packages) == 0 {
		found.Add("driver.packages", at, "Driver without packages", fmt.Sprintf("Driver %q of kind \"inbox\" installs what its packages list, and they list nothing. Write packages = [\"rdma-core\", \"ibverbs-utils\"].", b.Name)).In(b.Decl)
	}
	reportWrong(&found, inv.Drivers[i], at, ofRPM(inv, inv.Drivers[i]))
	return found
}

// ofRPM reports whether all nodes of a driver have packages of RPM, whose names may have
// more letters.
func ofRPM(inv *inventory.Inventory, d *inventory.Driver) bool {
	rpm := false
	for _, n := range inv.Nodes {
		if !slices.Contains(n.Drivers, d) || n.Image == nil {
			continue
		}
		if f, _ := distribution.FamilyOf(n.Image); f.Manager != distribution.Dnf {
			return false
		}
		rpm = true
	}
	return rpm
}

// reportWrong reports names that no package has.
func reportWrong(to *diag.List, d *inventory.Driver, at hcl.Range, rpm bool) {
	for _, p := range d.Packages {
		if !packageName(p) && !(rpm && repodata.IsName(p)) {
			to.Add("driver.packages", at, "Not the name of a package", fmt.Sprintf("%q of driver %q is no package: a name has at least two lower-case letters, digits, and the signs + - . only, and starts with a letter or digit.", p, d.Name)).In(d.Decl)
		}
	}
}
