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

// lateRow is a kind of fault that can begin on a node in service, where a test plants it, and
// why it is not found where it is not.
type lateRow struct {
	fault string
	// At the last look: "" where the node is not accepted, or the part is named; after
	// acceptance: "" where drift names the part. Else why not.
	last, drift string
}

// Reasons.
const (
	underLoad = "it shows under load alone, and nothing is loaded after the tests"
	remembers = "chronyd remembers what servers answered the last eight times, nine minutes"
	noTest    = "it shows in bandwidths or clocks under load alone, and drift loads nothing: the next test finds it"
	elsewhere = "TestLateTrunks plants it where the site has such cables"
	byItself  = "TestSubnetManagerLost plants it by itself: no node of the fabric is accepted"
	expires   = "the lock of the account has expired by then"
)

// lateRows are those of one site each. Faults of a site are planted together, on several parts.
var lateRows = map[string][]lateRow{
	"hgx-h100": {
		{"kind=pcie-width,node=r01-u09,gpu=1", "", ""},
		{"kind=pcie-speed,node=r01-u09,gpu=2", "", ""},
		{"kind=gpu-xid,node=r01-u09,gpu=3", "", ""},
		{"kind=nvlink-down,node=r01-u09,gpu=4", "", ""},
		{"kind=nvlink-errors,node=r01-u09,gpu=5", underLoad, ""},
		{"kind=pcie-errors,node=r01-u09,gpu=6", underLoad, ""},
		{"kind=gpu-row-remap,node=r01-u09,gpu=7", "", ""},
		{"kind=degraded-link,node=r01-u09,port=rail/0", "", ""},
		{"kind=link-down,node=r01-u09,port=rail/1", "", ""},
		{"kind=warm-air,node=r01-u09", "", ""},
		{"kind=slow-gpu,node=r01-u17,gpu=0", underLoad, noTest},
		{"kind=dead-cores,node=r01-u17,gpu=1", underLoad, noTest},
		{"kind=hot-gpu,node=r01-u17,gpu=2", underLoad, noTest},
		{"kind=wrong-results,node=r01-u17,gpu=4", underLoad, noTest},
		{"kind=weak-hbm,node=r01-u17,gpu=3", underLoad, noTest},
		{"kind=missing-gpu,node=r01-u17,gpu=7", "", ""},
		{"kind=dimm-errors,node=r01-u17", underLoad, ""},
		{"kind=psu-lost,node=r01-u17", "", ""},
		{"kind=dead-fan,node=r01-u17", "", ""},
		{"kind=missing-nic,node=r01-u17,port=rail/2", "", ""},
		{"kind=odd-firmware,node=r01-u17,port=rail/3", "", ""},
		{"kind=high-ber,node=r01-u17,port=rail/4", underLoad, ""},
		{"kind=nvlink-unseated,node=r01-u25,gpu=0", "", ""},
		{"kind=worn-disk,node=r01-u25", "", ""},
		{"kind=no-time,node=r01-u25", remembers, ""},
		{"kind=bmc-dead,node=r01-u25", "", ""},
		{"kind=bmc-locked,node=r01-u01", "", expires},
		{"kind=cable-swap,node=r01-u17,with=r01-u25,port=rail/6", "", ""},
	},
	"mi300x-roce": {
		{"kind=rail-config,node=r01-u09", "", ""},
		{"kind=wrong-mtu,node=r01-u17,port=rail/1", "", ""},
		{"kind=wrong-optic,node=r02-u09,port=rail/2", "", ""},
		{"kind=bmc-wrong-password,node=r01-u25", "", ""},
		{"kind=pdu-trip,pdu=r02/a", "", ""},
	},
}

// lateReasons are those of kinds that are not planted by the table.
var lateReasons = map[fault.Kind]string{
	fault.BadUplink:   elsewhere,
	fault.ShelfSupply: "TestPowerShelves plants it where a site has power shelves",
	fault.SMDead:      byItself,
	fault.OtherSM:     byItself,
	fault.BadLeaf:     underLoad + "; " + noTest,
	fault.BadSpine:    underLoad + "; " + noTest,
	fault.SlowTrunk:   underLoad + "; " + noTest,
	fault.TrunkErrors: elsewhere,
	fault.DeadTrunk:   elsewhere,
}

// lateFaults are the faults of a site at a moment.
func lateFaults(t *testing.T, rows []lateRow, at string) (list []fault.Fault) {
	for _, r := range rows {
		list = append(list, planted(t, r.fault+",at="+at)...)
	}
	return list
}

// TestLateFaults: each kind that can begin late is in the table or has a reason. One that begins
// as its node is about to be accepted keeps the node out and is named; one that begins in service
// is found by drift; and one that is not found has a reason.
func TestLateFaults(t *testing.T) {
	t.Parallel()
	listed := map[fault.Kind]bool{}
	for site, rows := range lateRows {
		for _, f := range lateFaults(t, rows, fault.Accepted) {
			listed[f.Kind] = true
		}
		for _, at := range []string{"validate.accept", fault.Accepted} {
			t.Run(site+" "+at, func(t *testing.T) {
				t.Parallel()
				inv := load(t, "../../examples/"+site, nil)
				nodes := len(inv.Nodes)
				sum, err := rehearsal.Run(context.Background(), inv, rehearsal.Options{Seed: 3, Faults: lateFaults(t, rows, at)})
				if err != nil {
					t.Fatal(err)
				}
				if at == fault.Accepted && (len(sum.Accepted) != nodes || len(sum.Quarantined) > 0) {
					t.Errorf("%d of %d accepted before the faults began, quarantined %+v", len(sum.Accepted), nodes, sum.Quarantined)
				}
				for i, r := range rows {
					why := r.last
					if at == fault.Accepted {
						why = r.drift
					}
					if p := sum.Faults[i]; p.Found == (why != "") {
						t.Errorf("%s: found %t, and its reason is %q", r.fault, p.Found, why)
					}
				}
				for _, u := range sum.Unexpected {
					t.Errorf("unexpected %+v", u)
				}
			})
		}
	}
	for _, r := range fault.Rows() {
		if r.Serving && listed[r.Kind] == (lateReasons[r.Kind] != "") {
			t.Errorf("%s is in neither the table nor the reasons, or in both", r.Kind)
		}
		if !r.Serving && (listed[r.Kind] || lateReasons[r.Kind] != "") {
			t.Errorf("%s cannot begin late", r.Kind)
		}
	}
}

// TestClockLostUnderLoad: a node whose time servers answered at its health checks and do not when it is about to be accepted
// waits, and is not blamed: the servers may be at fault.
func TestClockLostUnderLoad(t *testing.T) {
	t.Parallel()
	sum, err := rehearsal.Run(context.Background(), load(t, "../../examples/hgx-h100", nil), rehearsal.Options{Seed: 3, Faults: planted(t, "kind=no-time,node=r01-u17,at=validate.burn")})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Accepted) != 3 || len(sum.Quarantined) != 0 || len(sum.Waiting) != 1 || sum.Waiting[0].Node != "r01-u17" || !strings.Contains(sum.Waiting[0].Cause, "none of its time servers answers, and that was not so at its health checks") {
		t.Errorf("accepted %v, quarantined %+v, waiting %+v", sum.Accepted, sum.Quarantined, sum.Waiting)
	}
}

// TestPassingFaults: a link that comes and goes after acceptance, and errors of links, GPUs and memory that do, are found
// by what was counted, though all is well when drift looks.
func TestPassingFaults(t *testing.T) {
	t.Parallel()
	faults := planted(t, "kind=link-down,node=r01-u09,port=rail/0,at=accepted,for=5s,every=1m,probability=0.4", "kind=high-ber,node=r01-u17,port=rail/1,at=accepted,after=2m,for=20s",
		"kind=nvlink-errors,node=r01-u25,gpu=5,at=accepted,for=20s,every=1m,probability=0.5", "kind=pcie-errors,node=r01-u25,gpu=6,at=accepted,after=1m,for=30s", "kind=dimm-errors,node=r01-u01,at=accepted,for=1m,every=3m")
	var drift [2]string
	for i := range drift {
		sum, err := rehearsal.Run(context.Background(), load(t, "../../examples/hgx-h100", nil), rehearsal.Options{Seed: 3, Faults: faults})
		if err != nil {
			t.Fatal(err)
		}
		if !sum.AsExpected() || len(sum.Accepted) != 4 {
			t.Errorf("%d accepted, unexpected %+v, faults %+v", len(sum.Accepted), sum.Unexpected, sum.Faults)
		}
		for _, d := range sum.Drift {
			drift[i] += strings.Join([]string{d.Node, d.Kind, d.Part, d.Name, d.Cause}, " ") + "\n"
			if d.Kind != "errors" && !strings.Contains(d.Cause, " counted ") {
				t.Errorf("%+v is no counter", d)
			}
		}
	}
	if drift[0] != drift[1] || !strings.Contains(drift[0], "link_downed") || !strings.Contains(drift[0], "symbol_error") {
		t.Errorf("drift of two rehearsals with one seed:\n%s\n%s", drift[0], drift[1])
	}
	for _, part := range []string{"replay errors", "memory", "0000:07:00.0"} {
		if !strings.Contains(drift[0], part) {
			t.Errorf("%s is not in\n%s", part, drift[0])
		}
	}
	if n := len(slices.Collect(strings.Lines(drift[0]))); n < 5 {
		t.Errorf("%d counters", n)
	}
}

// TestLateTrunks: a cable between switches that makes errors, has lost lanes or its link after acceptance is found by
// drift: by what both ends count, and by a sweep. Nothing else is.
func TestLateTrunks(t *testing.T) {
	t.Parallel()
	roce := readable(t)
	port, _ := firstTrunk(roce, 5)
	uplink, _ := firstTrunk(fourRacks(t), 5)
	for _, c := range []struct {
		inv         *inventory.Inventory
		fault, kind string
	}{{roce, "kind=trunk-errors,at=accepted,port=" + port, "errors"}, {fourRacks(t), "kind=bad-uplink,at=accepted,port=" + uplink, "cables"},
		{roce, "kind=dead-trunk,at=accepted,port=" + port, "cables"}, {fourRacks(t), "kind=dead-trunk,at=accepted,port=" + uplink, "cables"}} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			sum, err := rehearsal.Run(context.Background(), c.inv, rehearsal.Options{Seed: 3, Faults: planted(t, c.fault)})
			if err != nil {
				t.Fatal(err)
			}
			if !sum.AsExpected() || len(sum.Drift) == 0 {
				t.Errorf("unexpected %+v, faults %+v, drift %+v", sum.Unexpected, sum.Faults, sum.Drift)
			}
			for _, d := range sum.Drift {
				if d.Kind != c.kind {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}
