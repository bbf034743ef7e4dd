// SPDX-License-Identifier: Apache-2.0

// Package host_test tries the stage of host settings on the installed systems of the
// virtual rack.
package host_test

import (
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ironrail/ironrail/engine/onnodetest"
	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/internal/clock"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/fact"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/provision/agent/interfaces"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
	"github.com/ironrail/ironrail/provision/host"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/system/systemtest"
)

// known is a view with the facts of a run.
type known struct{ run *onnodetest.Run }

func (k known) Fact(key fact.Key) (fact.Fact, bool) { return k.run.Fact(key) }

// steps are those of the stage, which must be n.
func steps(t *testing.T, s *host.Stage, run *onnodetest.Run, n int) []plan.Step {
	t.Helper()
	list, diags := s.Plan(known{run})
	if diags.HasErrors() || len(list) != n {
		t.Fatalf("%d steps, want %d: %v", len(list), n, diags)
	}
	return list
}

// TestSettings: settings are made on a node that runs, read back, found again after a
// reboot, changed, and taken back when the files no longer give them.
func TestSettings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		n := inv.Nodes[0]
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm", Packages: []string{"locales-all"}}
		n.Host = &inventory.HostSettings{Name: "gpu", HoldKernel: true, Locale: "en_US.UTF-8", Sysctl: map[string]string{"vm.swappiness": "10", "net.ipv4.conf.all.rp_filter": "2"}}
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		s, run := host.New(inv, r), onnodetest.NewRun()
		st := steps(t, s, run, 1)[0]
		is := func(want stage.Conformity, words ...string) {
			t.Helper()
			o, err := s.Observe(t.Context(), run, st)
			if err != nil || o.State != want {
				t.Fatalf("%+v, %v; want %s", o, err, want)
			}
			for _, w := range words {
				if !strings.Contains(o.Evidence, w) {
					t.Errorf("evidence %q lacks %q", o.Evidence, w)
				}
			}
		}
		apply := func() {
			t.Helper()
			if err := s.Apply(t.Context(), run, st); err != nil {
				t.Fatal(err)
			}
		}
		is(stage.Differs, "the kernel has no sysctl vm.swappiness", `net.ipv4.conf.all.rp_filter is "0", not "2"`, "not on hold: linux-image-", "/etc/locale.conf is not")
		apply()
		is(stage.Conforms)
		if out, _ := r.Sh("n1", "apt-mark showhold; cat /proc/sys/vm/swappiness /etc/locale.conf"); !strings.Contains(out, "linux-image-amd64\n") || !strings.HasSuffix(out, "\n10\nLANG=en_US.UTF-8\n") {
			t.Errorf("the node says %q", out)
		}
		r.Sh("n1", "reboot")
		r.Disconnect()
		pause := func(d time.Duration) {
			if err := (clock.Wall{}).Sleep(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
		pause(time.Minute) // in the time of the bubble
		for o, err := s.Observe(t.Context(), run, st); o.State != stage.Conforms; o, err = s.Observe(t.Context(), run, st) {
			if o.State == stage.Differs {
				t.Fatalf("after a reboot: %+v, %v", o, err)
			}
			pause(time.Second)
		}
		r.Sh("n1", "sysctl vm.swappiness=60; apt-mark unhold linux-image-amd64")
		is(stage.Differs, `sysctl vm.swappiness is "60", not "10"`, "not on hold: linux-image-amd64")
		n.Host.Sysctl = map[string]string{"vm.swappiness": "1"}
		st = steps(t, s, run, 1)[0]
		apply()
		is(stage.Conforms)
		n.Host.Sysctl = map[string]string{"zoo.elephants": "1"} // refused by check, and here by the kernel
		if err := s.Apply(t.Context(), run, st); errkind.Of(err).Base() != errkind.Mismatch || !strings.Contains(err.Error(), "the kernel has no sysctl zoo.elephants") {
			t.Errorf("an unknown setting: %v", err)
		}
		*n.Host = inventory.HostSettings{Name: "gpu"}
		st = steps(t, s, run, 1)[0]
		is(stage.Differs, "on hold: linux-image-", "/etc/sysctl.d/99-zz-ironrail.conf is there")
		apply()
		is(stage.Conforms)
		steps(t, s, run, 0)
	})
}

// TestNetwork: the MTU of a network is set on a node that runs, kept over a reboot, changed,
// and taken back when the files no longer give it.
func TestNetwork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		n, net := inv.Nodes[0], inv.Networks[0]
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
		net.MTU = 9000
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		s, run := host.New(inv, r), onnodetest.NewRun()
		st := steps(t, s, run, 1)[0]
		if st.ID != "n1/host.network" || st.NonDisruptive || len(st.Inputs) != 1 || st.Inputs[0].Name != "mtu mgmt" || st.Inputs[0].Value != "9000" {
			t.Fatalf("%+v", st)
		}
		is := func(want stage.Conformity, evidence string) {
			t.Helper()
			if o, err := s.Observe(t.Context(), run, st); err != nil || o.State != want || !strings.Contains(o.Evidence, evidence) {
				t.Fatalf("%+v, %v; want %s with %q", o, err, want, evidence)
			}
		}
		is(stage.Differs, "somebody else does on this node")
		if err := s.Apply(t.Context(), run, st); errkind.Of(err).Base() != errkind.Mismatch || len(run.Findings) != 1 || run.Findings[0].Suspects[0].Part != "mgmt/0" {
			t.Fatalf("a node that others set up: %v, %+v", err, run.Findings)
		}
		r.Sh("n1", "mv /etc/systemd/network/10-b.network /etc/systemd/network/10-ironrail-boot.network")
		is(stage.Differs, "is 1500, not 9000")
		apply := func() {
			t.Helper()
			if err := s.Apply(t.Context(), run, st); err != nil {
				t.Fatal(err)
			}
			is(stage.Conforms, "")
		}
		apply()
		r.Sh("n1", "reboot")
		r.Disconnect()
		for o, err := s.Observe(t.Context(), run, st); o.State != stage.Conforms; o, err = s.Observe(t.Context(), run, st) {
			if o.State == stage.Differs {
				t.Fatalf("after a reboot: %+v, %v", o, err)
			}
			if err := (clock.Wall{}).Sleep(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		net.MTU = 0
		st = steps(t, s, run, 1)[0]
		is(stage.Differs, "is 9000, not 1500")
		apply()
		steps(t, s, run, 0)
	})
}

// TestBond: a node that was installed with a bond has its address on it, and a member whose
// cable is out, is named with its switch port; an edit of bonds is none of an installed node.
func TestBond(t *testing.T) {
	t.Parallel()
	t.Run("networkd", func(t *testing.T) { t.Parallel(); tryBond(t, interfaces.Networkd) })
	t.Run("netplan", func(t *testing.T) {
		t.Parallel()
		tryBond(t, func(b interfaces.Boot, l interfaces.Layout) []interfaces.File {
			return append(interfaces.Netplan(b, l), interfaces.File{Name: "usr/sbin/netplan", Mode: 0o755})
		})
	})
}

// tryBond is TestBond of one way to set up interfaces.
func tryBond(t *testing.T, write func(interfaces.Boot, interfaces.Layout) []interfaces.File) {
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		n, nic := inv.Nodes[0], &inv.Nodes[0].Hardware.NICs[0]
		nic.Ports = append(nic.Ports, inventory.NICPort{Rail: -1, PCI: "0000:01:00.1"})
		inv.Networks[0].MTU = 9000
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
		n.Host = &inventory.HostSettings{Name: "gpu", Bonds: []inventory.Bond{{Name: "bond0", Mode: "802.3ad", Members: []string{"mgmt/0", "mgmt/1"}}}}
		sw := &inventory.Switch{Name: "mgmt-1"}
		inv.Cables = append(inv.Cables, &inventory.Cable{From: inventory.CableEnd{Node: n, NIC: nic, Port: 1}, To: inventory.CableEnd{Switch: sw, Port: 7}})
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		s, run := host.New(inv, r), onnodetest.NewRun()
		st := steps(t, s, run, 1)[0]
		err := s.Apply(t.Context(), run, st)
		if errkind.Of(err).Base() != errkind.Mismatch || !strings.Contains(err.Error(), "bond0: there is no such bond") || run.Findings[0].Suspects[0].Part != "bond bond0" {
			t.Fatalf("a node without its bond: %v, %+v", err, run.Findings)
		}
		// What an installation writes.
		found, err := interfaces.Find(sysfs.Of(r.Metal["n1"].FS()), host.Network(n))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range write(interfaces.Boot{MAC: n.BootMAC, Address: n.Address.String() + "/24"}, found) {
			if err := rootfs.WriteText(r.Metal["n1"].Root(), f.Name, f.Text, f.Mode); err != nil {
				t.Fatal(err)
			}
		}
		r.Sh("n1", "rm /etc/systemd/network/10-b.network; reboot")
		r.Disconnect()
		wait := func(want stage.Conformity) stage.Observation {
			t.Helper()
			for range 200 {
				if o, err := s.Observe(t.Context(), run, st); err == nil && o.State == want {
					return o
				}
				if err := (clock.Wall{}).Sleep(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
			}
			o, err := s.Observe(t.Context(), run, st)
			t.Fatalf("%+v, %v, and never %s", o, err, want)
			return o
		}
		wait(stage.Conforms)
		if err := s.Apply(t.Context(), run, st); err != nil {
			t.Fatal(err)
		}
		if out, _ := r.Sh("n1", "ip addr show dev bond0"); !strings.Contains(out, "MASTER") || !strings.Contains(out, "mtu 9000") || !strings.Contains(out, n.Address.String()+"/24") {
			t.Errorf("the node says %q", out)
		}
		inv.Networks[0].MTU = 4200
		st = steps(t, s, run, 1)[0]
		if err := s.Apply(t.Context(), run, st); err != nil {
			t.Fatal(err)
		}
		if out, _ := r.Sh("n1", "ip addr show dev bond0"); !strings.Contains(out, "mtu 4200") {
			t.Errorf("after another MTU the node says %q", out)
		}
		n.Host.Bonds = nil // holds from the next installation on
		if o := wait(stage.Conforms); !strings.Contains(o.Evidence, "bond0 (802.3ad)") {
			t.Errorf("%+v", o)
		}
		if err := r.Model.SetDown(model.PortID{Node: "n1", NIC: "mgmt", Index: 1}, true); err != nil {
			t.Fatal(err)
		}
		if o := wait(stage.Differs); !strings.Contains(o.Evidence, "mgmt/1: ") || !strings.Contains(o.Evidence, "has no link in bond0") {
			t.Errorf("%+v", o)
		}
		begun := time.Now()
		err = s.Apply(t.Context(), run, st)
		f := run.Findings[len(run.Findings)-1]
		if err == nil || time.Since(begun) < 40*time.Second || f.Suspects[0].Part != "mgmt/1" || !strings.Contains(f.Cause, "its cable ends at mgmt-1/7") || !strings.Contains(f.Action, "LACP") {
			t.Errorf("a member without a link, after %s: %v, %+v", time.Since(begun), err, f)
		}
	})
}

// TestIPv6: a node has the address that its installation set beside its IPv4 address, on the
// interface that it booted from; one that is lost is named, and an edit of the files is none
// of an installed node.
func TestIPv6(t *testing.T) {
	t.Parallel()
	t.Run("networkd", func(t *testing.T) { t.Parallel(); tryIPv6(t, interfaces.Networkd) })
	t.Run("netplan", func(t *testing.T) {
		t.Parallel()
		tryIPv6(t, func(b interfaces.Boot, l interfaces.Layout) []interfaces.File {
			return append(interfaces.Netplan(b, l), interfaces.File{Name: "usr/sbin/netplan", Mode: 0o755})
		})
	})
}

// tryIPv6 is TestIPv6 of one way to set up interfaces.
func tryIPv6(t *testing.T, write func(interfaces.Boot, interfaces.Layout) []interfaces.File) {
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		n, net := inv.Nodes[0], inv.Networks[0]
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
		net.CIDR6, net.Gateway6, n.Address6 = netip.MustParsePrefix("fd77::/64"), netip.MustParseAddr("fe80::1"), netip.MustParseAddr("fd77::b")
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		s, run := host.New(inv, r), onnodetest.NewRun()
		st := steps(t, s, run, 1)[0]
		install := func() {
			t.Helper()
			found, err := interfaces.Find(sysfs.Of(r.Metal["n1"].FS()), host.Network(n))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range write(interfaces.Boot{MAC: n.BootMAC, Address: n.Address.String() + "/24"}, found) {
				if err := rootfs.WriteText(r.Metal["n1"].Root(), f.Name, f.Text, f.Mode); err != nil {
					t.Fatal(err)
				}
			}
		}
		becomes := func(want stage.Conformity, evidence string) {
			t.Helper()
			for range 200 {
				if o, err := s.Observe(t.Context(), run, st); err == nil && o.State == want && strings.Contains(o.Evidence, evidence) {
					return
				}
				if err := (clock.Wall{}).Sleep(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
			}
			o, err := s.Observe(t.Context(), run, st)
			t.Fatalf("%+v, %v, and never %s with %q", o, err, want, evidence)
		}
		reboot := func() { r.Sh("n1", "reboot"); r.Disconnect() }
		becomes(stage.Differs, "IPv6 address fd77::b/64: no interface has it")
		begun := time.Now()
		if err := s.Apply(t.Context(), run, st); errkind.Of(err).Base() != errkind.Mismatch || time.Since(begun) < 40*time.Second || run.Findings[0].Suspects[0].Part != "IPv6 address" || !strings.Contains(run.Findings[0].Action, "`ironrail plan --replace n1`") {
			t.Fatalf("a node without its address, after %s: %v, %+v", time.Since(begun), err, run.Findings)
		}
		install()
		r.Sh("n1", "rm /etc/systemd/network/10-b.network")
		reboot()
		becomes(stage.Conforms, "IPv6 address fd77::b/64")
		if out, _ := r.Sh("n1", "ip addr show dev eth0"); !strings.Contains(out, "inet6 fd77::b/64 scope global") || !strings.Contains(out, n.Address.String()+"/24") {
			t.Errorf("the node says %q", out)
		}
		n.Address6 = netip.MustParseAddr("fd77::c") // holds from the next installation on
		becomes(stage.Conforms, "IPv6 address fd77::b/64")
		n.Address6, net.CIDR6 = netip.Addr{}, netip.Prefix{}
		if list := steps(t, s, run, 1); !strings.Contains(list[0].Title, "nothing is asked for any more") {
			t.Errorf("%+v", list)
		}
		net.CIDR6, n.Address6, net.Gateway6 = netip.MustParsePrefix("fd77::/64"), netip.MustParseAddr("fd77::b"), netip.Addr{}
		install() // another gateway than the node was installed with
		reboot()
		becomes(stage.Differs, "there is no default route by fe80::1 on ")
	})
}

// TestVLAN: a node has the interface of a tagged network that its installation made, with both
// addresses, on the NIC that it booted from; its MTU is set while the node runs, and an interface
// that is lost is named.
func TestVLAN(t *testing.T) {
	t.Parallel()
	t.Run("networkd", func(t *testing.T) { t.Parallel(); tryVLAN(t, interfaces.Networkd) })
	t.Run("netplan", func(t *testing.T) {
		t.Parallel()
		tryVLAN(t, func(b interfaces.Boot, l interfaces.Layout) []interfaces.File {
			return append(interfaces.Netplan(b, l), interfaces.File{Name: "usr/sbin/netplan", Mode: 0o755})
		})
	})
}

// tryVLAN is TestVLAN of one way to set up interfaces.
func tryVLAN(t *testing.T, write func(interfaces.Boot, interfaces.Layout) []interfaces.File) {
	synctest.Test(t, func(t *testing.T) {
		inv := systemtest.NewSite(1, 1, 0)
		n, nic := inv.Nodes[0], &inv.Nodes[0].Hardware.NICs[0]
		n.Image = &inventory.Image{Block: inventory.Block{Kind: "debian", Name: "os"}, Release: "bookworm"}
		storage := &inventory.Network{Name: "storage", VLAN: 30, MTU: 4200, CIDR: netip.MustParsePrefix("10.30.0.0/24"), CIDR6: netip.MustParsePrefix("fd30::/64")}
		inv.Networks[0].MTU = 9000
		nic.Tagged = []*inventory.Network{storage}
		n.Tagged = []inventory.TaggedNetwork{{Network: storage, Over: "mgmt/0", Address: netip.MustParseAddr("10.30.0.11"), Address6: netip.MustParseAddr("fd30::b")}}
		r := systemtest.New(t, inv)
		defer r.Stop()
		r.Wait()
		s, run := host.New(inv, r), onnodetest.NewRun()
		st := steps(t, s, run, 1)[0]
		becomes := func(want stage.Conformity, evidence string) {
			t.Helper()
			for range 200 {
				if o, err := s.Observe(t.Context(), run, st); err == nil && o.State == want && strings.Contains(o.Evidence, evidence) {
					return
				}
				if err := (clock.Wall{}).Sleep(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
			}
			o, err := s.Observe(t.Context(), run, st)
			t.Fatalf("%+v, %v, and never %s with %q", o, err, want, evidence)
		}
		becomes(stage.Differs, "vlan30: there is no such interface on the node")
		found, err := interfaces.Find(sysfs.Of(r.Metal["n1"].FS()), host.Network(n))
		if err != nil {
			t.Fatal(err)
		}
		files := write(interfaces.Boot{MAC: n.BootMAC, Address: n.Address.String() + "/24"}, found)
		for _, f := range files {
			if err := rootfs.WriteText(r.Metal["n1"].Root(), f.Name, f.Text, f.Mode); err != nil {
				t.Fatal(err)
			}
		}
		r.Sh("n1", "rm /etc/systemd/network/10-b.network; reboot")
		r.Disconnect()
		becomes(stage.Conforms, "VLAN 30 on mgmt/0, MTU 9000")
		r.Sh("n1", "sysctl -w vm.swappiness=7") // files of the kernel that were written hide no others
		becomes(stage.Conforms, "VLAN 30 on mgmt/0, MTU 9000")
		if out, _ := r.Sh("n1", "ip addr show dev vlan30"); !strings.Contains(out, "mtu 4200") || !strings.Contains(out, "inet 10.30.0.11/24") || !strings.Contains(out, "inet6 fd30::b/64") {
			t.Errorf("the node says %q", out)
		}
		inv.Networks[0].MTU, storage.MTU = 2000, 0 // the port limits the interface, which gets the usual MTU
		st = steps(t, s, run, 1)[0]
		if err := s.Apply(t.Context(), run, st); err != nil {
			t.Fatal(err)
		}
		if out, _ := r.Sh("n1", "ip addr show"); !strings.Contains(out, "mtu 2000") || !strings.Contains(out, "vlan30: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500") {
			t.Errorf("after other MTUs the node says %q", out)
		}
		n.Tagged, nic.Tagged = nil, nil // holds from the next installation on
		becomes(stage.Conforms, "VLAN 30 on mgmt/0")
		for _, f := range files { // somebody takes it out
			text := strings.NewReplacer("VLAN=vlan30\n", "", "    vlan30:\n", "    vlan31:\n").Replace(f.Text)
			if err := rootfs.WriteText(r.Metal["n1"].Root(), f.Name, text, f.Mode); err != nil {
				t.Fatal(err)
			}
		}
		r.Sh("n1", "reboot")
		r.Disconnect()
		becomes(stage.Differs, "vlan30: there is no such interface on the node")
		err = s.Apply(t.Context(), run, st)
		if f := run.Findings[len(run.Findings)-1]; err == nil || f.Suspects[0].Part != "interface vlan30" || !strings.Contains(f.Action, "`ironrail plan --replace n1`") {
			t.Errorf("%v, %+v", err, f)
		}
	})
}
