// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/fabric/infiniband"
	"github.com/ironrail/ironrail/fabric/nvlink"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/tool/ibnetdiscover"
	"github.com/ironrail/ironrail/tool/mlnxqos"
)

// room is a site of four nodes with two rails: a leaf for each rail, two spines, and two
// cables from each leaf to each spine.
type room struct {
	inv    *inventory.Inventory
	f      *inventory.Fabric
	leaves []*inventory.Switch
	spines []*inventory.Switch
}

func newRoom(kind string) *room {
	f := &inventory.Fabric{Block: inventory.Block{Kind: kind, Name: "net"}, Rails: 2, Topology: "explicit", Addressing: "subnet", CIDR: netip.MustParsePrefix("10.77.16.0/20"), MTU: 9000, Link: 400e9}
	h := &inventory.Hardware{Name: "h", GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "H100", Count: 8}}, NICs: []inventory.NIC{{Name: "rail", Fabric: f, Speed: 400e9, HCA: true, LinkType: map[string]string{"roce": "ethernet"}[kind],
		Ports: []inventory.NICPort{{Rail: 0, PCI: "0000:18:00.0"}, {Rail: 1, PCI: "0000:19:00.0"}}}}}
	r := &room{f: f, inv: &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}}
	boot := &inventory.Network{Name: "boot", CIDR: netip.MustParsePrefix("10.77.0.0/24")}
	add := func(name string, tier inventory.Tier) *inventory.Switch {
		s := &inventory.Switch{Name: "net/" + name, Fabric: f, Tier: tier, OS: "sonic", Model: "SN5600"}
		r.inv.Switches = append(r.inv.Switches, s)
		return s
	}
	for i := range 2 {
		r.leaves = append(r.leaves, add(fmt.Sprintf("leaf-%d", i+1), inventory.Leaf))
		r.spines = append(r.spines, add(fmt.Sprintf("spine-%d", i+1), inventory.Spine))
	}
	for i := range 4 {
		n := &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Hardware: h, Address: netip.AddrFrom4([4]byte{10, 77, 0, byte(11 + i)}), BootNetwork: boot}
		r.inv.Nodes = append(r.inv.Nodes, n)
		for rail := range 2 {
			r.inv.Cables = append(r.inv.Cables, &inventory.Cable{Fabric: f, From: inventory.CableEnd{Node: n, NIC: &h.NICs[0], Port: rail}, To: inventory.CableEnd{Switch: r.leaves[rail], Port: i + 1}})
		}
	}
	for i, leaf := range r.leaves {
		for k, spine := range r.spines {
			for c := range 2 {
				r.inv.Cables = append(r.inv.Cables, &inventory.Cable{Fabric: f, From: inventory.CableEnd{Switch: leaf, Port: 10 + 2*k + c}, To: inventory.CableEnd{Switch: spine, Port: 1 + 2*i + c}})
			}
		}
	}
	return r
}

// alone judges one value, which is the first.
func alone[T any](v T, judge func(T) verdict) ([4]T, func([4]T) verdict) {
	return [4]T{v, v, v, v}, func(four [4]T) verdict { return judge(four[0]) }
}

func causes(list []stage.Finding) (faults []string) {
	for _, f := range list {
		faults = append(faults, f.Cause)
	}
	return faults
}

// guidOf is the GUID of a port or a device by its name.
func guidOf(name string) addr.GUID {
	g := addr.GUID(0xb83fd20300000000)
	for i, c := range []byte(name) {
		g += addr.GUID(uint32(c) * uint32(i*i+17))
	}
	return g
}

// topology is what ibnetdiscover finds of a room, and the ports that its nodes said.
func (r *room) topology() (*ibnetdiscover.Topology, cabling.Known) {
	t, known := &ibnetdiscover.Topology{Form: ibnetdiscover.Records, Generated: "Fri Nov 27 03:00:00 2026", From: guidOf("n1/0")}, cabling.Known{}
	for i, s := range r.inv.Switches {
		name := strings.ReplaceAll(s.Name, "/", "-")
		t.Switches = append(t.Switches, ibnetdiscover.Switch{GUID: guidOf(s.Name), ID: fmt.Sprintf("S-%d", i), Name: "MF0;" + name + ":MQM9700/U1", Ports: 65, LID: i + 1, PortGUID: guidOf(s.Name), SystemGUID: guidOf(s.Name), VendorID: "0x2c9", DeviceID: "0xd2f2"})
	}
	for _, c := range r.inv.Cables {
		from := ibnetdiscover.End{}
		if n := c.From.Node; n != nil {
			name := fmt.Sprintf("%s/%d", n.Name, c.From.Port)
			from = ibnetdiscover.End{ID: "H-" + name, GUID: guidOf(name), Name: fmt.Sprintf("%s mlx5_%d", n.Name, c.From.Port), Port: 1}
			t.HCAs = append(t.HCAs, ibnetdiscover.HCA{GUID: from.GUID, ID: from.ID, Name: from.Name, Count: 1, Ports: []ibnetdiscover.Port{{Port: 1, GUID: guidOf(name + "/1"), LID: 100 + len(t.HCAs)}}, SystemGUID: from.GUID, VendorID: "0x2c9", DeviceID: "0x1021"})
			known[guidOf(name+"/1")] = cabling.Plug{Node: n, NIC: c.From.NIC, Port: c.From.Port}
		} else {
			from = ibnetdiscover.End{ID: "S", GUID: guidOf(c.From.Switch.Name), Name: c.From.Switch.Name, Port: c.From.Port}
		}
		t.Links = append(t.Links, ibnetdiscover.Link{From: from, To: ibnetdiscover.End{ID: "S", GUID: guidOf(c.To.Switch.Name), Name: c.To.Switch.Name, Port: c.To.Port}, Width: "4x", Speed: "NDR"})
	}
	return t, known
}

// TestSweep changes what a sweep of an InfiniBand fabric finds.
func TestSweep(t *testing.T) {
	t.Parallel()
	r := newRoom("infiniband")
	swept, known := r.topology()
	four, decide := alone(*swept, func(x ibnetdiscover.Topology) (v verdict) {
		got := cabling.CompareSweep(r.inv, r.f, known, &x)
		v.faults, v.notes = causes(got.Findings), got.Strange
		for _, c := range got.Results {
			if c.State != cabling.Conforms {
				v.notes = append(v.notes, c.Cable.Name()+": "+c.Why)
			}
		}
		return v
	})
	mutate(t, "ibnetdiscover", four, decide)
}

// TestLLDP changes whom the NICs of nodes hear.
func TestLLDP(t *testing.T) {
	t.Parallel()
	r := newRoom("roce")
	var four [4][]wire.Neighbour
	for i := range four {
		for rail, leaf := range r.leaves {
			four[i] = append(four[i], wire.Neighbour{NIC: fmt.Sprintf("eth%d", rail+1), PCI: fmt.Sprintf("0000:1%d:00.0", 8+rail), ChassisID: fmt.Sprintf("9c:05:91:00:00:0%d", rail), PortID: fmt.Sprintf("Ethernet%d", 8*i), SystemName: strings.ReplaceAll(leaf.Name, "/", "-")})
		}
	}
	mutate(t, "LLDP", four, func(four [4][]wire.Neighbour) (v verdict) {
		heard := map[string][]wire.Neighbour{}
		for i, list := range four {
			heard[fmt.Sprintf("n%d", i+1)] = list
		}
		got := cabling.CompareCables(r.inv, heard)
		for _, f := range got.Findings {
			v.faults = append(v.faults, f.Cause)
		}
		for _, c := range got.Results {
			if c.State == cabling.Unknown && c.Cable.Node != nil {
				v.notes = append(v.notes, c.Cable.Name()+": "+c.Why)
			}
		}
		return v
	})
}

// agentSays are nodes whose agent prints a value when it is called so.
func agentSays(words string, value any) *onnodetest.Nodes {
	return &onnodetest.Nodes{Rules: []onnodetest.Rule{func(_ context.Context, c onnodetest.Call) (onnode.Output, error, bool) {
		b, err := json.Marshal(value)
		return onnode.Output{Stdout: b}, err, strings.HasSuffix(c.Line(), words)
	}}}
}

// TestRoCE changes how the rails of a node are, as its agent says.
func TestRoCE(t *testing.T) {
	t.Parallel()
	r := newRoom("roce")
	r.f.Value = cty.ObjectVal(map[string]cty.Value{"lossless": cty.ObjectVal(map[string]cty.Value{"priority": cty.NumberIntVal(3)})})
	l, _ := roce.LosslessOf(r.f)
	rep := wire.RoCEResult{Conforms: true}
	for _, a := range roce.RailAddresses(r.f, r.inv.Nodes[0]) {
		s := wire.RoCESorting{Trust: "dscp", Paused: []int{l.Priority}, TrafficClass: l.DSCP<<2 | 2}
		s.Set(l.DSCP, l.Priority)
		s.Set(l.CNP, l.CNPPriority())
		rep.Ports = append(rep.Ports, wire.RoCEPortState{Rail: a.Rail, Netdev: fmt.Sprintf("eth%d", a.Rail+1), RDMADevice: fmt.Sprintf("mlx5_%d", a.Rail), GIDIndex: 3, GID: "::ffff:" + a.Address.Addr().String(), GIDType: "RoCE v2", State: "ACTIVE", MTU: 9000, ActiveMTU: 4096, Address: a.Address.String(), Sorting: &s})
	}
	four, decide := alone(rep, func(x wire.RoCEResult) (v verdict) {
		found, err := roce.New(agentSays("roce check", x)).Verify(t.Context(), onnodetest.NewRun(), r.f, r.inv.Nodes[0])
		if v.faults = causes(found); err != nil {
			v.faults = append(v.faults, err.Error())
		}
		return v
	})
	mutate(t, "RoCE", four, decide)
}

// TestInfiniBandPorts changes how the InfiniBand ports of a node are, as its agent says.
func TestInfiniBandPorts(t *testing.T) {
	t.Parallel()
	r := newRoom("infiniband")
	said, downed := wire.InfiniBand{}, int64(1)
	for rail := range 2 {
		said.Ports = append(said.Ports, wire.InfiniBandPort{Device: fmt.Sprintf("mlx5_%d", rail), PCI: fmt.Sprintf("0000:1%d:00.0", 8+rail), Number: 1, HCA: guidOf("n1").String(), GUID: guidOf(fmt.Sprintf("n1/%d/1", rail)).String(), Layer: "InfiniBand", State: "ACTIVE", Physical: "LinkUp",
			Rate: "400 Gb/sec (4X NDR)", LID: 7 + rail, PKeys: []uint16{0xffff}, Netdev: fmt.Sprintf("ib%d", rail), Downed: &downed})
	}
	four, decide := alone(said, func(x wire.InfiniBand) (v verdict) {
		seen, _, err := infiniband.New(r.inv, agentSays("infiniband", x), nil).Observe(t.Context(), onnodetest.NewRun(), r.f, r.inv.Nodes[0])
		if err != nil || seen.State != stage.Conforms {
			v.faults = append(v.faults, fmt.Sprint(seen.Evidence, err))
		}
		return v
	})
	mutate(t, "InfiniBand", four, decide)
}

// TestSwitchSettings changes what a switch has in its CONFIG_DB.
func TestSwitchSettings(t *testing.T) {
	t.Parallel()
	r := newRoom("roce")
	r.f.Value = cty.ObjectVal(map[string]cty.Value{"lossless": cty.ObjectVal(map[string]cty.Value{"priority": cty.NumberIntVal(3)})})
	list := sonic.Switches(r.inv, r.f, nil)
	s := list[slices.IndexFunc(list, func(s *sonic.Switch) bool { return s.Switch == r.leaves[0] })]
	four, decide := alone(s.Render(), func(have sonic.Config) (v verdict) {
		for _, d := range s.Compare(have) {
			v.faults = append(v.faults, d.String())
		}
		for _, port := range s.Absent(have) {
			v.faults = append(v.faults, port+" is not there")
		}
		return v
	})
	mutate(t, "SONiC", four, decide)
}

// bothEnds is how a node's port and the switch's treat RDMA, and how the two ends of a cable
// between switches do.
type bothEnds struct {
	Node   sonic.HostPort
	Switch sonic.QoS
	Trunk  sonic.QoS
}

// TestBothEnds changes one end of a cable.
func TestBothEnds(t *testing.T) {
	t.Parallel()
	r := newRoom("roce")
	r.f.Value = cty.ObjectVal(map[string]cty.Value{"lossless": cty.ObjectVal(map[string]cty.Value{"priority": cty.NumberIntVal(3)})})
	l, _ := roce.LosslessOf(r.f)
	list := sonic.Switches(r.inv, r.f, nil)
	s := list[slices.IndexFunc(list, func(s *sonic.Switch) bool { return s.Switch == r.leaves[0] })]
	full := s.Render()
	port, up := &s.Ports[0], s.Ports[len(s.Ports)-1]
	qos := &mlnxqos.QoS{Trust: "dscp", DSCP: map[string]int{fmt.Sprint(l.DSCP): l.Priority, fmt.Sprint(l.CNP): l.CNPPriority()}}
	for p := range 8 {
		qos.PFC = append(qos.PFC, p == l.Priority)
	}
	well := bothEnds{Node: sonic.HostPort{Name: port.Far.String(), QoS: qos, MTU: 9000, TrafficClass: l.DSCP<<2 | 2}, Switch: full.QoSOf(port.Name).Kept(l), Trunk: full.QoSOf(up.Name).Kept(l)}
	trunk := full.QoSOf(up.Name).Kept(l)
	four, decide := alone(well, func(x bothEnds) (v verdict) {
		for _, m := range s.CompareEnd(port, x.Switch, x.Node) {
			v.faults = append(v.faults, m.String())
		}
		v.faults = append(v.faults, sonic.CompareTrunk(trunk, x.Trunk)...)
		return v
	})
	mutate(t, "both ends", four, decide)
}

// domainSays is what a node's GPUs say, and the IMEX services of a domain of it.
type domainSays struct {
	Clique    nvlink.Clique
	IMEX      imexNode
	Timestamp string
	Status    string
}

type imexNode struct {
	Status   string
	Host     string
	Sees     []imexLink
	Version  string
	HostName string
}

type imexLink struct {
	Host    string `json:"host"`
	Status  string `json:"status"`
	Changed bool   `json:"changed"`
}

// print is what nvidia-imex-ctl -N -j prints, of which the last node says something else.
func (d domainSays) print(well imexNode) map[string]any {
	nodes := map[string]any{}
	for i := range 4 {
		n := well
		n.Host, n.HostName = trayHost(i), fmt.Sprintf("n%d", i+1)
		if i == 3 {
			n = d.IMEX
		}
		sees := map[string]imexLink{}
		for k, l := range n.Sees {
			sees[fmt.Sprint(k)] = l
		}
		nodes[fmt.Sprint(i)] = map[string]any{"status": n.Status, "host": n.Host, "version": n.Version, "hostName": n.HostName, "connections": sees}
	}
	return map[string]any{"nodes": nodes, "timestamp": d.Timestamp, "status": d.Status}
}

func trayHost(i int) string { return fmt.Sprintf("10.0.0.%d", 11+i) }

// trays are four nodes of one NVLink domain, of whom the first answers for IMEX.
func trays() (*inventory.Inventory, *inventory.Fabric, domainSays) {
	f := &inventory.Fabric{Block: inventory.Block{Kind: nvlink.Name, Name: "nv", Value: cty.ObjectVal(map[string]cty.Value{"imex": cty.True})}}
	h := &inventory.Hardware{Name: "tray", GPUs: []inventory.GPU{{Vendor: "nvidia", Model: "GB200", Count: 4, Interconnect: "nvlink"}}}
	inv := &inventory.Inventory{Fabrics: []*inventory.Fabric{f}}
	d := domainSays{Clique: nvlink.Clique{Cluster: "a000000-0000", ID: 7}, Timestamp: "9/4/2026 00:00:00.000", Status: "UP", IMEX: imexNode{Status: "READY", Host: trayHost(3), Version: "580.95.05", HostName: "n4"}}
	for i := range 4 {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Domain: "rack", Hardware: h, Image: &inventory.Image{}, Address: netip.MustParseAddr(trayHost(i)), Drivers: []*inventory.Driver{{Block: inventory.Block{Kind: "cuda", Name: "d"}}}})
		d.IMEX.Sees = append(d.IMEX.Sees, imexLink{Host: trayHost(3 - i), Status: "CONNECTED", Changed: true})
	}
	return inv, f, d
}

// TestDomain changes what the GPUs and the IMEX services of an NVLink domain say.
func TestDomain(t *testing.T) {
	t.Parallel()
	inv, f, says := trays()
	four, decide := alone(says, func(x domainSays) (v verdict) {
		run := onnodetest.NewRun()
		for i, n := range inv.Nodes {
			c := says.Clique
			if i == 3 {
				c = x.Clique
			}
			one, err := fact.Name[nvlink.Clique]("fabric.clique.nv").New(subject.OfNode(n.Name), c, "")
			if err == nil {
				err = run.Learn(t.Context(), one)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		k := nvlink.New(inv, agentSays("nvidia-imex-ctl -N -j", x.print(says.IMEX)))
		if err := k.ApplyStep(t.Context(), run, f, k.Steps(nil, f, k.Members(f), nil)[0]); err != nil {
			v.faults = append(v.faults, err.Error())
		}
		v.faults = append(v.faults, causes(run.Findings)...)
		return v
	})
	mutate(t, "domain", four, decide)
}
