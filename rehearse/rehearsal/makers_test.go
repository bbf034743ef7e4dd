// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// TestMakers: the whole way with the BMCs of every maker, their quirks switched
// on, and every way to boot.
func TestMakers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, vendor, product, protocol string
		boot                            inventory.Firmware
	}{
		{"supermicro", "Supermicro", "SYS-821GE-TNHR", "redfish", inventory.BootUEFI},
		{"supermicro http", "Supermicro", "SYS-821GE-TNHR", "redfish", inventory.BootUEFIHTTP},
		{"dell XE9680", "Dell Inc.", "PowerEdge XE9680", "redfish", inventory.BootUEFIHTTP},
		{"dgx", "NVIDIA", "DGXH100", "redfish", inventory.BootUEFI},
		{"openbmc", "Example", "board", "redfish", inventory.BootUEFI},
		{"openbmc bios", "Example", "board", "redfish", inventory.BootBIOS},
		{"ipmi", "Supermicro", "SYS-821GE-TNHR", "ipmi", inventory.BootUEFI},
		{"ipmi suite 3", "Example", "board", "ipmi", inventory.BootBIOS},
		{"a service of the site", "Example", "board", "rpc", inventory.BootUEFI},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv := load(t, demo, nil)
			for _, h := range inv.Hardware {
				h.Vendor, h.Product, h.Boot = tt.vendor, tt.product, tt.boot
			}
			for _, n := range inv.Nodes {
				if n.BMC.Protocol = tt.protocol; tt.protocol == "ipmi" {
					n.BMC.Port, n.BMC.CipherSuite = 623, 17
				}
				if tt.protocol == "rpc" {
					n.BMC.Endpoint = "https://10.99.0.9:8443/power"
				}
				if tt.name == "ipmi suite 3" {
					n.BMC.CipherSuite = 3
				}
			}
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 5})
			if err != nil {
				t.Fatal(err)
			}
			if len(sum.Accepted) != len(inv.Nodes) {
				t.Errorf("accepted %v", sum.Accepted)
				for _, q := range sum.Quarantined {
					t.Logf("%+v", q)
				}
			}
		})
	}
}
