// SPDX-License-Identifier: Apache-2.0

package install

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// TestTPM: a TPM that is missing or of another version is a fault where the hardware block asks
// for one, and nothing is said where the kernel does not report one.
func TestTPM(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ asked, found, want string }{
		{"2.0", "2.0", ""}, {"", wire.NoTPM, ""}, {"2.0", "", ""},
		{"2.0", wire.NoTPM, "there is no TPM, or the firmware hides it"}, {"2.0", "1.2", "of version 1.2; hardware.h says 2.0"},
	} {
		n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{Name: "h", TPM: c.asked, Boot: inventory.BootUEFI}}
		faults := CompareHardware(n, wire.Hardware{TPM: c.found})
		switch {
		case c.want == "" && len(faults) > 0, c.want != "" && (len(faults) != 1 || faults[0].Part != "TPM" || !strings.Contains(faults[0].Found, c.want)):
			t.Errorf("asked %q, found %q: %+v", c.asked, c.found, faults)
		}
	}
}

// TestSplitNIC: the second port of a cage that is split may be missing until the card is set;
// not that of a card that is gone, of one that is not split, or where another tool installs.
func TestSplitNIC(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		split, ours bool
		there       string
		want        int // faults
	}{
		{true, true, "0000:18:00.0", 0}, {true, true, "0000:18:00.0 0000:18:00.1", 0}, {true, true, "", 1}, {true, true, "0000:18:00.1", 1},
		{false, true, "0000:18:00.0", 1}, {true, false, "0000:18:00.0", 1},
	} {
		nic := inventory.NIC{Name: "rail", Ports: []inventory.NICPort{{PCI: "0000:18:00.0"}, {PCI: "0000:18:00.1", Rail: 1}}}
		if c.split {
			nic.Split = 2
		}
		n := &inventory.Node{Name: "n1", Hardware: &inventory.Hardware{Name: "h", NICs: []inventory.NIC{nic}}}
		if c.ours {
			n.Image = &inventory.Image{}
		}
		var hw wire.Hardware
		for _, pci := range strings.Fields(c.there) {
			hw.NICs = append(hw.NICs, wire.NIC{PCI: pci})
		}
		if got := compareNICs(n, hw); len(got) != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

func TestSameBus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		want, got string
		same      bool
	}{
		{"", "hdd", true}, {"nvme", "nvme", true}, {"virtio", "virtio", true}, {"sata", "ssd", true}, {"sata", "hdd", true}, {"sas", "ssd", true},
		{"nvme", "ssd", false}, {"sata", "nvme", false}, {"virtio", "hdd", false},
	}
	for _, tt := range tests {
		if got := sameBus(tt.want, tt.got); got != tt.same {
			t.Errorf("type %q for a disk %q: %v", tt.want, tt.got, got)
		}
	}
}
