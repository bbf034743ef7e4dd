// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"testing"

	"github.com/ironrail/ironrail/fabric/cabling"
)

// TestPeerSwitchCounters: what the real ibqueryerrors says of a simulated fabric is read
// for both ends of a cable between two switches, and of every other end too.
func TestPeerSwitchCounters(t *testing.T) {
	t.Parallel()
	w := plugIn(room(t, 9, 2, "[]"), plain)
	s := simulate(t, w)
	h := s.host(w.ids["head1/sm/0"])
	sub := h.subnet(w.inv)
	swept, err := sub.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := sub.Files(w.members, swept)
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Load(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	var trunk cabling.Cable
	ends := 0
	for _, c := range cabling.IntendedOf(w.inv, w.inv.Fabrics[0]) {
		if c.Node == nil {
			trunk, ends = c, ends+2
		}
	}
	low, high := trunk.Name(), trunk.Switch.Name
	upper := cabling.End{Switch: high, Number: trunk.Number}.String()
	s.do(`PerformanceSet %q[%d] PortCountersExtended.PortXmitPkts=1000000`, w.ids[trunk.Low.Switch], trunk.Low.Number)
	s.do(`PerformanceSet %q[%d] PortCountersExtended.PortRcvPkts=1000000`, w.ids[high], trunk.Number)
	s.do(`PerformanceSet %q[%d] PortCounters.SymbolErrorCounter=3`, w.ids[high], trunk.Number)
	s.do(`PerformanceSet %q[%d] PortCounters.PortRcvErrors=2`, w.ids[high], trunk.Number)
	got, err := New(w.inv, nil, func(string) Host { return h }).SwitchCounters(t.Context(), w.inv.Fabrics[0])
	if err != nil {
		t.Fatal(err)
	}
	// What the programs ask of the switches is counted as well, in tens of packets.
	a, b := got[low], got[upper]
	if len(got) != ends || a.Sent/1000 != 1000 || a.Received > 1000 || a.Errors != 0 || b.Received/1000 != 1000 || b.Sent > 1000 || b.Errors != 5 {
		t.Errorf("%d ports of %d, %s %+v, %s %+v", len(got), ends, low, a, upper, b)
	}
}
