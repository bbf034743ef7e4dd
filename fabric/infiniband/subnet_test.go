// SPDX-License-Identifier: Apache-2.0

package infiniband

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ironrail/ironrail/inventory"
)

// rails is a site of racks of four nodes with eight rails of HDR, two tenants and
// a controller with a port on the fabric.
const rails = `
site "t" { domain = "t.example" }
controller "head1" { address = "10.20.0.2" }
controller "head2" { address = "10.20.0.3" }
network "oob" { cidr = "10.10.0.0/16" }
network "boot" { cidr = "10.20.0.0/16" }
bmc "b" {
  protocol = "redfish"
  network  = network.oob
  username = "u"
  password = secret("env:P")
}
image "debian" "os" { release = "bookworm" }
disk_layout "os" {
  on = "os"
  root {}
}
hardware "h" {
  power { max = "10kW" }
  disk "os" {}
  nic "mgmt" {
    network = network.boot
    pci     = ["0000:29:00.0"]
    boot    = true
  }
  hca "rail" {
    fabric = fabric.compute
    ports  = [for i in range(8) : { rail = i, pci = "0000:1${i}:00.0", panel = "OSFP ${i + 1}" }]
  }
}
fabric "infiniband" "compute" {
  rails     = 8
  link      = "200Gbps"
  topology  = "rail-optimized"
  unit_size = %[1]d
  mtu       = 4092
  switch {
    model = "QM9700"
    ports = %[4]d
    speed = "200Gbps"
  }
  subnet_manager {
    run_on  = [controller.head1, controller.head2]
    ports   = 4
    routing = %[2]s
  }
  partition "tenant-a" {
    pkey  = "0x0001"
    ipoib = true
  }
  partition "tenant-b" { pkey = "0x0002" }
}
role "a" {
  hardware   = hardware.h
  bmc        = bmc.b
  image      = image.os
  disks      = disk_layout.os
  partitions = ["compute/tenant-a"]
}
role "b" {
  hardware   = hardware.h
  bmc        = bmc.b
  image      = image.os
  disks      = disk_layout.os
  partitions = ["compute/tenant-b"]
}
rack "r" {
  count  = %[3]d
  name   = "r${count.index + 1}"
  number = count.index + 1
  node "n" {
    count = 4
    name  = "${rack.name}-n${count.index + 1}"
    role  = count.index < 2 ? role.a : role.b
    unit  = 1 + 4 * count.index
  }
}
`

// room loads the site; routing is a list in the language.
func room(t *testing.T, unit, racks int, routing string) *inventory.Inventory {
	t.Helper()
	return roomOf(t, unit, racks, 20, routing)
}

// roomOf is room with another number of ports of a switch.
func roomOf(t *testing.T, unit, racks, ports int, routing string) *inventory.Inventory {
	t.Helper()
	k := inventory.DefaultKinds()
	spec := k.Fabric[Name]
	spec.Design, spec.Check = Design, Check
	k.Fabric[Name] = spec
	inv, found, _ := inventory.LoadFS(fstest.MapFS{"site.hcl": {Data: fmt.Appendf(nil, rails, unit, routing, racks, ports)}}, inventory.Options{Kinds: &k})
	if found.HasErrors() {
		t.Fatal(found)
	}
	return inv
}

// plain names devices as managed switches and hosts do.
func plain(name string) string {
	node, rest, ok := strings.Cut(name, "/rail/")
	if ok {
		return node + " mlx5_" + rest
	}
	if strings.Contains(name, "/sm/") {
		return strings.ReplaceAll(name, "/", "-")
	}
	return "MF0;" + strings.ReplaceAll(name, "/", "-") + ":MQM9700/U1"
}

// nameless are devices that nobody has named yet.
func nameless(name string) string {
	if strings.HasPrefix(name, "compute/") {
		return "Quantum-2 NVIDIA Technologies"
	}
	return "MT4129 ConnectX7 NVIDIA Technologies"
}

// bringUp loads the subnet manager's files and reads back what it does.
func bringUp(t *testing.T, s *Subnet, members []Member) {
	t.Helper()
	sweep, err := s.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := s.Files(members, sweep)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Load(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	if sweep, err = s.Sweep(t.Context()); err != nil { // with LIDs now
		t.Fatal(err)
	}
	wrong, err := s.Verify(t.Context(), members, sweep)
	if err != nil || len(wrong) > 0 {
		t.Fatalf("%v\n%s", err, strings.Join(wrong, "\n"))
	}
	if differ, err := s.Differing(t.Context(), files); err != nil || len(differ) > 0 {
		t.Fatalf("%d files differ after the load, %v", len(differ), err)
	}
}

// TestPeerSubnet brings up eight nodes with eight rails: the real opensm takes our
// files, routes by the engine that was asked for, and gives every port the P_Keys
// of its tenant and no other.
func TestPeerSubnet(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 2, "[]")
	w := plugIn(inv, plain)
	s := simulate(t, w)
	h := s.host(w.ids["head1/sm/0"])
	sub := h.subnet(inv)
	bringUp(t, sub, w.members)
	if len(w.members) != 64 {
		t.Errorf("%d ports", len(w.members))
	}
	if said := h.output.String(); strings.Contains(said, "Unrecognized") || strings.Contains(said, "Invalid") {
		t.Errorf("opensm does not know an option: %s", said)
	}
	engine, err := sub.routed(t.Context())
	if err != nil || engine != "ftree" {
		t.Errorf("engine %q, %v", engine, err)
	}
	t.Run("a node changes its tenant", func(t *testing.T) {
		n := w.members[0].Node
		n.Partitions = []inventory.Partition{{Fabric: inv.Fabrics[0], Name: "tenant-b", PKey: 2}}
		sweep, err := sub.Sweep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wrong, err := sub.Verify(t.Context(), w.members, sweep)
		if err != nil || len(wrong) != 8 {
			t.Fatalf("%d differences before the load, want 8 ports: %v", len(wrong), err)
		}
		for _, part := range []string{"r1-n1/rail/0 (rail 0, OSFP 1)", "P_Key 0x8002 is missing", "P_Key 0x8001 should not be there"} {
			if !strings.Contains(wrong[0], part) {
				t.Errorf("%q does not say %q", wrong[0], part)
			}
		}
		pid := h.opensm.Process.Pid
		bringUp(t, sub, w.members)
		if h.opensm.Process.Pid != pid {
			t.Error("a change of partitions restarted opensm")
		}
	})
}

// TestPeerRefused: what opensm goes on without is an error here.
func TestPeerRefused(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 1, `["minhop"]`)
	w := plugIn(inv, plain)
	h := simulate(t, w).host(w.ids["head1/sm/0"])
	sub := h.subnet(inv)
	bringUp(t, sub, w.members)
	sweep, err := sub.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := sub.Files(w.members, sweep)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(name, old, new string) []File {
		list := append([]File(nil), files...)
		for i := range list {
			if list[i].Name == name {
				list[i].Content = []byte(strings.Replace(string(list[i].Content), old, new, 1))
			}
		}
		return list
	}
	t.Run("syntax error", func(t *testing.T) {
		bad := spoil(partitionsFile, "0x946dae03", "946dae03zz")
		if err := sub.Load(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "PARSE ERROR") {
			t.Errorf("got %v", err)
		}
		wrong, err := sub.Verify(t.Context(), w.members, sweep)
		if err != nil || len(wrong) == 0 {
			t.Errorf("the isolation that is gone is not seen: %v, %v", wrong, err)
		}
	})
	t.Run("unknown engine", func(t *testing.T) {
		bad := spoil(confFile, "routing_engine minhop", "routing_engine bogus")
		if err := sub.Load(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "bogus") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another engine than asked for", func(t *testing.T) {
		if err := sub.Load(t.Context(), spoil(confFile, "routing_engine minhop", "routing_engine updn")); err != nil {
			t.Fatal(err)
		}
		wrong, err := sub.Verify(t.Context(), w.members, sweep)
		if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], `engine "updn"`) {
			t.Errorf("%v, %v", wrong, err)
		}
	})
	t.Run("no subnet manager", func(t *testing.T) {
		h.stop()
		if err := os.Remove(filepath.Join(h.dir, "opensm.log")); err != nil {
			t.Fatal(err)
		}
		wrong, err := sub.Verify(t.Context(), w.members, sweep)
		if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], "subnet manager") {
			t.Errorf("a fabric without a manager is verified: %q, %v", wrong, err)
		}
		if _, err := sub.Managers(t.Context(), w.members, sweep); err == nil {
			t.Error("a fabric without a manager has managers")
		}
	})
}

// TestPeerTakeover: the host that run_on names first is the master; when it dies the
// other one takes the subnet over with the same partitions.
func TestPeerTakeover(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 1, "[]")
	w := plugIn(inv, plain)
	s := simulate(t, w)
	first, second := s.host(w.ids["head1/sm/0"]), s.host(w.ids["head2/sm/0"])
	a, b := first.subnet(inv), second.subnet(inv)
	b.Standby = 1
	bringUp(t, a, w.members)
	sweep, err := b.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := b.Files(w.members, sweep)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Load(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	text, _, err := second.Log(t.Context(), 0)
	if l := readLog(text); err != nil || !l.Standby || l.Up {
		t.Fatalf("the second manager is no standby: %+v, %v", l, err)
	}
	managed := func(s *Subnet) Managed {
		t.Helper()
		m, err := s.Managers(t.Context(), w.members, sweep)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	if m := managed(a); len(m.Wrong)+len(m.Findings) > 0 || m.Standbys != 1 || m.Strange != 0 {
		t.Errorf("a master and its standby: %+v", m)
	}
	first.stop()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		text, _, err := second.Log(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if readLog(text).Up {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the standby does not take over")
		}
	}
	if wrong, err := b.Verify(t.Context(), w.members, sweep); err != nil || len(wrong) > 0 {
		t.Errorf("%v, %v", wrong, err)
	}
	if m := managed(b); len(m.Wrong) > 0 || len(m.Findings) != 1 || !strings.Contains(m.Findings[0].Cause, "on head1 does not stand by") || m.Findings[0].Action == "" {
		t.Errorf("a master whose standby is dead: %+v", m)
	}
}

// TestPeerStrangeManager: a manager that the site does not have, such as a switch's own,
// was there first and has the higher priority: nothing of ours counts.
func TestPeerStrangeManager(t *testing.T) {
	t.Parallel()
	inv := room(t, 9, 1, "[]")
	w := plugIn(inv, plain)
	s := simulate(t, w)
	first, node := s.host(w.ids["head1/sm/0"]), s.host(w.ids["r1-n2/rail/0"])
	if err := node.Write(t.Context(), filepath.Join(node.dir, confFile), []byte("sm_priority 15\nforce_log_flush TRUE\n")); err != nil {
		t.Fatal(err)
	}
	strange, sub := node.subnet(inv), first.subnet(inv)
	if err := node.restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := strange.await(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	sweep, err := sub.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := sub.Files(w.members, sweep)
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Load(t.Context(), files); err != nil {
		t.Fatal(err)
	}
	m, err := sub.Managers(t.Context(), w.members, sweep)
	if err != nil || len(m.Wrong) != 1 || !strings.Contains(m.Wrong[0], "the master is node r1-n2") || !strings.Contains(m.Wrong[0], "not head1") {
		t.Errorf("with a strange master: %+v, %v", m, err)
	}
}
