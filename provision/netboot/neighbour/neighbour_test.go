// SPDX-License-Identifier: Apache-2.0

package neighbour

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/provision/netboot/boot"
)

const table = `IP address       HW type     Flags       HW address            Mask     Device
10.0.0.1         0x1         0x2         02:00:00:00:00:fe     *        eth0
10.0.0.2         0x1         0x2         02:00:00:00:00:fd     *        eth0
10.0.0.11        0x1         0x2         02:00:00:00:00:0b     *        eth0
10.0.0.12        0x1         0x2         02:00:00:00:00:66     *        eth0
10.0.0.13        0x1         0x0         00:00:00:00:00:00     *        eth0
10.0.0.14        0x1         0x2         02:00:00:00:00:fe     *        eth0
10.0.0.15        0x1         0x2         02:00:00:00:00:fd     *        eth0
10.0.0.16        0x1         0x6         02:00:00:00:00:67     *        eth0
broken
`

func TestOtherOwner(t *testing.T) {
	t.Parallel()
	n := &Table{Routers: []netip.Addr{netip.MustParseAddr("10.0.0.2")}, read: func() ([]byte, error) { return []byte(table), nil }}
	for _, tt := range []struct {
		name, address, want string
	}{
		{"its own MAC", "10.0.0.11", ""},
		{"another MAC", "10.0.0.12", "02:00:00:00:00:66"},
		{"another MAC, set by hand", "10.0.0.16", "02:00:00:00:00:67"},
		{"nobody answers", "10.0.0.13", ""},
		{"not in the table", "10.0.9.9", ""},
		{"the gateway answers for it", "10.0.0.14", ""},
		{"a relay answers for it", "10.0.0.15", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := netip.MustParseAddr(tt.address)
			c := boot.Client{Address: netip.PrefixFrom(a, 24), Gateway: netip.MustParseAddr("10.0.0.1"), MACs: []addr.MAC{{2, 0, 0, 0, 0, 0x0b}}}
			got := ""
			if m, other := n.OtherOwner(c); other {
				got = m.String()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestKernelsTable: the file of this kernel is read.
func TestKernelsTable(t *testing.T) {
	t.Parallel()
	if b, err := new(Table).load(); err != nil || !strings.HasPrefix(string(b), "IP address") {
		t.Errorf("%.80q, %v", b, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(table))
	f.Fuzz(func(t *testing.T, b []byte) {
		for a, m := range parseTable(b) {
			if !a.IsValid() || len(m) != 6 {
				t.Errorf("%v %v", a, m)
			}
		}
	})
}
