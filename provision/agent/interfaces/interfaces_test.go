// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

var bootMAC, otherMAC = addr.MAC{0x52, 0x54, 0, 0x77, 0, 0x11}, addr.MAC{0x52, 0x54, 0, 0x77, 0, 0x12}

var boot = Boot{MAC: bootMAC, Address: "10.77.0.11/24", Gateway: "10.77.0.1", DNS: []string{"10.77.0.2"}, Domain: "lab.example"}

func ports(mtu int) wire.NetworkParams {
	return wire.NetworkParams{Ports: []wire.NetworkPort{{Name: "mgmt/0", PCI: "0000:29:00.0", MTU: mtu}, {Name: "mgmt/1", PCI: "0000:29:00.1", MTU: mtu}}}
}

// fake is a root with two ports; the second is a virtio function.
type fake struct {
	Node
	dir  string
	said []string // commands that were run, and links that were set
	fail error    // of a link
	// taken is an IPv6 address, with its prefix, that another machine on the network has
	// while networkd runs; "": none.
	taken string
	has   map[string][]netip.Prefix // addresses of interfaces
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func newFake(t *testing.T, manager bool) *fake {
	t.Helper()
	f := &fake{dir: t.TempDir()}
	for i, at := range []string{"0000:29:00.0/net/eth0", "0000:29:00.1/virtio3/net/eth1"} {
		netdev := filepath.Base(at)
		put(t, f.dir, "sys/devices/pci0000:29/"+at+"/address", []addr.MAC{bootMAC, otherMAC}[i].String()+"\n")
		put(t, f.dir, "sys/devices/pci0000:29/"+at+"/mtu", "1500\n")
		for link, to := range map[string]string{"sys/bus/pci/devices/0000:29:00." + strconv.Itoa(i): "../../../devices/pci0000:29/0000:29:00." + strconv.Itoa(i),
			"sys/class/net/" + netdev: "../../devices/pci0000:29/" + at, "sys/devices/pci0000:29/" + at + "/device": "../.."} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(f.dir, link)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(to, filepath.Join(f.dir, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	unit := "usr/lib/systemd/system/systemd-networkd.service"
	if manager {
		unit = "usr/lib/systemd/system/NetworkManager.service"
	}
	put(t, f.dir, unit, "")
	f.Node = Node{FS: sysfs.Dir(f.dir), Root: func() (rootfs.Root, error) { return rootfs.Open(f.dir) },
		Link: func(netdev string, mtu int) error {
			f.said = append(f.said, netdev+" "+strconv.Itoa(mtu))
			if f.fail == nil {
				put(t, f.dir, "sys/class/net/"+netdev+"/mtu", strconv.Itoa(mtu)+"\n")
			}
			return f.fail
		},
		Run: func(_ context.Context, argv ...string) ([]byte, error) {
			f.said = append(f.said, strings.Join(argv, " "))
			return nil, nil
		},
		Addresses: func(netdev string) ([]netip.Prefix, error) { return f.has[netdev], nil }}
	return f
}

// install writes the files that an installation writes.
func (f *fake) install(t *testing.T, manager bool, p wire.NetworkParams) {
	t.Helper()
	found, err := Find(f.FS, p)
	if err != nil {
		t.Fatal(err)
	}
	files := Networkd(boot, found)
	if manager {
		files = Manager(boot, found)
	}
	for _, x := range files {
		put(t, f.dir, x.Name, x.Text)
	}
}

// TestSet: an MTU is set now and at boot, on both network managers; a second time
// changes nothing, and another MTU takes the place of the first.
func TestSet(t *testing.T) {
	t.Parallel()
	for manager, names := range map[bool][2]string{
		false: {"etc/systemd/network/10-ironrail-boot.network", "etc/systemd/network/10-ironrail-port-mgmt-1.network"},
		true:  {"etc/NetworkManager/system-connections/ironrail-boot.nmconnection", "etc/NetworkManager/system-connections/ironrail-port-mgmt-1.nmconnection"},
	} {
		f := newFake(t, manager)
		f.install(t, manager, wire.NetworkParams{})
		if r := f.Look(ports(9000)); r.Conforms || len(r.Links) != 2 || len(r.Links[0].Problems) != 2 || !strings.Contains(r.Links[0].Problems[0], "the MTU of eth0 is 1500, not 9000") {
			t.Errorf("before: %+v", r)
		}
		for _, mtu := range []int{9000, 4200, 1500} {
			r := f.Set(t.Context(), ports(mtu))
			if !r.Conforms || len(r.Changed) != 4 {
				t.Errorf("%d: %+v", mtu, r)
			}
			if again := f.Set(t.Context(), ports(mtu)); !again.Conforms || len(again.Changed) > 0 {
				t.Errorf("%d, again: %+v", mtu, again)
			}
			installed := newFake(t, manager)
			installed.install(t, manager, ports(mtu))
			for _, name := range names {
				got, err := os.ReadFile(filepath.Join(f.dir, name))
				want, _ := os.ReadFile(filepath.Join(installed.dir, name))
				if err != nil || string(got) != string(want) || !strings.Contains(strings.ToLower(string(got)), strconv.Itoa(mtu)) {
					t.Errorf("%v: %s is\n%s\nand an installation writes\n%s", err, name, got, want)
				}
			}
		}
		if reloads := strings.Count(strings.Join(f.said, "\n"), "nmcli connection reload"); manager != (reloads == 3) {
			t.Errorf("NetworkManager %v: %q", manager, f.said)
		}
	}
}

// TestOthers: ports that are not there, nodes that somebody else set up, and NICs that
// cannot do what is asked for.
func TestOthers(t *testing.T) {
	t.Parallel()
	f := newFake(t, false)
	if r := f.Set(t.Context(), ports(9000)); r.Conforms || len(r.Changed) > 0 || len(f.said) > 0 || !strings.Contains(r.Links[1].Problems[1], "somebody else does on this node") {
		t.Errorf("a node without our files: %+v, %q", r, f.said)
	}
	f.install(t, false, wire.NetworkParams{})
	f.fail = errors.New("out of range")
	if r := f.Set(t.Context(), ports(65000)); r.Error == nil || !strings.Contains(r.Error.Text, "mgmt/0: out of range") {
		t.Errorf("a NIC that cannot: %+v", r)
	}
	gone := wire.NetworkParams{Ports: []wire.NetworkPort{{Name: "mgmt/2", PCI: "0000:99:00.0", MTU: 9000}}}
	if r := f.Look(gone); r.Conforms || !strings.Contains(r.Links[0].Problems[0], "port mgmt/2: no network interface at PCI 0000:99:00.0") {
		t.Errorf("a NIC that is not there: %+v", r)
	}
	if r := f.Set(t.Context(), gone); r.Error == nil || r.Error.Action == "" {
		t.Errorf("a NIC that is not there: %+v", r)
	}
	for _, bad := range []wire.NetworkPort{{Name: "a/../b", PCI: "0000:29:00.0", MTU: 1500}, {Name: "a/0", PCI: "../..", MTU: 1500}, {Name: "a/0", PCI: "0000:29:00.0", MTU: 60}, {Name: "a/0\n", PCI: "0000:29:00.0", MTU: 1500}} {
		if Check(wire.NetworkParams{Ports: []wire.NetworkPort{bad}}) == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}

// bonded is two ports in one bond.
func bonded(mode string, mtu int) wire.NetworkParams {
	p := ports(mtu)
	p.Bonds = []wire.NetworkBond{{Name: "bond0", Mode: mode, Members: []string{"mgmt/0", "mgmt/1"}, MTU: mtu}}
	return p
}

// enslave shows a bond as the kernel does: mode and what of it is special to a member.
func (f *fake) enslave(t *testing.T, mode string, members map[string][3]string) {
	t.Helper()
	put(t, f.dir, "sys/class/net/bond0/bonding/mode", mode+"\n")
	put(t, f.dir, "sys/class/net/bond0/bonding/ad_aggregator", "1\n")
	put(t, f.dir, "sys/class/net/bond0/mtu", "9000\n")
	slaves := ""
	for netdev, x := range members {
		slaves += netdev + " "
		at := "sys/class/net/" + netdev + "/"
		own, _ := os.ReadFile(filepath.Join(f.dir, at+"address"))
		put(t, f.dir, at+"bonding_slave/perm_hwaddr", string(own))
		put(t, f.dir, at+"bonding_slave/mii_status", x[0]+"\n")
		put(t, f.dir, at+"bonding_slave/ad_aggregator_id", x[1]+"\n")
		put(t, f.dir, at+"bonding_slave/ad_actor_oper_port_state", x[2]+"\n")
		put(t, f.dir, at+"address", bootMAC.String()+"\n")
		put(t, f.dir, at+"mtu", "9000\n")
	}
	put(t, f.dir, "sys/class/net/bond0/bonding/slaves", slaves+"\n")
}

// TestBond: what is wrong with a bond is said of the bond or of the member.
func TestBond(t *testing.T) {
	t.Parallel()
	const good = "63" // all but defaulted and expired
	both := func(a, b [3]string) map[string][3]string { return map[string][3]string{"eth0": a, "eth1": b} }
	ok := [3]string{"up", "1", good}
	for _, c := range []struct {
		name, mode string
		members    map[string][3]string
		want       string
	}{
		{"as it is to be", "802.3ad 4", both(ok, ok), ""},
		{"other mode", "active-backup 1", both(ok, ok), "bond0: its mode is active-backup, not 802.3ad"},
		{"a member is missing", "802.3ad 4", map[string][3]string{"eth0": ok}, "mgmt/1: eth1 is not in bond0"},
		{"a member without a link", "802.3ad 4", both(ok, [3]string{"down", "1", good}), "mgmt/1: eth1 has no link in bond0"},
		{"no partner", "802.3ad 4", both(ok, [3]string{"up", "2", "69"}), "mgmt/1: eth1 has no LACP partner in bond0"},
		{"a partner that is gone", "802.3ad 4", both(ok, [3]string{"up", "1", "191"}), "mgmt/1: eth1 has no LACP partner"},
		{"two switches that are not one", "802.3ad 4", both(ok, [3]string{"up", "2", good}), "mgmt/1: eth1 is in aggregator 2, and bond0 uses 1"},
		{"not taken in", "802.3ad 4", both(ok, [3]string{"up", "1", "7"}), "mgmt/1: eth1 carries nothing in bond0"},
	} {
		for _, manager := range []bool{false, true} {
			f := newFake(t, manager)
			f.install(t, manager, bonded("802.3ad", 9000))
			f.enslave(t, c.mode, c.members)
			if c.name == "a member is missing" {
				put(t, f.dir, "sys/class/net/eth1/mtu", "9000\n")
			}
			r := f.Look(bonded("802.3ad", 9000))
			var all []string
			for _, l := range r.Links {
				all = append(all, l.Problems...)
			}
			if got := strings.Join(all, "; "); r.Error != nil || r.Conforms != (c.want == "") || !strings.HasPrefix(got, c.want) || len(all) > 1 {
				t.Errorf("%s, NetworkManager %v: %q, %+v", c.name, manager, got, r.Error)
			}
			if c.want != "" {
				continue
			}
			// Another MTU is set on the bond first, and in the files of bond and members.
			r = f.Set(t.Context(), bonded("802.3ad", 4200))
			if !r.Conforms || f.said[0] != "bond0 4200" || len(r.Changed) != 6 {
				t.Errorf("MTU of a bond: %+v, %q", r, f.said)
			}
		}
	}
	f := newFake(t, false)
	f.install(t, false, ports(9000))
	if r := f.Look(bonded("802.3ad", 0)); r.Conforms || len(r.Links[0].Problems) != 1 || !strings.Contains(r.Links[0].Problems[0], "no such bond on the node") || len(r.Links[1].Problems) > 0 {
		t.Errorf("a node that was installed without: %+v", r)
	}
	for name, bad := range map[string]wire.NetworkBond{"name": {Name: "a/b", Mode: "802.3ad", Members: []string{"mgmt/0"}}, "lo": {Name: "lo", Mode: "802.3ad", Members: []string{"mgmt/0"}},
		"mode": {Name: "b", Mode: "tlb\n", Members: []string{"mgmt/0"}}, "member": {Name: "b", Mode: "802.3ad", Members: []string{"x/0"}}, "twice": {Name: "b", Mode: "802.3ad", Members: []string{"mgmt/0", "mgmt/0"}}} {
		p := ports(1500)
		p.Bonds = []wire.NetworkBond{bad}
		if Check(p) == nil {
			t.Errorf("%s: %+v was taken", name, bad)
		}
	}
}
