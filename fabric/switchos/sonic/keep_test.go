// SPDX-License-Identifier: Apache-2.0

package sonic_test

import (
	"testing"

	"github.com/ironrail/ironrail/fabric/switchos/sonic"
)

// TestKept: all that may be written is kept, whatever the site says, and what was kept
// compares as the whole does; passwords are not.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, pairs := range [][]string{nil, {`ecn      = true`, `ecn = false`}, {`pfc      = true`, `pfc = false`}, {`"10.200.0.0/20"`, `"fd00:77::/56"`}, {`SN5400`, `AS9736-64D`}, {`"point-to-point"`, `"subnet"`}} {
		_, list := room(t, pairs...)
		for _, s := range list {
			want := s.Render()
			if got := want.Kept().JSON(); string(got) != string(want.JSON()) {
				t.Errorf("%v: %s: a field that is written is not kept:\n%s", pairs, s.Switch.Name, got)
			}
		}
	}
	_, list := room(t)
	s := leaf(t, list)
	have := s.Render()
	have["PORT"]["Ethernet0"]["mtu"], have["PORT"]["Ethernet0"]["lanes"] = "1500", "1,2"
	have["PORT_QOS_MAP"]["Ethernet8"]["pfc_enable"] = "3,4"
	delete(have, "SCHEDULER")
	have.Set("BGP_NEIGHBOR", "default|10.9.9.9", sonic.Entry{"auth_password": "p"})
	have.Set("RADIUS", "global", sonic.Entry{"passkey": "p"})
	kept := have.Kept()
	if a, b := s.Patch(have), s.Patch(kept); len(a) == 0 || string(a) != string(b) {
		t.Errorf("of the whole\n%s\nof what is kept\n%s", a, b)
	}
	if kept["RADIUS"] != nil || len(kept["BGP_NEIGHBOR"]["default|10.9.9.9"]) > 0 || kept["PORT"]["Ethernet0"]["lanes"] != "" {
		t.Errorf("kept: %v, %v", kept["RADIUS"], kept["BGP_NEIGHBOR"]["default|10.9.9.9"])
	}
}
