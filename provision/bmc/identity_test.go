// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"slices"
	"testing"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/ironrail/ironrail/internal/peertest/ipmisim"
	"github.com/ironrail/ironrail/provision/bmc/quirk"
)

func TestGUIDMatch(t *testing.T) {
	t.Parallel()
	const uuid = "00112233-4455-6677-8899-aabbccddeeff"
	smbios := GUID{0x33, 0x22, 0x11, 0, 0x55, 0x44, 0x77, 0x66, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	network := GUID{0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	reversed := network
	slices.Reverse(reversed[:])
	var ones GUID
	for i := range ones {
		ones[i] = 0xff
	}
	tests := []struct {
		name  string
		guid  GUID
		uuid  string
		order string
		ok    bool
	}{
		{"smbios", smbios, uuid, "smbios", true},
		{"network", network, uuid, "rfc4122", true},
		{"reversed", reversed, uuid, "ipmi", true},
		{"upper case and spaces", smbios, " 00112233-4455-6677-8899-AABBCCDDEEFF\n", "smbios", true},
		{"no dashes", smbios, "00112233445566778899aabbccddeeff", "smbios", true},
		{"other", smbios, "10112233-4455-6677-8899-aabbccddeeff", "", false},
		{"not set", GUID{}, "00000000-0000-0000-0000-000000000000", "", false},
		{"not set, ones", ones, "ffffffff-ffff-ffff-ffff-ffffffffffff", "", false},
		{"short", smbios, "001122", "", false},
		{"no uuid", smbios, "n1", "", false},
	}
	for _, tt := range tests {
		if order, ok := tt.guid.Match(tt.uuid); order != tt.order || ok != tt.ok {
			t.Errorf("%s: got %q %t, want %q %t", tt.name, order, ok, tt.order, tt.ok)
		}
	}
	if smbios.String() != uuid {
		t.Errorf("String() = %s", smbios)
	}
}

func TestSelector(t *testing.T) {
	t.Parallel()
	d := &ipmiDriver{quirks: quirk.UEFIDisk24}
	for _, tt := range []struct {
		uefi bool
		want types.BootDeviceSelector
	}{{true, types.BootDeviceSelectorForceRemoteMedia}, {false, types.BootDeviceSelectorForceHardDrive}} {
		if got, err := d.selector("disk", tt.uefi); err != nil || got != tt.want {
			t.Errorf("uefi=%t: %#x, %v", tt.uefi, got, err)
		}
	}
}

func TestJudgeBoot(t *testing.T) {
	t.Parallel()
	pxe := types.BootDeviceSelectorForcePXE
	asked := Boot{Device: PXE, Once: true, UEFI: true}
	good := types.BootOptionParam_BootFlags{BootFlagsValid: true, BIOSBootType: true, BootDeviceSelector: pxe}
	change := func(f func(*types.BootOptionParam_BootFlags)) types.BootOptionParam_BootFlags {
		c := good
		f(&c)
		return c
	}
	tests := []struct {
		name string
		got  types.BootOptionParam_BootFlags
		want Verdict
	}{
		{"as asked", good, Verified},
		{"not valid", change(func(f *types.BootOptionParam_BootFlags) { f.BootFlagsValid = false }), Contradicted},
		{"legacy", change(func(f *types.BootOptionParam_BootFlags) { f.BIOSBootType = false }), Contradicted},
		{"persistent", change(func(f *types.BootOptionParam_BootFlags) { f.Persist = true }), Contradicted},
		{"other device", change(func(f *types.BootOptionParam_BootFlags) { f.BootDeviceSelector = 5 }), Contradicted},
	}
	for _, tt := range tests {
		if out := (&ipmiDriver{}).judgeBoot(asked, pxe, tt.got); out.Verdict != tt.want {
			t.Errorf("%s: %+v, want %s", tt.name, out, tt.want)
		}
	}
}

func FuzzFRU(f *testing.F) {
	image := ipmisim.FRU("SYS-1", "BRD-1")
	f.Add(image[8:])
	f.Add(ipmisim.FRUArea([]byte{1, 0, 0x17}, "part", "serial"))
	f.Add(ipmisim.FRUArea([]byte{1, 0, 0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= 8 && len(b) <= 2040 { // make most inputs pass the outer checks
			b = append([]byte(nil), b[:len(b)/8*8]...)
			b[0], b[1] = 1, byte(len(b)/8)
			b[len(b)-1] = 0
			b[len(b)-1] = ipmisim.Checksum(b)
		}
		var id Identity
		for _, area := range fruAreas {
			_ = area.parse(b, &id)
		}
	})
}

func FuzzGuard(f *testing.F) {
	f.Add([]byte{6, 0, 0xff, 7, 6, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1, 2})
	f.Add([]byte{6, 0, 0xff, 7, 6, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0x11})
	f.Add([]byte{6, 0, 0xff, 7, 6, 0x13, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		g := &guard{suite: 17, username: "u", console: make([]byte, 16)}
		if g.admit(b) == nil && b[rmcpHeader+1]&0x3f == 0 {
			t.Fatal("an answer without keys was let through")
		}
		g.k1, g.k2 = make([]byte, 32), make([]byte, 32)
		_ = g.admit(b)
	})
}

func FuzzSEL(f *testing.F) {
	f.Add([]byte{1, 0, 2, 0, 0, 0, 0, 0x20, 0, 4, 0x0c, 1, 0x6f, 1, 0xff, 0xff})
	f.Add([]byte{2, 0, 0xc0, 1, 2, 3, 4})
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = selEntry(b) })
}

// What makers write before they know a serial number is none.
func TestSerialBlank(t *testing.T) {
	t.Parallel()
	for serial, want := range map[string]string{"S48": "S48", "To be filled by O.E.M.": "", " Default string ": "", "0": "", "": "", "NA12": "NA12"} {
		if got := (Identity{ProductSerial: serial}).Serial(); got != want {
			t.Errorf("%q: %q, want %q", serial, got, want)
		}
	}
}
