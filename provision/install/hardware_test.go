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
