// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
)

// TestTripOfTheOnlyFeed: nodes that lose all power at once are one finding about
// their PDU, none about them, and the rack beside them goes on.
func TestTripOfTheOnlyFeed(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"install.netboot", "install.write", "drivers.rdma", "validate.pair"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			inv := load(t, demo, nil)
			for _, n := range inv.Nodes {
				n.Validation.Quorum = 50
				for i := range n.Feeds {
					n.Feeds[i].PDU = n.Rack.PDUs[0]
				}
			}
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3, Faults: []fault.Fault{{Kind: fault.PDUTrip, PDU: "r01/a", At: at}}})
			if err != nil {
				t.Fatal(err)
			}
			want := nodesOf(inv, "r02")
			if !slices.Equal(sum.Accepted, want) || len(sum.Quarantined) != 0 || len(sum.Waiting) != 4 {
				t.Errorf("accepted %v, quarantined %+v, waiting %v", sum.Accepted, sum.Quarantined, sum.Waiting)
			}
			for _, w := range sum.Waiting {
				if !strings.Contains(w.Cause, "r01/a") {
					t.Errorf("%s waits because: %s", w.Node, w.Cause)
				}
			}
			if !sum.AsExpected() {
				t.Errorf("not as expected: %+v", sum.Faults)
			}
			about := 0
			for _, f := range sum.Findings {
				if strings.Contains(f.Part, "r01/a") {
					about++
				} else {
					t.Errorf("a finding about %s: %s", f.Part, f.Cause)
				}
			}
			if about == 0 {
				t.Error("no finding about the PDU")
			}
		})
	}
}

// TestTripBehindSwitches: a PDU that feeds switches alone is read, and its trip is one
// finding that costs no node.
func TestTripBehindSwitches(t *testing.T) {
	t.Parallel()
	inv := load(t, demo, nil)
	of := map[string]*inventory.Rack{}
	for _, r := range inv.Racks {
		of[r.Name] = r
	}
	p, control := *of["r01"].PDUs[0], *of["r01"].PDUs[0].Control
	control.Address = of["r02"].PDUs[1].Control.Address.Next()
	p.Name, p.Rack, p.Control = "net/a", of["net"], &control
	of["net"].PDUs = append(of["net"].PDUs, &p)
	for _, s := range inv.Switches {
		s.Power, s.Feeds = 1500, []inventory.Feed{{Supply: "psu1", PDU: &p}}
	}
	sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 4, Faults: []fault.Fault{{Kind: fault.PDUTrip, PDU: "net/a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != len(inv.Nodes) || len(sum.Findings) != 1 || !strings.Contains(sum.Findings[0].Part, "net/a") || !sum.AsExpected() {
		t.Errorf("%d accepted, quarantined %+v, waiting %+v, findings %+v", len(sum.Accepted), sum.Quarantined, sum.Waiting, sum.Findings)
	}
}

// TestPowerShelves: what is wrong with a power shelf costs no node, and is one finding: the
// whip that it has no input of, or its supply, also once the nodes are in service.
func TestPowerShelves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ fault, part, cause string }{
		{"kind=pdu-trip,pdu=r01/w1", "r01/w1", "no supply of power shelf r01/ps1 has input"},
		{"kind=shelf-supply,shelf=r02/ps3", "r02/ps3 supply PSU3", "it has failed"},
		{"kind=shelf-supply,shelf=r02/ps3,at=accepted", "", ""},
		{"kind=pdu-trip,pdu=r02/w8,at=accepted", "", ""},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			t.Parallel()
			inv := ofExample(t, "nvl72")
			sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 4, Faults: planted(t, tt.fault)})
			if err != nil {
				t.Fatal(err)
			}
			if len(sum.Accepted) != len(inv.Nodes) || !sum.AsExpected() {
				t.Errorf("%d accepted, quarantined %+v, waiting %+v, faults %+v, unexpected %+v", len(sum.Accepted), sum.Quarantined, sum.Waiting, sum.Faults, sum.Unexpected)
			}
			if tt.cause == "" {
				return // drift has named it
			}
			if len(sum.Findings) != 1 || sum.Findings[0].Part != tt.part || !strings.Contains(sum.Findings[0].Cause, tt.cause) {
				t.Errorf("findings %+v", sum.Findings)
			}
		})
	}
}

func nodesOf(inv *inventory.Inventory, rack string) (names []string) {
	for _, n := range inv.Nodes {
		if n.Rack.Name == rack {
			names = append(names, n.Name)
		}
	}
	return names
}
