// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
)

// readable is a site of three leaves and two spines of RoCE, whose switches can be asked
// what they count.
func readable(t *testing.T) *inventory.Inventory {
	t.Helper()
	return otherExample(t, "csv-12500",
		"fabric \"roce\" \"compute\" {", "login \"sonic\" {\n  username = \"admin\"\n  password = secret(\"env:SONIC_PASSWORD\")\n}\n\nfabric \"roce\" \"compute\" {\n  login = login.sonic",
		"    name   = \"leaf-1\"\n", "    name   = \"leaf-1\"\n    address = cidrhost(network.oob.cidr, 100000 + rack.number)\n",
		"    unit     = 1 + 3 * each.value\n", "    unit     = 1 + 3 * each.value\n    address  = cidrhost(network.oob.cidr, 101000 + each.value)\n")
}

// firstTrunk is the lower end of the nth cable between two switches, and the switch above.
func firstTrunk(inv *inventory.Inventory, nth int) (low, high string) {
	for _, c := range inv.Cables {
		if c.From.Switch != nil && c.To.Switch != nil {
			if nth == 0 {
				return c.From.String(), c.To.Switch.Name
			}
			nth--
		}
	}
	return "", ""
}

// trunkFound wants one finding about no node, and every node accepted.
func trunkFound(t *testing.T, sum rehearsal.Summary, nodes int, part string) {
	t.Helper()
	if len(sum.Accepted) != nodes || len(sum.Waiting) != 0 || len(sum.Quarantined) != 0 || len(sum.Findings) != 1 || len(sum.Unexpected) != 0 {
		t.Fatalf("%d accepted, waiting %+v, quarantined %+v, findings %+v, unexpected %+v", len(sum.Accepted), sum.Waiting, sum.Quarantined, sum.Findings, sum.Unexpected)
	}
	if g := sum.Findings[0]; g.Part != part || len(g.Evidence) < 2 || g.Action == "" || !strings.Contains(g.Action, "No node was taken out") {
		t.Errorf("%+v", g)
	}
}

// TestTrunks: a cable between a leaf and a spine, and a spine, are named where the
// switches say what they count, by the ways of transfers; where nobody can ask them, what
// goes up from the leaf and the spines of the fabric. No node is taken out.
func TestTrunks(t *testing.T) {
	t.Parallel()
	low, _ := firstTrunk(readable(t), 5)
	_, spine := firstTrunk(readable(t), 0)
	leaf := low[:strings.LastIndexByte(low, '/')]
	for _, tt := range []struct{ name, fault, part string }{
		{"slow cable", "kind=slow-trunk,port=" + low, low},
		{"cable with errors", "kind=trunk-errors,port=" + low, low},
		{"spine", "kind=bad-spine,switch=" + spine, spine + " what goes over it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			slow(t)
			trunkFound(t, rehearsed(t, readable(t), tt.fault), 24, tt.part)
		})
	}
	for _, tt := range []struct{ name, fault, part string }{
		{"slow cable of switches without a login", "kind=slow-trunk,port=" + low, leaf + " uplinks"},
		{"spine without a login", "kind=bad-spine,switch=" + spine, "compute spines"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			slow(t)
			trunkFound(t, rehearsed(t, load(t, "../../examples/csv-12500", nil), tt.fault), 24, tt.part)
		})
	}
}

// TestDeadTrunk: a cable between two switches without a link is named by both of its ports, by the sweep of InfiniBand and by
// what SONiC's switches show, from the start and where it goes as nodes are about to be accepted. No node is taken out.
func TestDeadTrunk(t *testing.T) {
	t.Parallel()
	for name, inv := range map[string]*inventory.Inventory{"SONiC": readable(t), "InfiniBand": fourRacks(t)} {
		port, _ := firstTrunk(inv, 5)
		_, far := endsOf(inv, port)
		for _, at := range []string{"", ",at=validate.accept"} {
			t.Run(name+at, func(t *testing.T) {
				t.Parallel()
				slow(t)
				sum := rehearsed(t, inv, "kind=dead-trunk,port="+port+at)
				if len(sum.Accepted) != len(inv.Nodes) || len(sum.Waiting) != 0 || len(sum.Quarantined) != 0 || len(sum.Findings) != 1 || len(sum.Unexpected) != 0 || !sum.Faults[0].Found {
					t.Fatalf("%d accepted, waiting %+v, quarantined %+v, findings %+v, unexpected %+v", len(sum.Accepted), sum.Waiting, sum.Quarantined, sum.Findings, sum.Unexpected)
				}
				if g := sum.Findings[0]; !strings.Contains(g.Cause, port) || !strings.Contains(g.Cause, far) || !strings.Contains(g.Cause, "has no") || g.Action == "" {
					t.Errorf("%+v, want both %s and %s", g, port, far)
				}
			})
		}
	}
}

// TestTrunksByAllReduce: where all-reduces alone test InfiniBand, the cable and the spine
// are named as well, whether or not the run over all nodes went over them.
func TestTrunksByAllReduce(t *testing.T) {
	t.Parallel()
	second, spine := firstTrunk(fourRacks(t), 12)
	first, _ := firstTrunk(fourRacks(t), 16)
	for _, tt := range []struct{ name, fault, part string }{
		{"slow cable", "kind=slow-trunk,port=" + second, second},
		{"cable with errors", "kind=trunk-errors,port=" + first, first},
		{"spine", "kind=bad-spine,switch=" + spine, spine + " what goes over it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			slow(t)
			trunkFound(t, rehearsed(t, fourRacks(t), tt.fault), 16, tt.part)
		})
	}
	t.Run("slow cable and a bad rail", func(t *testing.T) {
		t.Parallel()
		slow(t)
		sum := rehearsed(t, fourRacks(t), "kind=slow-trunk,port="+second, "kind=degraded-link,node=r03-u10,port=rail/2")
		if len(sum.Accepted) != 15 || len(sum.Quarantined) != 1 || sum.Quarantined[0].Node != "r03-u10" || len(sum.Findings) != 1 || sum.Findings[0].Part != second {
			t.Errorf("%d accepted, quarantined %+v, findings %+v", len(sum.Accepted), sum.Quarantined, sum.Findings)
		}
	})
}

// TestAllCrossingsByAllReduce: when all that crosses leaves is slow, it is one finding about
// the fabric, and about no node and no switch.
func TestAllCrossingsByAllReduce(t *testing.T) {
	t.Parallel()
	slow(t)
	var all []string
	for i := range 5 {
		all = append(all, fmt.Sprintf("kind=bad-spine,switch=net/spine-%d", i+1))
	}
	sum, err := rehearsal.Run(context.Background(), fourRacks(t), rehearsal.Options{Seed: 7, Faults: planted(t, all...)})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != 16 || len(sum.Quarantined) != 0 || len(sum.Findings) != 1 || sum.Findings[0].Part != "compute spines" || !strings.Contains(sum.Findings[0].Cause, "every transfer between leaves of fabric compute is bad") {
		t.Errorf("%d accepted, quarantined %+v, findings %+v", len(sum.Accepted), sum.Quarantined, sum.Findings)
	}
}
