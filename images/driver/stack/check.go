// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/images/distribution"
	"github.com/ironrail/ironrail/images/internal/signature"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// CheckRepositories reads the keys of the repositories that driver blocks name, and
// compares their architecture with that of the images. It is a
// check of the whole site: every kind of driver may have a repository.
func CheckRepositories(inv *inventory.Inventory) (found diag.List) {
	for _, d := range inv.Drivers {
		block, ok := inventory.Attribute(d.Value, "repository")
		if !ok {
			continue
		}
		checkArchitecture(inv, d, &found)
		checkSuite(inv, d, &found)
		key, given := inventory.Attribute(block, "key")
		if !given || key.Type() != cty.String {
			continue // signed by a key of the image
		}
		if err := signature.CheckKey(key.AsString()); err != nil {
			found.Add("driver.repository", Place(d, "key"), "Not the key of a repository",
				fmt.Sprintf("The key of the repository of driver %q %v. Its packages would be refused after the images are built. Write key = file(\"vendor.asc\") with the key that its vendor publishes, in ASCII armor%s.", d.Name, err, orWithout(key.AsString()))).In(d.Decl)
		}
	}
	return found
}

// architectures are what vendors call an architecture in the paths of their repositories:
// NVIDIA's CUDA has x86_64 and sbsa, DOCA x86_64 and arm64-sbsa (dpu-arm64 is that of the
// DPU's own processors), archives for rpm have aarch64.
var architectures = map[string]inventory.Arch{
	"x86_64": inventory.AMD64, "amd64": inventory.AMD64,
	"sbsa": inventory.ARM64, "arm64-sbsa": inventory.ARM64, "aarch64": inventory.ARM64, "arm64": inventory.ARM64,
}

// checkArchitecture finds images of another architecture than the path of the repository
// that their packages come from, once for each.
func checkArchitecture(inv *inventory.Inventory, d *inventory.Driver, found *diag.List) {
	for _, s := range ListSources(d) {
		element, arch := "", inventory.Arch("")
		for e := range strings.SplitSeq(s.URL, "/") {
			if a, ok := architectures[e]; ok {
				element, arch = e, a
			}
		}
		seen := map[*inventory.Image]bool{}
		for _, n := range inv.Nodes {
			i := n.Image
			if arch == "" || i == nil || i.Arch == arch || seen[i] || !slices.Contains(n.Drivers, d) {
				continue
			}
			seen[i] = true
			found.Add("driver.repository", Place(d, "url"), "Repository of another architecture",
				fmt.Sprintf("The repository of driver %q has %s in its path, that of %s, and image %q, of node %q, is of %s. Name the vendor's repository for %s; nodes of both need two driver blocks.", d.Name, element, arch, i.Name, n.Name, i.Arch, i.Arch)).
				Also("the image", i.Place("arch")).In(d.Decl)
		}
	}
}

// checkSuite finds a suite or components of a repository that dnf reads, which has none: the
// first node of each driver.
func checkSuite(inv *inventory.Inventory, d *inventory.Driver, found *diag.List) {
	block, _ := inventory.Attribute(d.Value, "repository")
	for _, attribute := range []string{"suite", "components"} {
		v, given := inventory.Attribute(block, attribute)
		if !given || v.IsNull() {
			continue
		}
		for _, n := range inv.Nodes {
			f, _ := distribution.FamilyOf(orNone(n.Image))
			if f.Manager != distribution.Dnf || !slices.Contains(n.Drivers, d) {
				continue
			}
			found.Add("driver.repository", Place(d, attribute), "Suite of a repository that has none",
				fmt.Sprintf("Driver %q is given to node %q, whose image %q is of %s: dnf reads the folder that url names, with repodata/repomd.xml, and a repository has no %s there. Take the attribute out; nodes of another system need a driver block of their own.", d.Name, n.Name, n.Image.Name, f.Title, attribute)).
				Also("the image", n.Image.Decl).In(d.Decl)
			return
		}
	}
}

// orNone is an image block, or one that says nothing.
func orNone(i *inventory.Image) *inventory.Image {
	if i == nil {
		return &inventory.Image{}
	}
	return i
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
