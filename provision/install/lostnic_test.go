// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// TestLostBootNIC: where the card with the boot NIC is gone, it is the card that is missing,
// once, and no chassis that is another; a boot NIC that was exchanged is left to the
// identity gate.
func TestLostBootNIC(t *testing.T) {
	t.Parallel()
	mac := func(text string) addr.MAC {
		a, err := addr.ParseMAC(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	n := &inventory.Node{Name: "n1", BootMAC: mac("02:00:00:00:00:01"), Hardware: &inventory.Hardware{Name: "h", NICs: []inventory.NIC{
		{Name: "mgmt", Ports: []inventory.NICPort{{PCI: "0000:29:00.1"}}},
		{Name: "storage", Ports: []inventory.NICPort{{PCI: "0000:29:00.0", Panel: "slot 1/1"}, {PCI: "0000:82:00.0"}}},
	}}}
	all := []wire.NIC{{PCI: "0000:29:00.0", MAC: mac("02:00:00:00:00:02")}, {PCI: "0000:29:00.1", MAC: n.BootMAC}, {PCI: "0000:82:00.0", MAC: mac("02:00:00:00:00:03")}}
	other := append([]wire.NIC{all[0], {PCI: "0000:29:00.1", MAC: mac("02:00:00:00:00:09")}}, all[2])
	for name, c := range map[string]struct {
		nics []wire.NIC
		want string // parts
	}{
		"whole":                    {all, ""},
		"the card is gone":         {all[2:], "nic storage/0 (slot 1/1)"},
		"only the boot NIC's":      {[]wire.NIC{all[0], all[2]}, "nic mgmt/0"},
		"another card is gone":     {all[:2], ""}, // the boot NIC is there: the comparison of hardware says it
		"the boot NIC was changed": {other, ""},
	} {
		var parts []string
		for _, f := range lostBootNIC(n, wire.Hardware{NICs: c.nics}) {
			parts = append(parts, f.Part)
			if name == "the card is gone" && !strings.Contains(f.Found, "with it mgmt/0 at 0000:29:00.1, of the same card") {
				t.Errorf("%s: %s", name, f.Found)
			}
		}
		if got := strings.Join(parts, " "); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
