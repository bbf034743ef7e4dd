// SPDX-License-Identifier: Apache-2.0

package gaps

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
)

func at(line int) hcl.Range {
	return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: line, Column: 3, Byte: 100 * line}, End: hcl.Pos{Line: line, Column: 9, Byte: 100*line + 6}}
}

func wrong(line int, summary string, extra any) *hcl.Diagnostic {
	return &hcl.Diagnostic{Severity: hcl.DiagError, Summary: summary, Detail: "It is so.", Subject: at(line).Ptr(), Extra: extra}
}

// site is two instances of an image block, and three nodes at places of their own.
func site() *inventory.Inventory {
	a, b := &inventory.Image{}, &inventory.Image{}
	a.Name, b.Name, a.Decl, b.Decl = "a", "b", at(1), at(1)
	a.Ranges = map[string]hcl.Range{"release": at(2)}
	inv := &inventory.Inventory{Images: []*inventory.Image{a, b}}
	for i, image := range []*inventory.Image{a, a, b} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: "n" + string(rune('1'+i)), Image: image, Decl: at(10 + i)})
	}
	return inv
}

// TestFolded: what many nodes or instances have is one line with their number, in the
// order of the places, and warnings are none.
func TestFolded(t *testing.T) {
	t.Parallel()
	warning := wrong(1, "Only so", nil)
	warning.Severity = hcl.DiagWarning
	list := Collect(site(), Found{Refused: hcl.Diagnostics{
		wrong(12, "Node without a disk", nil), wrong(10, "Node without a disk", nil), wrong(11, "Node without a disk", nil),
		wrong(1, "Image is not built", install.NotBuilt{}), wrong(1, "Image is not built", install.NotBuilt{}),
		wrong(2, "Release is not known", nil), warning,
	}, Stock: []Gap{New(NotMirrored, "driver", "d", "", at(5), 1, "Not there", "Fetch it.")}})
	want := []string{
		"site.hcl:1:3: not built: It is so. (3 nodes)",
		"site.hcl:2:3: refused: Release is not known: It is so. (3 nodes)",
		"site.hcl:5:3: not mirrored: Fetch it. (1 node)",
		"site.hcl:12:3: refused: Node without a disk: It is so. (3 nodes)",
	}
	if got := list.Lines(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if g := list[1]; g.Block != "image" || g.Name != "a" || g.Setting != "release" {
		t.Errorf("the release is of %+v", g)
	}
}

// TestSimulated: every image that nodes have, the packages of each of their stacks, hooks
// and protection are listed with their places, and nothing else.
func TestSimulated(t *testing.T) {
	t.Parallel()
	inv := site()
	inv.Images[0].Kind, inv.Images[0].Release, inv.Images[0].Arch = "ubuntu", "24.04", inventory.AMD64
	inv.Images[1].Kind = "oci"
	d := &inventory.Driver{Block: inventory.Block{Name: "r580", Kind: "cuda", Decl: at(5)}}
	unused := &inventory.Driver{Block: inventory.Block{Name: "unused", Kind: "cuda", Decl: at(6)}}
	r := &inventory.Role{Name: "storage", Decl: at(7)}
	inv.Drivers, inv.Roles = []*inventory.Driver{d, unused}, []*inventory.Role{r}
	inv.Images = append(inv.Images, &inventory.Image{Block: inventory.Block{Name: "none"}})
	inv.Hooks = []*inventory.Hook{{When: "after", Stage: "validate", Decl: at(8)}}
	inv.Nodes[0].Drivers, inv.Nodes[2].Role, inv.Nodes[2].Protect = []*inventory.Driver{d}, r, true
	var got []string
	for _, s := range OfRehearsal(inv, func(d *inventory.Driver, i *inventory.Image) string { return "of " + d.Name }) {
		got = append(got, fmt.Sprintf("%s: %s: %s (%d)", s.Place, s, s.How, s.Nodes))
	}
	want := []string{
		"site.hcl:1:3: image a: a small disk that says to be Ubuntu 24.04 for amd64 (2)",
		"site.hcl:1:3: image b: a small disk that says to be a system of kind oci (1)",
		"site.hcl:5:3: packages of driver r580 for image a: of r580 (1)",
		"site.hcl:7:3: protect of role storage: lifted: there is nothing to lose (1)",
		"site.hcl:8:3: hook after validate: its program is not run, and taken to have ended well (3)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	b, err := json.Marshal(OfRehearsal(inv, func(*inventory.Driver, *inventory.Image) string { return "so" })[2])
	const fields = `{"what":"packages","block":"driver","name":"r580","image":"a","place":{"file":"site.hcl","line":5,"column":3},"nodes":1,"how":"so"}`
	if err != nil || string(b) != fields {
		t.Errorf("%s, %v", b, err)
	}
}

// TestFieldsAreStable: the names in JSON are an interface.
func TestFieldsAreStable(t *testing.T) {
	t.Parallel()
	g := New(Refused, "hardware", "h", "secure_boot", at(3), 2, "Not implemented", "Remove it.")
	b, err := json.Marshal(List{g})
	const want = `[{"kind":"refused","block":"hardware","name":"h","setting":"secure_boot","place":{"file":"site.hcl","line":3,"column":3},"nodes":2,"summary":"Not implemented","detail":"Remove it."}]`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := json.Marshal(struct{ L List }{}); err != nil || string(b) != `{"L":[]}` {
		t.Errorf("an empty list is %s, %v", b, err)
	}
}
