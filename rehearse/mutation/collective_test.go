// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/unit"
	judges "github.com/ironrail/ironrail/validate/collective/verdict"
	"github.com/ironrail/ironrail/validate/gate"
	"github.com/ironrail/ironrail/validate/grouprun"
	"github.com/ironrail/ironrail/validate/nccl"
	"github.com/ironrail/ironrail/validate/target"
)

// ran is what came of a run of a collective.
type ran struct {
	Got         nccl.Measured
	Failed      bool // the program ended with an error
	ThroughHost bool // the log says of a node that its rails do not reach the memory of GPUs
	NoNVLink    bool // the log says of a node that it does not use the NVLink between nodes
}

// collectives are the runs that are about one node, one pair, one domain or one unit of four;
// those over all nodes are one run each.
type collectives struct {
	Node, Pair, Domain, Unit, All ran
	// The further operations, over pairs and over all nodes.
	AllGather, AllToAll, ReduceScatter, SendRecv   ran
	AllGatherOverAll, ReduceScatterOverAll, Wanted ran
}

// runOf is how one of them is made.
type runOf struct {
	name, scope, does string
	nodes             int // of each run
	once              bool
	model             string
	busbw             float64 // bytes per second
	result            func(*collectives) *ran
}

// runsOf are figures of healthy clusters: of eight H100 476 GB/s within a node and 387 over
// rails of 400 Gb/s (validate/floor has the sources), 838 over two trays of GB200.
var runsOf = []runOf{
	{"Node", "node", "", 1, false, "H100", 476e9, func(c *collectives) *ran { return &c.Node }},
	{"Pair", "pair", "", 2, false, "H100", 387e9, func(c *collectives) *ran { return &c.Pair }},
	{"Domain", grouprun.Domain, "", 2, false, "GB200", 838e9, func(c *collectives) *ran { return &c.Domain }},
	{"Unit", "unit", "", 4, false, "H100", 384e9, func(c *collectives) *ran { return &c.Unit }},
	{"All", "all", "", 8, true, "H100", 384e9, func(c *collectives) *ran { return &c.All }},
	{"AllGather", "pair", "all_gather", 2, false, "H100", 380e9, func(c *collectives) *ran { return &c.AllGather }},
	{"AllToAll", "pair", "alltoall", 2, false, "H100", 88e9, func(c *collectives) *ran { return &c.AllToAll }},
	{"ReduceScatter", "pair", "reduce_scatter", 2, false, "H100", 381e9, func(c *collectives) *ran { return &c.ReduceScatter }},
	{"SendRecv", "pair", "sendrecv", 2, false, "H100", 47e9, func(c *collectives) *ran { return &c.SendRecv }},
	{"AllGatherOverAll", "all", "all_gather", 8, true, "H100", 380e9, func(c *collectives) *ran { return &c.AllGatherOverAll }},
	{"ReduceScatterOverAll", "all", "reduce_scatter", 8, true, "H100", 381e9, func(c *collectives) *ran { return &c.ReduceScatterOverAll }},
	{"Wanted", "all", "sendrecv", 8, true, "H100", 46e9, func(c *collectives) *ran { return &c.Wanted }},
}

// bench judges runs of collectives as the test of a group does.
type bench struct {
	run  *onnodetest.Run
	h100 *inventory.Hardware
	tray *inventory.Hardware
	job  *target.Job
}

func newBench(t *testing.T) *bench {
	t.Helper()
	f := &inventory.Fabric{Block: inventory.Block{Kind: "infiniband", Name: "compute"}, Rails: 8, CIDR: netip.MustParsePrefix("10.77.16.0/20")}
	chassis := func(model string, count, rails int) *inventory.Hardware {
		nic := inventory.NIC{Name: "rail", Fabric: f, Speed: 400e9, HCA: true, LinkType: "infiniband", Model: "ConnectX-7"}
		for r := range rails {
			nic.Ports = append(nic.Ports, inventory.NICPort{Rail: r})
		}
		return &inventory.Hardware{Name: model, NICs: []inventory.NIC{nic}, GPUs: []inventory.GPU{{Vendor: "nvidia", Model: model, Count: count}}}
	}
	b := &bench{run: onnodetest.NewRun(), h100: chassis("H100", 8, 8), tray: chassis("GB200", 4, 4)}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}
	v := &inventory.Validation{Name: "gold", AllReduce: &inventory.CollectiveTest{Scope: []string{"node", "pair", "unit", "all"}, Operations: inventory.Operations},
		Limits: []inventory.MeasureLimit{{Name: "sendrecv.busbw", AtLeast: &unit.Quantity{Value: 40e9, Dimension: unit.Throughput}}}}
	b.job = &target.Job{Inv: inv, Run: b.run, Target: target.Target{Group: &target.Group{Set: "all", Validation: v}}}
	for set := range 4 {
		for i := range 8 {
			for _, h := range []*inventory.Hardware{b.h100, b.tray} {
				fact, err := gate.Fact.New(subject.OfNode(memberName(h, set, i)), gate.Report{Near: true}, "")
				if err == nil {
					err = b.run.Learn(t.Context(), fact)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return b
}

func memberName(h *inventory.Hardware, set, i int) string {
	return fmt.Sprintf("%s-%d-%d", h.Name, set+1, i+1)
}

// runs are four runs of a kind that gave these results, or the one over all nodes.
func (b *bench) runs(kind runOf, got []ran) (list []*grouprun.Run) {
	h := b.h100
	if kind.model == "GB200" {
		h = b.tray
	}
	for set, g := range got {
		r := &grouprun.Run{Scope: kind.scope, Does: kind.does, Size: 8 << 30, Got: g.Got}
		if g.Failed {
			r.Err = errors.New("mpirun ended with status 3")
		}
		for i := range kind.nodes {
			r.Nodes = append(r.Nodes, &inventory.Node{Name: memberName(h, set, i), Hardware: h, Domain: map[bool]string{true: "rack"}[h == b.tray]})
		}
		if first := memberName(h, set, 0); g.ThroughHost {
			r.Got.Indirect = map[string]string{first: "no connection via GDRDMA"}
		} else if g.NoNVLink {
			r.Got.Outside = map[string]string{first: "no line MNNVL"}
		}
		if list = append(list, r); kind.once {
			break
		}
	}
	return list
}

// judge adds what the runs of a kind are judged to be.
func (b *bench) judge(v *verdict, test *judges.Test, kind runOf, got []ran) {
	list := b.runs(kind, got)
	test.Evaluate(list)
	for i, r := range list {
		if r.Why != "" {
			v.add(map[bool]string{true: "n1"}[i == 0], kind.name+": "+r.Why)
		}
	}
}

// TestCollectives changes what runs of collectives gave, of every scope and operation.
func TestCollectives(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var four [4]collectives
	for i := range four {
		for _, kind := range runsOf {
			m := nccl.Measured{BusBW: kind.busbw * (1 - 0.002*float64(i)), Library: "2.28.9+cuda13.0"}
			if kind.does == "" {
				m.Algorithm = map[string]string{"node": "NVLS", "pair": "Ring"}[kind.scope]
			}
			*kind.result(&four[i]) = ran{Got: m}
		}
	}
	var elsewhere []string
	for _, kind := range runsOf {
		if kind.scope != grouprun.Domain {
			elsewhere = append(elsewhere, kind.name+".NoNVLink")
		}
	}
	mutate(t, "collectives", four, func(four [4]collectives) (v verdict) {
		test := judges.New(b.job)
		for _, kind := range runsOf {
			var got []ran
			for i := range four {
				got = append(got, *kind.result(&four[i]))
			}
			b.judge(&v, test, kind, got)
		}
		return v
	}, elsewhere...)
}
