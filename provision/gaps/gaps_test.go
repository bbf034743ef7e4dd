// SPDX-License-Identifier: Apache-2.0

package gaps

import (
	"encoding/json"
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
	list := Collect(site(), Kinds{}, Found{Refused: hcl.Diagnostics{
		wrong(12, "Node without a disk", nil), wrong(10, "Node without a disk", nil), wrong(11, "Node without a disk", nil),
		wrong(1, "Image is not built", install.NotBuilt{}), wrong(1, "Image is not built", install.NotBuilt{}),
		wrong(2, "Release is not known", nil), warning,
	}, Stock: []Gap{New(NotMirrored, "driver", "d", "", at(5), 1, "Not there", "Fetch it.")}})
	list = slices.DeleteFunc(list, func(g Gap) bool { return g.Kind == Standin })
	want := []string{
		"site.hcl:1:3: not built: It is so. (3 nodes)",
		"site.hcl:2:3: refused: Release is not known: It is so. (3 nodes)",
		"site.hcl:5:3: not mirrored: Fetch it. (1 node)",
		"site.hcl:12:3: refused: Node without a disk: It is so. (3 nodes)",
	}
	got := list.Lines()
	for i := range got {
		got[i], _, _ = strings.Cut(got[i], " In a rehearsal: ")
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if g := list[1]; g.Block != "image" || g.Name != "a" || g.Setting != "release" {
		t.Errorf("the release is of %+v", g)
	}
}

// TestRehearsed: a gap says what a rehearsal does instead, and nothing where a rehearsal
// is refused as well.
func TestRehearsed(t *testing.T) {
	t.Parallel()
	both := hcl.Diagnostics{wrong(10, "Node without a disk", nil)}
	if g := Collect(site(), Kinds{}, Found{Refused: both, Rehearsal: both}).Of(Refused)[0]; g.Instead != "" {
		t.Errorf("a rehearsal is refused as well, and %q", g.Instead)
	}
	if g := Collect(site(), Kinds{}, Found{Refused: both}).Of(Refused)[0]; g.Instead == "" {
		t.Error("nothing says why a rehearsal goes on")
	}
	kind := hcl.Diagnostics{wrong(1, "Image kind cannot be installed", nil)}
	if g := Collect(site(), Kinds{}, Found{Refused: kind}).Of(Refused)[0]; !strings.Contains(g.Instead, "stand-in of kind debian") {
		t.Errorf("instead of the image: %q", g.Instead)
	}
}

// TestFieldsAreStable: the names in JSON are an interface.
func TestFieldsAreStable(t *testing.T) {
	t.Parallel()
	g := New(Refused, "hardware", "h", "secure_boot", at(3), 2, "Not implemented", "Remove it.")
	g.Instead = "it is left out"
	b, err := json.Marshal(List{g})
	const want = `[{"kind":"refused","block":"hardware","name":"h","setting":"secure_boot","place":{"file":"site.hcl","line":3,"column":3},"nodes":2,"summary":"Not implemented","detail":"Remove it.","rehearsal":"it is left out"}]`
	if err != nil || string(b) != want {
		t.Errorf("%s, %v", b, err)
	}
	if b, err := json.Marshal(struct{ L List }{}); err != nil || string(b) != `{"L":[]}` {
		t.Errorf("an empty list is %s, %v", b, err)
	}
}
