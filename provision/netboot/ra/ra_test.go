// SPDX-License-Identifier: Apache-2.0

package ra

import (
	"bytes"
	"net"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
)

// TestAdvertisement is the packet that was seen to end iPXE's wait: 16 bytes,
// all zero but type and hop limit; the kernel adds the checksum.
func TestAdvertisement(t *testing.T) {
	t.Parallel()
	want := []byte{134, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if got := packAdvertisement(); !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSolicitation(t *testing.T) {
	t.Parallel()
	mac := addr.MAC{0x52, 0x54, 0, 0x99, 0, 0x11}
	linkLocal := &net.IPAddr{IP: net.ParseIP("fe80::5054:ff:fe99:11")}
	head := []byte{133, 0, 0, 0, 0, 0, 0, 0}
	with := func(b ...byte) []byte { return append(bytes.Clone(head), b...) }
	tests := []struct {
		name string
		b    []byte
		from net.Addr
		mac  addr.MAC
		ok   bool
	}{
		{"iPXE's", with(1, 1, 0x52, 0x54, 0, 0x99, 0, 0x11), linkLocal, mac, true},
		{"no option, MAC from the address", head, linkLocal, mac, true},
		{"no option, unspecified source", head, &net.IPAddr{IP: net.IPv6unspecified}, addr.MAC{}, true},
		{"private address", head, &net.IPAddr{IP: net.ParseIP("fe80::1234")}, addr.MAC{}, true},
		{"unknown option before", with(14, 1, 0, 0, 0, 0, 0, 0, 1, 1, 0x52, 0x54, 0, 0x99, 0, 0x11), nil, mac, true},
		{"option of length 0", with(1, 0, 0, 0, 0, 0, 0, 0), linkLocal, addr.MAC{}, false},
		{"option past the end", with(1, 2, 0, 0, 0, 0, 0, 0), linkLocal, addr.MAC{}, false},
		{"short", head[:7], linkLocal, addr.MAC{}, false},
		{"an advertisement", packAdvertisement(), linkLocal, addr.MAC{}, false},
		{"code 1", []byte{133, 1, 0, 0, 0, 0, 0, 0}, linkLocal, addr.MAC{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mac, ok := parseSolicitation(tt.b, tt.from)
			if ok != tt.ok || ok && mac != tt.mac {
				t.Errorf("got %s, %v, want %s, %v", mac, ok, tt.mac, tt.ok)
			}
		})
	}
}

func FuzzSolicitation(f *testing.F) {
	f.Add([]byte{133, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 3, 4, 5, 6}, []byte(net.ParseIP("fe80::5054:ff:fe99:11")))
	f.Fuzz(func(t *testing.T, b, ip []byte) { parseSolicitation(b, &net.IPAddr{IP: ip}) })
}
