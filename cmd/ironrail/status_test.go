// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/engine/state"
	"github.com/ironrail/ironrail/engine/why"
)

// TestManyNodesAreCounted: nobody counts thousands of lines.
func TestManyNodesAreCounted(t *testing.T) {
	t.Parallel()
	var nodes []state.Node
	for i := range 60 {
		n := state.Node{Name: fmt.Sprintf("n%d", i), Accepted: i >= 5}
		switch i {
		case 1, 10: // one of them was accepted before
			n.Hold = &state.Hold{By: "ops"}
		case 2:
			n.Quarantine = &state.Quarantine{}
		}
		nodes = append(nodes, n)
	}
	for _, tt := range []struct {
		nodes int
		want  string
	}{
		{60, "60 nodes: 54 accepted, 2 held, 1 quarantined, 3 not accepted yet. `ironrail why` groups"},
		{40, ""},
	} {
		var b bytes.Buffer
		writeStatus(&b, newSiteStatus(why.Site{Nodes: nodes[:tt.nodes], Now: fixtureTime}, nil), fixtureTime)
		lines := strings.Split(b.String(), "\n")
		if tt.want == "" && strings.Contains(b.String(), "nodes:") || !strings.HasPrefix(lines[1], tt.want) {
			t.Errorf("%d nodes: %q", tt.nodes, lines[1])
		}
		if n := strings.Count(b.String(), "\nn"); n != tt.nodes {
			t.Errorf("%d lines of nodes, want %d", n, tt.nodes)
		}
	}
}
