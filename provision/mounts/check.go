// SPDX-License-Identifier: Apache-2.0

package mounts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/inventory"
)

// Check implements stage.Checker: an image that is built of packages must have the program
// that mounts a file system, itself or by a driver.
func (s *Stage) Check() (diags hcl.Diagnostics) {
	type pair struct {
		image *inventory.Image
		role  *inventory.Role
	}
	seen := map[pair]bool{}
	for _, n := range s.inv.Nodes {
		if !Gives(n) || seen[pair{n.Image, n.Role}] {
			continue
		}
		seen[pair{n.Image, n.Role}] = true
		f, ok := distribution.FamilyOf(n.Image)
		if !ok || n.Image.Source != "" { // not built here: what is in it is seen when it runs
			continue
		}
		for _, m := range n.Role.Mounts {
			if pkg := f.Mounts(m.Type); pkg != "" && !brings(n, pkg) {
				diags = append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: "Package for a mount is missing", Subject: m.Decl.Ptr(),
					Detail: fmt.Sprintf("mount %q of role %q is of type %q, which needs package %q, and neither image %q nor a driver has it. Add it to the packages of the image.", m.Path, n.Role.Name, m.Type, pkg, n.Image.Name)})
			}
		}
	}
	return diags
}

// brings reports whether a node gets a package by its image or by a driver that lists packages.
func brings(n *inventory.Node, pkg string) bool {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { name, _, _ := strings.Cut(p, "="); return name == pkg })
	}
	return has(n.Image.Packages) || slices.ContainsFunc(n.Drivers, func(d *inventory.Driver) bool { return has(d.Packages) })
}
