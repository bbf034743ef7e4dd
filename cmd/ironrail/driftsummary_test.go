// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

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

// TestDriftUnread: a source that cannot be read is named, by kind and reason, in words and in JSON, and the command does
// not end well; drift that was found beside it counts more.
func TestDriftUnread(t *testing.T) {
	t.Parallel()
	change := drift.Change{Node: "n1", Kind: drift.BIOS, Name: "SMT", Was: "On", Is: "Off"}
	for _, c := range []struct {
		name    string
		changes []drift.Change
		unknown []drift.Unknown
		code    int
		says    string
	}{
		{"all was read", nil, nil, 0, "No drift on 2 nodes."},
		{"BMC", nil, []drift.Unknown{{Node: "n1", Kind: drift.BIOS, Why: "no route"}}, exitSomeFailed, "n1: bios was not seen: no route"},
		{"node", nil, []drift.Unknown{{Node: "n1", Kind: wire.ItemHardware, Why: "no route"}}, exitSomeFailed, "n1: its system was not seen: no route"},
		{"PDU", nil, []drift.Unknown{{Node: "r01/a", Of: subject.PDU, Kind: drift.Power, Why: "no answer to SNMP"}}, exitSomeFailed, "PDU r01/a: power was not seen: no answer to SNMP"},
		{"switch", nil, []drift.Unknown{{Node: "net/leaf-1", Of: subject.Switch, Kind: drift.Errors, Why: "connection broke"}}, exitSomeFailed, "switch net/leaf-1: errors was not seen: connection broke"},
		{"subnet manager", nil, []drift.Unknown{{Node: "compute", Of: subject.Fabric, Kind: drift.Settings, Why: "ibnetdiscover ended"}}, exitSomeFailed, "fabric compute: settings was not seen: ibnetdiscover ended"},
		{"drift beside it", []drift.Change{change}, []drift.Unknown{{Node: "r01/a", Of: subject.PDU, Kind: drift.Power, Why: "no answer to SNMP"}}, exitChanges, "Not seen: PDU r01/a."},
	} {
		d := observe.Drift{Nodes: 2, Changes: c.changes, Unknown: c.unknown}
		code, ended := 0, exit{}
		if errors.As(driftExit(d), &ended) {
			code = ended.code
		}
		if code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.name, code, c.code)
		}
		var out bytes.Buffer
		a := &app{out: &out, now: time.Now}
		writeDrift(a, d)
		if !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %q is not in\n%s", c.name, c.says, out.String())
		}
		out.Reset()
		if err := a.printJSON(d); err != nil {
			t.Fatal(err)
		}
		var read struct{ Unknown []drift.Unknown }
		if err := json.Unmarshal(out.Bytes(), &read); err != nil || len(read.Unknown) != len(c.unknown) || len(c.unknown) > 0 && read.Unknown[0] != c.unknown[0] {
			t.Errorf("%s: %+v of %s, %v", c.name, read, out.String(), err)
		}
	}
}
