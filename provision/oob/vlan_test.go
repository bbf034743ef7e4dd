// SPDX-License-Identifier: Apache-2.0

package oob

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
)

// TestJudgeVLAN: the vlan of a bmc block is what the BMC has to tag with; that of its network alone
// leaves open whether the switch does. Each command in what to do can be run as it stands.
func TestJudgeVLAN(t *testing.T) {
	t.Parallel()
	const ten, eleven, off = "`ipmitool lan set 1 vlan id 10`", "`ipmitool lan set 1 vlan id 11`", "`ipmitool lan set 1 vlan id off`"
	plain, tagged := &inventory.Network{Name: "oob"}, &inventory.Network{Name: "oob", VLAN: 11}
	for name, c := range map[string]struct {
		profile *inventory.BMCProfile
		network *inventory.Network
		shown   int
		cause   string // "": it fits
		do      []string
	}{
		"the profile's":           {&inventory.BMCProfile{Name: "b", VLAN: 10}, plain, 10, "", nil},
		"another":                 {&inventory.BMCProfile{Name: "b", VLAN: 10}, plain, 12, "its BMC tags frames with VLAN 12, and bmc.b has vlan = 10", []string{ten}},
		"untagged, profile":       {&inventory.BMCProfile{Name: "b", VLAN: 10}, plain, 0, "its BMC sends untagged frames, and bmc.b has vlan = 10", []string{ten}},
		"the network's":           {&inventory.BMCProfile{Name: "b"}, tagged, 11, "", nil},
		"untagged, network":       {&inventory.BMCProfile{Name: "b"}, tagged, 0, "", nil},
		"another network's":       {&inventory.BMCProfile{Name: "b"}, tagged, 12, "its BMC tags frames with VLAN 12, and its network oob has vlan = 11", []string{eleven, off}},
		"no profile":              {nil, tagged, 12, "its network oob has vlan = 11", []string{eleven, off}},
		"no vlan in the files":    {&inventory.BMCProfile{Name: "b"}, plain, 12, "", nil},
		"no network, no vlan":     {&inventory.BMCProfile{Name: "b"}, nil, 12, "", nil},
		"no network, the profile": {&inventory.BMCProfile{Name: "b", VLAN: 10}, nil, 12, "bmc.b has vlan = 10", []string{ten}},
	} {
		n := &inventory.Node{BMC: inventory.BMCTarget{Profile: c.profile, Network: c.network}}
		cause := judgeVLAN(n, c.shown)
		if !strings.Contains(cause, c.cause) || (cause == "") != (c.cause == "") {
			t.Errorf("%s: %q, want %q", name, cause, c.cause)
		}
		for _, command := range c.do {
			if got := correctVLAN(n); !strings.Contains(got, command) {
				t.Errorf("%s: %q, want %s", name, got, command)
			}
		}
	}
}
