// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/drift"
	"github.com/ironrail/ironrail/provision/observe"
)

// TestDriftSummary: of what was not seen nothing is claimed.
func TestDriftSummary(t *testing.T) {
	t.Parallel()
	dead := func(n string) drift.Unknown { return drift.Unknown{Node: n, Kind: wire.ItemHardware} }
	bios := func(n string) drift.Unknown { return drift.Unknown{Node: n, Kind: drift.BIOS} }
	for _, c := range []struct {
		name string
		d    observe.Drift
		want string
	}{
		{"nothing was seen", observe.Drift{Nodes: 2, Unknown: []drift.Unknown{dead("n1"), bios("n2"), dead("n2"), bios("n1")}}, "Nothing was seen of 2 nodes: whether they have drifted is not known."},
		{"all was seen", observe.Drift{Nodes: 2}, "No drift on 2 nodes."},
		{"one of two", observe.Drift{Nodes: 2, Unknown: []drift.Unknown{dead("n1")}}, "No drift on 1 node. Nothing was seen of 1 node: whether it has drifted is not known."},
		{"a part of one", observe.Drift{Nodes: 3, Unknown: []drift.Unknown{bios("n1")}}, "No drift on 2 nodes. 1 node was not seen whole: no drift in what was seen."},
		{"with changes", observe.Drift{Nodes: 3, Changes: []drift.Change{{Node: "n1"}}, Unknown: []drift.Unknown{bios("n1"), dead("n2")}}, "1 of 3 nodes have drifted: 1 change. 1 node was not seen whole. Nothing was seen of 1 node: whether it has drifted is not known."},
		{"not managed", observe.Drift{Nodes: 1, Unknown: []drift.Unknown{{Node: "n2", Kind: wire.ItemHardware, Unmanaged: true}}}, "No drift on 1 node. 1 node is neither accepted nor adopted."},
		{"a PDU and a switch", observe.Drift{Nodes: 2, Changes: []drift.Change{{Node: "n1"}, {Node: "r01/a", Of: subject.PDU}, {Node: "r01/a", Of: subject.PDU}}, Unknown: []drift.Unknown{{Node: "net/leaf-1", Of: subject.Switch}}},
			"1 of 2 nodes have drifted: 1 change. Beside nodes 1 part of the site has drifted: PDU r01/a. Not seen: switch net/leaf-1."},
		{"cables alone", observe.Drift{Nodes: 2, Changes: []drift.Change{{Node: "net/leaf-1/33", Of: subject.Link}, {Node: "compute", Of: subject.Fabric}}},
			"No drift on 2 nodes. Beside nodes 2 parts of the site have drifted: cable net/leaf-1/33, fabric compute."},
		{"none is managed", observe.Drift{}, "There is nothing to compare with: none of the nodes that were asked about is accepted or adopted."},
	} {
		if got := driftSummary(c.d); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}
