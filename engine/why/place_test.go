// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/control"
	"github.com/ironrail/ironrail/engine/state"
)

// TestBootNICOfSeveralPorts: the cables of all ports that may boot are shown.
func TestBootNICOfSeveralPorts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	w := control.Why{Node: state.Node{Name: "n1"}, Place: &control.Place{Rack: "r", Unit: 1, BootNIC: "mgmt", BootMAC: "02:00:00:00:00:01",
		Ports: []control.Port{{Port: "mgmt/0", To: "leaf-1/1"}, {Port: "mgmt/1", To: "leaf-2/1"}, {Port: "mgmt2/0", To: "leaf-3/1"}}}}
	text := ExplainNode(w, false, now).Text(now)
	for _, want := range []string{"boot NIC mgmt 02:00:00:00:00:01\n", "mgmt/0   to leaf-1/1", "mgmt/1   to leaf-2/1"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "to leaf-3/1") {
		t.Errorf("another NIC is shown:\n%s", text)
	}
}
