// SPDX-License-Identifier: Apache-2.0

package switchos

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/event"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/fabric/switchos/sonic"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/internal/subject"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
)

// place is one node on two leaves below a spine, and a stage.Run that remembers.
type place struct {
	stage.Run
	kind  *Kind
	f     *inventory.Fabric
	n     *inventory.Node
	facts map[fact.Key]fact.Fact
	found []stage.Finding
	notes []string
}

func (p *place) Fact(k fact.Key) (fact.Fact, bool) { f, ok := p.facts[k]; return f, ok }
func (p *place) Emit(e event.Event)                { p.notes = append(p.notes, e.Text) }
func (p *place) Blame(_ context.Context, f stage.Finding) error {
	p.found = append(p.found, f)
	return nil
}

func newPlace(t *testing.T) *place {
	t.Helper()
	f := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "x", Value: cty.ObjectVal(map[string]cty.Value{"lossless": cty.EmptyObjectVal})}, MTU: 9000, Rails: 2}
	hw := &inventory.Hardware{Name: "h", NICs: []inventory.NIC{{Name: "rail", HCA: true, Fabric: f, Ports: []inventory.NICPort{{Rail: 0, PCI: "a"}, {Rail: 1, PCI: "b"}}}}}
	p := &place{f: f, n: &inventory.Node{Name: "n1", Hardware: hw}, facts: map[fact.Key]fact.Fact{}}
	inv := &inventory.Inventory{Nodes: []*inventory.Node{p.n}, Fabrics: []*inventory.Fabric{f}}
	login := &inventory.Login{Name: "l", Username: "admin", Port: 22}
	for i, name := range []string{"net/leaf-1", "net/leaf-2", "net/spine"} {
		inv.Switches = append(inv.Switches, &inventory.Switch{Name: name, OS: "sonic", Model: "SN5600", Fabric: f, Login: login, Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
			Tier: []inventory.Tier{inventory.Leaf, inventory.Leaf, inventory.Spine}[i]})
	}
	spine := inv.Switches[2]
	for i, leaf := range inv.Switches[:2] {
		inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Node: p.n, NIC: &hw.NICs[0], Port: i}, To: inventory.CableEnd{Switch: leaf, Port: 1}},
			&inventory.Cable{From: inventory.CableEnd{Switch: leaf, Port: 2}, To: inventory.CableEnd{Switch: spine, Port: i + 1}})
	}
	p.kind = New(roce.New(nil), inv, nil, nil)
	for _, s := range p.kind.managed(f) {
		p.read(t, s, func(sonic.Config) {})
	}
	return p
}

// read lets a switch have been read as it should be, but for a change.
func (p *place) read(t *testing.T, s *sonic.Switch, change func(sonic.Config)) {
	t.Helper()
	have := s.Render()
	change(have)
	if err := recordObserved(t.Context(), learning{p}, s, have); err != nil {
		t.Fatal(err)
	}
}

type learning struct{ *place }

func (l learning) Learn(_ context.Context, fs ...fact.Fact) error {
	for _, f := range fs {
		l.facts[f.Key] = f
	}
	return nil
}

func (p *place) sw(name string) *sonic.Switch {
	list := p.kind.managed(p.f)
	return list[slices.IndexFunc(list, func(s *sonic.Switch) bool { return s.Switch.Name == name })]
}

// portStates is what a node says whose NICs are as the site wants them.
func portStates() (list []wire.RoCEPortState) {
	for rail := range 2 {
		list = append(list, wire.RoCEPortState{Rail: rail, Netdev: "ens1", MTU: 9000, Sorting: &wire.RoCESorting{Trust: "dscp", Priorities: map[int]int{26: 3, 48: 6}, Paused: []int{3}, TrafficClass: 106}})
	}
	return list
}

// TestEnds: a rail whose switch port is otherwise names node, rail, switch, port and
// both values; the switch is suspected, and the node is out of service by it.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(sonic.Config)
		want   string
	}{
		{"fits", func(sonic.Config) {}, ""},
		{"pfc", func(c sonic.Config) { c["PORT_QOS_MAP"]["Ethernet0"]["pfc_enable"] = "3,5" }, "rail 1 of n1 and port Ethernet0 of net/leaf-2 do not fit: the node pauses priorities [3], and the switch priorities [3 5]"},
		{"dscp", func(c sonic.Config) { c["DSCP_TO_TC_MAP"]["ROCE"]["26"] = "4" }, "DSCP 26 (RDMA) has priority 3 on the node and priority 4 on the switch"},
		{"mtu", func(c sonic.Config) { c["PORT"]["Ethernet0"]["mtu"] = "1500" }, "the node sends packets of 9000 bytes, and the switch takes 1500"},
		{"ecn", func(c sonic.Config) { delete(c["QUEUE"]["Ethernet0|3"], "wred_profile") }, "the switch does not mark queue 3"},
		{"watchdog", func(c sonic.Config) { delete(c["PFC_WD"], "Ethernet0") }, "without a watchdog"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.read(t, p.sw("net/leaf-2"), c.change)
			found, err := p.kind.ends(p, p.f, p.n, portStates())
			if err != nil || len(p.notes) > 0 {
				t.Fatal(err, p.notes)
			}
			if c.want == "" {
				if len(found) != 0 {
					t.Errorf("%+v", found)
				}
				return
			}
			if len(found) != 1 || !strings.Contains(found[0].Cause, c.want) {
				t.Fatalf("%+v", found)
			}
			f := found[0]
			if f.Suspects[0] != (stage.Suspect{Subject: subject.ID{Kind: subject.Switch, Name: "net/leaf-2"}, Part: "Ethernet0 (n1/rail/1)"}) || !slices.Equal(f.Affected, []subject.ID{subject.OfNode("n1")}) || f.Action == "" || len(f.Evidence) != 2 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestEndsUnknown: a switch that was never read blames nobody, and is said.
func TestEndsUnknown(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	delete(p.facts, ObservedFact.Of(Of(p.sw("net/leaf-1").Switch)))
	found, err := p.kind.ends(p, p.f, p.n, portStates())
	if err != nil || len(found) != 0 || len(p.notes) != 1 || !strings.Contains(p.notes[0], "rail 0 of n1 is not compared with net/leaf-1") {
		t.Errorf("%v %v %q", found, err, p.notes)
	}
}

// TestTrunks: a cable between two switches whose ends differ is found once; of a
// switch that does not conform nothing is said again.
func TestTrunks(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if o, err := p.kind.observeTrunks(p, p.f); err != nil || o.State != stage.Conforms || o.Evidence != "both ends of 2 cables fit" {
		t.Fatalf("%+v %v", o, err)
	}
	for _, conforms := range []bool{true, false} {
		p.found = nil
		wrong := ObservedState{Conforms: conforms, Ports: map[string]sonic.QoS{"Ethernet0": {MTU: 1500}, "Ethernet8": {Paused: []int{3}, MTU: 9100}}}
		f, err := ObservedFact.New(Of(p.sw("net/spine").Switch), wrong, "")
		if err != nil {
			t.Fatal(err)
		}
		p.facts[f.Key] = f
		err = p.kind.blameTrunks(t.Context(), p, p.f)
		switch {
		case !conforms && (err != nil || len(p.found) > 0):
			t.Errorf("an echo: %v %+v", err, p.found)
		case conforms && (errkind.Of(err) != errkind.Mismatch || len(p.found) != 1):
			t.Errorf("%v %+v", err, p.found)
		case conforms && (len(p.found[0].Suspects) != 2 || !strings.Contains(p.found[0].Cause, "the cable of net/leaf-1 Ethernet8 to net/spine Ethernet0 has two ends that do not fit: the first pauses priorities [3], and the second no priority")):
			t.Errorf("%+v", p.found[0])
		}
	}
}
