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
