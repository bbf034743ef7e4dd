// SPDX-License-Identifier: Apache-2.0

package wiring

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/fabric/cabling"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/lldp"
)

// room is a site of nodes with two rails. With cables, node i is in port i of
// net/leaf-1 and net/leaf-2; without, the fabric has no switches.
func room(nodes int, os string, cabled bool) *inventory.Inventory {
	fab := &inventory.Fabric{Block: inventory.Block{Kind: "roce", Name: "compute"}, Rails: 2, Topology: "explicit"}
	hw := &inventory.Hardware{Name: "h", NICs: []inventory.NIC{{Name: "rail", HCA: true, Fabric: fab, Speed: 400e9, Ports: []inventory.NICPort{
		{Rail: 0, PCI: "0000:18:00.0", Panel: "OSFP 1/1"}, {Rail: 1, PCI: "0000:2a:00.0", Panel: "OSFP 1/2"}}}}}
	rack := &inventory.Rack{Name: "net"}
	inv := &inventory.Inventory{Racks: []*inventory.Rack{rack}, Fabrics: []*inventory.Fabric{fab}}
	for i := range nodes {
		inv.Nodes = append(inv.Nodes, &inventory.Node{Name: fmt.Sprintf("n%d", i+1), Hardware: hw})
	}
	if !cabled {
		return inv
	}
	for rail := range 2 {
		label := fmt.Sprintf("leaf-%d", rail+1)
		s := &inventory.Switch{Name: "net/" + label, Label: label, OS: os, Model: "SN5600", Ports: 8, Fabric: fab}
		rack.Switches = append(rack.Switches, s)
		for i, n := range inv.Nodes {
			inv.Cables = append(inv.Cables, &inventory.Cable{
				To: inventory.CableEnd{Node: n, NIC: &hw.NICs[0], Port: rail}, From: inventory.CableEnd{Switch: s, Port: i + 1},
			})
		}
	}
	return inv
}

// nics are a node's NICs.
func nics(node string) []NIC {
	return []NIC{{"ens1", "0000:18:00.0", Port{node, "rail", 0}}, {"ens2", "0000:2a:00.0", Port{node, "rail", 1}}}
}

// heard is what all nodes hear.
func heard(p *Plant, inv *inventory.Inventory) map[string][]wire.Neighbour {
	all := map[string][]wire.Neighbour{}
	for _, n := range inv.Nodes {
		all[n.Name] = p.Neighbours(nics(n.Name))
	}
	return all
}

// TestDetectorFindsTheSwap: what the plant says, in the names of each switch
// system, the detector understands; it finds the two cables that are exchanged.
func TestDetectorFindsTheSwap(t *testing.T) {
	t.Parallel()
	for _, system := range []string{"sonic", "cumulus", "mlnx-os", "nx-os", "eos", ""} {
		inv := room(8, system, true)
		p := New(inv, Options{Seed: 7})
		r := cabling.CompareCables(inv, heard(p, inv))
		for _, x := range r.Results {
			if x.State != cabling.Conforms {
				t.Fatalf("%q: %s: %s, %s", system, x.Cable.Name(), x.State, x.Why)
			}
		}
		if err := p.Swap(Port{"n3", "rail", 1}, Port{"n5", "rail", 1}); err != nil {
			t.Fatal(err)
		}
		r = cabling.CompareCables(inv, heard(p, inv))
		if len(r.Findings) != 1 || fmt.Sprint(r.Findings[0].Suspects) != "[n3/rail/1 OSFP 1/2 n5/rail/1 OSFP 1/2]" {
			t.Errorf("%q: %+v", system, r.Findings)
		}
		if end, up := p.Far(Port{"n3", "rail", 1}); end != (End{Switch: "net/leaf-2", Number: 5}) || !up {
			t.Errorf("%q: n3 is in %+v", system, end)
		}
	}
}

// TestNoSwitches: a fabric without switches gets a leaf a rail, so that the rule
// about rails holds.
func TestNoSwitches(t *testing.T) {
	t.Parallel()
	inv := room(6, "", false)
	p := New(inv, Options{})
	if n := len(p.Switches()); n != 2 || len(p.Ports("n6")) != 2 {
		t.Errorf("%d switches, ports %v", n, p.Ports("n6"))
	}
	if end, _ := p.Far(Port{"n4", "rail", 1}); end != (End{Switch: "compute/rail-1", Number: 4}) {
		t.Errorf("n4 is in %+v", end)
	}
}

func TestPullAndSpoil(t *testing.T) {
	t.Parallel()
	inv := room(2, "sonic", true)
	p := New(inv, Options{})
	a, b := Port{"n1", "rail", 0}, Port{"n2", "rail", 0}
	if err := p.Pull(a, true); err != nil {
		t.Fatal(err)
	}
	if err := p.SetQuality(b, Quality{Down: true}); err != nil {
		t.Fatal(err)
	}
	if p.Frame(a) != nil || p.Frame(b) != nil {
		t.Error("a frame through a dead link")
	}
	for _, x := range cabling.CompareCables(inv, heard(p, inv)).Results {
		if want := map[string]cabling.State{"n1/rail/0": cabling.Unknown, "n2/rail/0": cabling.Unknown}[x.Cable.Name()]; want == "" && x.State != cabling.Conforms || want != "" && x.State != want {
			t.Errorf("%s: %s", x.Cable.Name(), x.State)
		}
	}
	_ = p.Pull(a, false)
	if p.Frame(a) == nil {
		t.Error("no frame after the plug is in again")
	}
	for _, err := range []error{p.Pull(Port{"x", "rail", 0}, true), p.Swap(a, Port{"x", "rail", 0}), p.Swap(Port{}, a)} {
		if err == nil {
			t.Error("a cable that is not there was touched")
		}
	}
}

// TestSource: the agent's listener hears both switches soon after the links have
// trained, and a pulled cable never.
func TestSource(t *testing.T) {
	for _, pulled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := New(room(2, "sonic", true), Options{Seed: 3})
			_ = p.Pull(Port{"n2", "rail", 1}, pulled)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			began := time.Now()
			l := lldp.Start(ctx, p.Source(nics("n2")), []lldp.NIC{{Name: "ens1", PCI: "a"}, {Name: "ens2", PCI: "b"}}, 0)
			if err := l.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			got, took := l.Neighbours(), time.Since(began)
			if len(got) < 1 || got[0].PortID != "etp2" || got[0].SystemName != "leaf-1" {
				t.Fatalf("%+v", got)
			}
			if pulled != (len(got) == 1) || pulled != (took == lldp.Interval) || took < trainLeast {
				t.Errorf("pulled %v: after %v: %+v", pulled, took, got)
			}
		})
	}
}

// TestPeerTcpdump: another implementation reads the frames.
func TestPeerTcpdump(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "tcpdump")
	p := New(room(2, "sonic", true), Options{})
	f := p.Frame(Port{"n2", "rail", 0})
	// a pcap file: header, then one record (libpcap's format, link type Ethernet)
	b := binary.LittleEndian.AppendUint32(nil, 0xa1b2c3d4)
	for _, x := range []uint32{2 | 4<<16, 0, 0, 65535, 1, 0, 0, uint32(len(f)), uint32(len(f))} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	path := filepath.Join(t.TempDir(), "lldp.pcap")
	if err := os.WriteFile(path, append(b, f...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("tcpdump", "-v", "-n", "-r", path).CombinedOutput()
	if err != nil {
		t.Skipf("tcpdump: %v: %s", err, out)
	}
	for _, want := range []string{"Subtype MAC address (4): " + p.switches["net/leaf-1"].MAC.String(), "Subtype Local (7): etp2", "TTL 120s", "System Name TLV (5), length 6: leaf-1", "Port Description TLV (4), length 9: Ethernet8", "Bridge, Router", "mtu size 9236|MTU size 9236"} {
		found := false
		for w := range strings.SplitSeq(want, "|") {
			found = found || strings.Contains(string(out), w)
		}
		if !found {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "invalid") || strings.Contains(string(out), "[|") {
		t.Errorf("%s", out)
	}
}

// TestShow: the layout is that of `show` on a SONiC switch.
func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(room(2, "sonic", true), Options{})
		p.switches["net/leaf-1"].Ports = 3
		a, b := Port{"n1", "rail", 0}, Port{"n2", "rail", 0}
		p.Say(a, Remote{"n1", "0c:42:a1:88:0a:1c", "Interface   8 as enp5s0f0"})
		p.Say(b, Remote{"n2", "ens1", "ens1"})
		if err := p.SetQuality(b, Quality{ErrorRate: 0.01}); err != nil {
			t.Fatal(err)
		}
		if err := p.Carry(b, 4096*100_000, 4096*10, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		golden(t, "counters", p.ShowCounters("net/leaf-1"))
		golden(t, "lldp", p.ShowLLDP("net/leaf-1"))
		time.Sleep(time.Minute)
		if strings.Contains(p.ShowCounters("net/leaf-1"), "MB/s") {
			t.Error("the rate of traffic that is over")
		}
	})
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s: %v; got\n%s", path, err, got)
	}
}
