// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestBootNIC: of a NIC with two ports that may boot none is said to be the one.
func TestBootNIC(t *testing.T) {
	t.Parallel()
	for want, nics := range map[string][]inventory.NIC{
		"":       {{Name: "rail", Ports: make([]inventory.NICPort, 8)}},
		"mgmt/0": {{Name: "rail"}, {Name: "mgmt", Boot: true, Ports: make([]inventory.NICPort, 1)}},
		"mgmt":   {{Name: "mgmt", Boot: true, Ports: make([]inventory.NICPort, 2)}},
	} {
		if got := findBootNIC(&inventory.Hardware{NICs: nics}); got != want {
			t.Errorf("%+v: %q, want %q", nics, got, want)
		}
	}
}
