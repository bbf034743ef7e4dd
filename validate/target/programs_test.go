// SPDX-License-Identifier: Apache-2.0

package target

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/driver/kinds"
	"github.com/ironrail/ironrail/inventory"
)

// TestLacking: what is said of a program that nothing brings follows from who made the
// image, and from whether drivers are installed on its system.
func TestLacking(t *testing.T) {
	t.Parallel()
	inbox := []*inventory.Driver{{Block: inventory.Block{Kind: "inbox", Name: "own"}, Packages: []string{"openmpi-bin"}}}
	for name, c := range map[string]struct {
		image    *inventory.Image
		drivers  []*inventory.Driver
		severity hcl.DiagnosticSeverity // 0: nothing is said
		says     string
	}{
		"made here":        {&inventory.Image{}, nil, hcl.DiagError, `Add driver "tools"`},
		"of somebody else": {&inventory.Image{Source: "os.img", OS: "ubuntu"}, nil, hcl.DiagWarning, `Add driver "tools"`},
		"without drivers":  {&inventory.Image{Source: "os.img", OS: "rhel"}, nil, hcl.DiagWarning, "Put it into the image"},
		"brought":          {&inventory.Image{}, inbox, 0, ""},
	} {
		var p Problems
		p.Lacking(Group{Validation: &inventory.Validation{Name: "v"}, Nodes: []*inventory.Node{{Name: "n1", Image: c.image, Drivers: c.drivers}}}, hcl.Range{}, "all_reduce", kinds.MPI)
		if c.severity == 0 {
			if len(p.Diags) > 0 {
				t.Errorf("%s: %v", name, p.Diags)
			}
			continue
		}
		if len(p.Diags) != 1 || p.Diags[0].Severity != c.severity || !strings.Contains(p.Diags[0].Detail, c.says) {
			t.Errorf("%s: %v, want %q", name, p.Diags, c.says)
		}
	}
}

// TestUnlike: one job of Open MPI runs on nodes of one release; of those whose packages are not known
// nothing is said, and of those in service it is a warning.
func TestUnlike(t *testing.T) {
	t.Parallel()
	tools := []*inventory.Driver{{Block: inventory.Block{Kind: "inbox", Name: "own"}, Packages: []string{"openmpi-bin", "openmpi"}}}
	image := func(kind, release string) *inventory.Image {
		return &inventory.Image{Block: inventory.Block{Kind: kind, Name: kind + release}, Release: release}
	}
	node := func(name string, i *inventory.Image) *inventory.Node {
		return &inventory.Node{Name: name, Image: i, Drivers: tools}
	}
	deb, later, el, minor := image("debian", "12"), image("debian", "trixie"), image("rhel", "9"), image("rhel", "9.4")
	own := node("own", el)
	own.Drivers = nil
	for name, c := range map[string]struct {
		nodes    []*inventory.Node
		service  string // the nodes in service
		severity hcl.DiagnosticSeverity
		says     string
	}{
		"one release":           {[]*inventory.Node{node("a", deb), node("b", image("debian", "bookworm"))}, "", 0, ""},
		"a minor release":       {[]*inventory.Node{node("a", el), node("b", minor)}, "", 0, ""},
		"two distributions":     {[]*inventory.Node{node("a", deb), node("b", deb), node("c", el)}, "", hcl.DiagError, "node a has Debian 12 (image \"debian12\"), and node c has RHEL 9"},
		"two releases":          {[]*inventory.Node{node("a", later), node("b", deb)}, "", hcl.DiagError, "node a has Debian 13"},
		"in service":            {[]*inventory.Node{node("a", deb), node("b", el)}, "a b", hcl.DiagWarning, "Both are in service"},
		"one is in service":     {[]*inventory.Node{node("a", deb), node("b", el)}, "a", hcl.DiagError, "node b has RHEL 9"},
		"programs of their own": {[]*inventory.Node{node("a", deb), own, node("n", nil)}, "", 0, ""},
	} {
		p := Problems{InService: func(n string) bool { return strings.Contains(c.service, n) }}
		p.Unlike(Group{Validation: &inventory.Validation{Name: "v"}, Nodes: c.nodes}, hcl.Range{}, "all_reduce")
		if (len(p.Diags) == 0) != (c.severity == 0) || len(p.Diags) > 0 && (len(p.Diags) != 1 || p.Diags[0].Severity != c.severity || !strings.Contains(p.Diags[0].Detail, c.says)) {
			t.Errorf("%s: %v, want %q", name, p.Diags, c.says)
		}
	}
}
