// SPDX-License-Identifier: Apache-2.0

package quirk

import (
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		bmc  BMC
		want Set
	}{
		{"nothing known", BMC{}, 0},
		{"ipmi_sim", BMC{Manufacturer: 0x1291, Product: 0x0f02}, DeviceOnly | NoDwell},
		{"other product of that maker", BMC{Manufacturer: 0x1291, Product: 1}, 0},
		{"Supermicro", BMC{Manufacturer: 10876, Product: 0x1234}, UEFIDisk24},
		{"Supermicro by its other number", BMC{Manufacturer: 47488}, UEFIDisk24},
		{"Lenovo by IPMI, where a reset is safe", BMC{Manufacturer: 19046}, LongDwell},
		{"Lenovo by Redfish", BMC{Vendor: "Lenovo", Model: "SR675 V3"}, LongDwell | NoRestart | NoContinuous},
		{"any Dell", BMC{Vendor: "Dell Inc.", Model: "PowerEdge R760"}, SerialIsSKU | SlotAccounts},
		{"one Dell", BMC{Vendor: "dell", Model: "poweredge xe9680"}, SerialIsSKU | SlotAccounts | NoPXE},
		{"HPE", BMC{Vendor: "HPE", Model: "ProLiant DL380"}, 0},
		{"DGX H100", BMC{Vendor: "NVIDIA", Model: "DGXH100"}, AnyMatch | NoRestart},
		{"a model without its vendor", BMC{Model: "DGXH100"}, 0},
	} {
		if got := Of(tt.bmc); got != tt.want {
			t.Errorf("%s: %b, want %b", tt.name, got, tt.want)
		}
	}
}

func TestFirmwareRange(t *testing.T) {
	t.Parallel()
	r := row{manufacturers: []uint32{1}, from: Firmware{1, 2}, before: Firmware{2, 0}}
	for fw, want := range map[Firmware]bool{{1, 1}: false, {1, 2}: true, {1, 99}: true, {2, 0}: false, {3, 0}: false} {
		if got := r.fits(BMC{Manufacturer: 1, Firmware: fw}); got != want {
			t.Errorf("%s: %t", fw, got)
		}
	}
}

func TestDwell(t *testing.T) {
	t.Parallel()
	for s, want := range map[Set]time.Duration{0: 5 * time.Second, LongDwell: 10 * time.Second, NoDwell: 0} {
		if got := s.Dwell(); got != want {
			t.Errorf("%b: %s", s, got)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, r := range table {
		if r.name == "" || names[r.name] || r.source == "" || r.quirks == 0 || len(r.manufacturers) == 0 && r.vendor == "" {
			t.Errorf("row %+v has no name of its own, no condition, source or quirk", r)
		}
		names[r.name] = true
	}
}
