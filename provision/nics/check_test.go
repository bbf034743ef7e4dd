// SPDX-License-Identifier: Apache-2.0

package nics

import (
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/inventory"
)

func ranges(names ...string) map[string]hcl.Range {
	all := map[string]hcl.Range{}
	for i, name := range names {
		all[name] = hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: 10 + i}}
	}
	return all
}

// TestCheck: what a card does not have, what would take a node's way to boot, and what
// nothing on a node can write is refused where it is written.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*inventory.Inventory, *inventory.Hardware)
		want   string // summary; empty: nothing is found
		detail string
	}{
		{"right", func(*inventory.Inventory, *inventory.Hardware) {}, "", ""},
		{"Ethernet alone", func(_ *inventory.Inventory, h *inventory.Hardware) { h.NICs[0].LinkType = "infiniband" }, "Link type that the card has not", "ConnectX-6 Lx"},
		{"another vendor", func(_ *inventory.Inventory, h *inventory.Hardware) { h.NICs[1].Model = "BCM57608" }, "Setting of another vendor's card", `"BCM57608"`},
		{"no model", func(_ *inventory.Inventory, h *inventory.Hardware) { h.NICs[1].Model = "" }, "Setting of an unknown card", "Give model"},
		{"no address", func(_ *inventory.Inventory, h *inventory.Hardware) { h.NICs[2].Ports[1].PCI = "" }, "Setting of a card without an address", `link_type of hca "storage"`},
		{"boot NIC", func(_ *inventory.Inventory, h *inventory.Hardware) { h.NICs[0].OptionROM = ptr(false) }, "Option ROM of the boot NIC", "0000:29:00.0"},
		{"same card as the boot NIC", func(_ *inventory.Inventory, h *inventory.Hardware) { h.NICs[0].Ports[0].PCI = "0000:18:00.1" }, "Option ROM of the boot NIC", "0000:18:00.0"},
		{"no boot NIC", func(_ *inventory.Inventory, h *inventory.Hardware) { h.NICs[0].Boot = false }, "Option ROM off without a boot NIC", "boot = true"},
		{"two settings", func(_ *inventory.Inventory, h *inventory.Hardware) {
			h.NICs[2].Ports[0].PCI, h.NICs[2].OptionROM = "0000:18:00.0", ptr(true)
		}, "Two settings of one card", "EXP_ROM_PXE_ENABLE"},
		{"no program", func(inv *inventory.Inventory, _ *inventory.Hardware) { inv.Nodes[0].Drivers = nil }, "Program for NIC settings is missing", `"mstflint"`},
		{"program of the image", func(inv *inventory.Inventory, _ *inventory.Hardware) {
			inv.Nodes[0].Drivers, inv.Nodes[0].Image.Packages = nil, []string{"mstflint=4.21.0+1-1"}
		}, "", ""},
		{"program of a driver", func(inv *inventory.Inventory, _ *inventory.Hardware) {
			inv.Nodes[0].Drivers[0].Kind, inv.Nodes[0].Drivers[0].Packages = "inbox", []string{"rdma-core", "mstflint"}
		}, "", ""},
		{"image of somebody else", func(inv *inventory.Inventory, _ *inventory.Hardware) {
			inv.Nodes[0].Drivers, inv.Nodes[0].Image.Source = nil, "https://x/y"
		}, "", ""},
		{"mode of ConnectX", func(_ *inventory.Inventory, h *inventory.Hardware) {
			h.DPUs = []inventory.DPU{{Name: "bf", Model: "ConnectX-7", Mode: "nic", PCI: []string{"0000:3b:00.0"}, Ranges: ranges("mode")}}
		}, "Mode of a card that has none", `"BlueField-3"`},
		{"mode without address", func(_ *inventory.Inventory, h *inventory.Hardware) {
			h.DPUs = []inventory.DPU{{Name: "bf", Model: "BlueField-3", Mode: "nic", Ranges: ranges("mode")}}
		}, "Setting of a card without an address", `mode of dpu "bf"`},
		{"count of DPUs", func(_ *inventory.Inventory, h *inventory.Hardware) {
			h.DPUs = []inventory.DPU{{Name: "bf", Model: "BlueField-3", Mode: "nic", Count: 2, PCI: []string{"0000:3b:00.0"}, Ranges: ranges("mode", "count")}}
		}, "Count and addresses that differ", "count = 2"},
		{"split", func(_ *inventory.Inventory, h *inventory.Hardware) { splitStorage(h, 2) }, "", ""},
		{"split in two blocks", func(_ *inventory.Inventory, h *inventory.Hardware) {
			splitStorage(h, 2)
			other := h.NICs[2]
			h.NICs[2].Ports, other.Ports, other.Name = h.NICs[2].Ports[:1], other.Ports[1:], "other"
			h.NICs = append(h.NICs, other)
		}, "", ""},
		{"split that is not published", func(_ *inventory.Inventory, h *inventory.Hardware) { splitStorage(h, 3) }, "Split that the model has not", "the cage of a ConnectX-8 is split into 2 or 4 ports"},
		{"split of an old model", func(_ *inventory.Inventory, h *inventory.Hardware) {
			splitStorage(h, 2)
			h.NICs[2].Model = "ConnectX-6"
		}, "Split that the model has not", "no split of a ConnectX-6 is published"},
		{"split with a port too few", func(_ *inventory.Inventory, h *inventory.Hardware) { splitStorage(h, 4) }, "Split that does not fit the ports", "the one at 0000:2a:00.2 is in no block"},
		{"split with a port too many", func(_ *inventory.Inventory, h *inventory.Hardware) {
			splitStorage(h, 2)
			h.NICs[2].Ports = append(h.NICs[2].Ports, inventory.NICPort{Rail: 3, PCI: "0000:2a:00.2"})
		}, "Split that does not fit the ports", "has 2 ports then"},
		{"split of the boot NIC", func(_ *inventory.Inventory, h *inventory.Hardware) {
			splitStorage(h, 2)
			h.NICs[0].Boot, h.NICs[1].OptionROM, h.NICs[2].Boot = false, nil, true
		}, "Split that does not fit the ports", "nodes boot from the card at 0000:2a:00.0"},
		{"split of another vendor", func(_ *inventory.Inventory, h *inventory.Hardware) {
			splitStorage(h, 2)
			h.NICs[2].Model, h.NICs[2].LinkType = "BCM57608", ""
		}, "Setting of another vendor's card", `split of hca "storage"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inv := site(hardware("infiniband", ptr(false)))
			c.change(inv, inv.Hardware[0])
			found := Check(inv)
			switch {
			case c.want == "" && len(found) > 0:
				t.Errorf("found %v", found)
			case c.want != "" && (len(found) != 1 || found[0].Summary != c.want || !strings.Contains(found[0].Detail, c.detail)):
				t.Errorf("found %v", found)
			}
		})
	}
}

// splitStorage has the card with two functions split into so many ports.
func splitStorage(h *inventory.Hardware, into int) {
	h.NICs[2].Model, h.NICs[2].Split = "ConnectX-8", into
}
