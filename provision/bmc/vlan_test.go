// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerVLAN: the VLAN that is set at ipmi_sim is read as ipmitool reads it.
func TestPeerVLAN(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "ipmitool")
	s := startSim(t)
	for _, c := range []struct {
		id   int
		low  string // of the bytes of parameter 20
		high string
		says string
	}{{0, "0x00", "0x00", "Disabled"}, {30, "0x1e", "0x80", "30"}, {4094, "0xfe", "0x8f", "4094"}, {0, "0x1e", "0x00", "Disabled"}} {
		s.ipmitool("raw", "0x0c", "0x01", "0x01", "0x14", c.low, c.high)
		session, err := Open(t.Context(), s.target(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := session.drv.(VLANTagger).VLAN(t.Context())
		if err != nil || got != c.id {
			t.Errorf("VLAN %d: %d, %v", c.id, got, err)
		}
		if err := session.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if text := s.ipmitool("lan", "print", "1"); !strings.Contains(text, "802.1q VLAN ID          : "+c.says+"\n") {
			t.Errorf("ipmitool shows\n%s", text)
		}
	}
}
