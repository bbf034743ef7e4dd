// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/images/repo"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// CheckRepositories reads the keys of the repositories that driver blocks name. It is a
// check of the whole site: every kind of driver may have a repository.
func CheckRepositories(inv *inventory.Inventory) (found diag.List) {
	for _, d := range inv.Drivers {
		block, ok := inventory.Attribute(d.Value, "repository")
		if !ok {
			continue
		}
		key, given := inventory.Attribute(block, "key")
		if !given || key.Type() != cty.String {
			continue // signed by a key of the image
		}
		if err := repo.CheckKey(key.AsString()); err != nil {
			found.Add("driver.repository", Place(d, "key"), "Not the key of a repository",
				fmt.Sprintf("The key of the repository of driver %q %v. apt would refuse the repository after the images are built. Write key = file(\"vendor.asc\") with the key that its vendor publishes, in ASCII armor%s.", d.Name, err, orWithout(key.AsString()))).In(d.Decl)
		}
	}
	return found
}

// orWithout is what to do about a key that is empty.
func orWithout(key string) string {
	if strings.TrimSpace(key) == "" {
		return ", or leave it out where a key of the image signs the repository"
	}
	return ""
}

// Place is where an attribute of a driver's repository stands, else the block.
func Place(d *inventory.Driver, attribute string) hcl.Range {
	if d.Body == nil {
		return d.Decl
	}
	outer, _, _ := d.Body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "repository"}}})
	if outer == nil || len(outer.Blocks) == 0 {
		return d.Decl
	}
	block := outer.Blocks[0]
	inner, _, _ := block.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: attribute}}})
	if inner != nil && inner.Attributes[attribute] != nil {
		return inner.Attributes[attribute].Expr.Range()
	}
	return block.DefRange
}
