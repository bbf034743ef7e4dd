// SPDX-License-Identifier: Apache-2.0

package install

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestNameForCommand: a role that is meant whole is named as such.
func TestNameForCommand(t *testing.T) {
	t.Parallel()
	r := &inventory.Role{Name: "worker"}
	inv := &inventory.Inventory{}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: name, Role: r})
	}
	for n, want := range map[int]string{1: "a", 3: "a,b,c", 4: "NODE,...", 5: "role.worker"} {
		if got := nameForCommand(inv, inv.Nodes[:n]); got != want {
			t.Errorf("%d nodes of 5: %s, want %s", n, got, want)
		}
	}
}
