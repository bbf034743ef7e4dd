// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"slices"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
)

// TestTrustWarnings: one warning for each place that accepts any certificate, that of the
// profile or of the node that says otherwise.
func TestTrustWarnings(t *testing.T) {
	t.Parallel()
	at := func(line int) hcl.Range { return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: line}} }
	insecure, pinned := inventory.TLSTrust{Mode: inventory.TLSInsecure}, inventory.TLSTrust{Mode: inventory.TLSPinFirstSeen}
	open := &inventory.BMCProfile{Name: "open", TLS: insecure, Ranges: map[string]hcl.Range{"tls": at(3)}}
	closed := &inventory.BMCProfile{Name: "closed", TLS: pinned}
	node := func(name string, line int, p *inventory.BMCProfile, tls inventory.TLSTrust) *inventory.Node {
		return &inventory.Node{Name: name, Decl: at(line), BMC: inventory.BMCTarget{Profile: p, TLS: tls}}
	}
	const tail = `): tls = "insecure" accepts any, so that whoever answers at a BMC's address gets its password`
	for name, c := range map[string]struct {
		nodes []*inventory.Node
		want  []string
	}{
		"pinned":      {[]*inventory.Node{node("n1", 10, closed, pinned)}, []string{}},
		"a profile":   {[]*inventory.Node{node("n1", 10, open, insecure), node("n2", 11, open, insecure)}, []string{"site.hcl:3: BMC certificates are not verified (2 nodes" + tail}},
		"of one node": {[]*inventory.Node{node("n1", 10, closed, insecure), node("n2", 11, closed, pinned)}, []string{"site.hcl:10: BMC certificates are not verified (n1" + tail}},
		"fixed by a node": {[]*inventory.Node{node("n1", 10, open, pinned), node("n2", 11, open, insecure)},
			[]string{"site.hcl:3: BMC certificates are not verified (n2" + tail}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := TrustWarnings(&inventory.Inventory{Nodes: c.nodes}); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
