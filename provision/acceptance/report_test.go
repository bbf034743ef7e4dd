// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/report"
	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/install"
	"github.com/ironrail/ironrail/provision/oob"
)

// set adds a fact of a node.
func set[T any](t *testing.T, prior plan.Prior, name fact.Name[T], node string, v T) {
	t.Helper()
	f, err := name.New(subject.OfNode(node), v, "")
	if err != nil {
		t.Fatal(err)
	}
	prior.Facts[f.Key] = f
}

// TestReportTellsWhatIsInstalled: nodes accepted with digest 1111 have that digest in
// the report when the files say 2222 since; a serial number that nobody saw is called
// declared.
func TestReportTellsWhatIsInstalled(t *testing.T) {
	t.Parallel()
	image := &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}}
	inv := &inventory.Inventory{}
	for _, name := range []string{"n1", "n2", "n3", "n4"} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: name, Serial: "S-" + name, Image: image})
	}
	prior := plan.Prior{Facts: map[fact.Key]fact.Fact{}}
	for _, name := range []string{"n1", "n2"} {
		set(t, prior, install.WriteFact, name, install.Written{Key: name + "/a/write", Image: "sha256:1111", Complete: true})
		set(t, prior, install.SystemFact, name, install.System{Kernel: "6.1", Marker: name + "/a/write"})
		set(t, prior, install.HardwareFact, name, wire.Hardware{Identity: wire.Identity{Serial: "S-" + name}})
	}
	// n3 runs something else than what was written, and another chassis answers.
	set(t, prior, install.WriteFact, "n3", install.Written{Key: "n3/a/write", Image: "sha256:1111", Complete: true})
	set(t, prior, install.SystemFact, "n3", install.System{Kernel: "5.4", Marker: "x/b/write"})
	set(t, prior, oob.ReportFact, "n3", oob.Report{Serial: "OTHER"})

	var nodes []report.Node
	d := &describer{inv: inv, prior: prior}
	for _, n := range inv.Nodes {
		nodes = append(nodes, d.node(n, state.Node{Accepted: n.Name < "n3", AcceptedAt: time.Unix(1, 0)}))
	}
	images := reportImages(inv, nodes, map[string]string{"os": "sha256:2222"})
	if len(images) != 1 || images[0] != (report.Image{Name: "os", Digest: "sha256:1111", Nodes: 2, Files: "sha256:2222"}) {
		t.Errorf("images %+v", images)
	}
	if got := images[0].String(); got != "image os sha256:1111, on 2 nodes; the site's files have sha256:2222 now" {
		t.Errorf("%q", got)
	}
	for i, want := range []string{"S-n1", "S-n2", "OTHER (the site's files have S-n3)", "S-n4 (declared, not seen)"} {
		if got := nodes[i].SerialText(); got != want {
			t.Errorf("serial of %s: %q, want %q", nodes[i].Name, got, want)
		}
	}
	if nodes[2].Image != "" || nodes[3].Image != "" {
		t.Errorf("images of nodes that do not run what was written: %q, %q", nodes[2].Image, nodes[3].Image)
	}
	if got := reportImages(inv, nil, map[string]string{"os": "sha256:2222"}); len(got) != 1 || !strings.Contains(got[0].String(), "installed on no node") {
		t.Errorf("nothing installed: %+v", got)
	}
}
