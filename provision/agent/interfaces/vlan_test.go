// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"cmp"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
)

// tagged are parameters with VLAN interfaces on a port or bond; "": on the NIC that boots.
func tagged(p wire.NetworkParams, over ...string) wire.NetworkParams {
	for i, o := range over {
		v := wire.NetworkVLAN{Name: "vlan3" + string(rune('0'+i)), ID: 30 + i, Over: o, MTU: 4200,
			Addresses: []netip.Prefix{netip.MustParsePrefix("10.30." + string(rune('0'+i)) + ".11/24"), netip.MustParsePrefix("fd3" + string(rune('0'+i)) + "::b/64")}}
		if o == "" {
			v.MAC = bootMAC
		}
		p.VLANs = append(p.VLANs, v)
	}
	return p
}

// tag shows VLAN interfaces as the kernel does.
func (f *fake) tag(t *testing.T, p wire.NetworkParams, on string) {
	t.Helper()
	f.has = map[string][]netip.Prefix{}
	for _, v := range p.VLANs {
		put(t, f.dir, "sys/class/net/"+v.Name+"/mtu", "4200\n")
		put(t, f.dir, "proc/net/vlan/"+v.Name, v.Name+"  VID: "+map[int]string{30: "30", 31: "31"}[v.ID]+"\t REORDER_HDR: 1  dev->priv_flags: 1021\n         total frames received            0\nDevice: "+on+"\nINGRESS priority mappings: 0:0  1:0\n")
		f.has[v.Name] = v.Addresses
	}
}

// TestVLAN: what is wrong with the interface of a tagged network is said of it, whoever sets it up.
func TestVLAN(t *testing.T) {
	t.Parallel()
	one := func(over string) wire.NetworkParams { return tagged(ports(9000), over) }
	for name, c := range map[string]struct {
		over, want string
		change     func(t *testing.T, f *fake)
	}{
		"on a port":       {"mgmt/1", "", func(t *testing.T, f *fake) { f.tag(t, one("mgmt/1"), "eth1") }},
		"on the boot NIC": {"", "", func(*testing.T, *fake) {}},
		"none":            {"mgmt/0", "there is no such interface on the node", func(t *testing.T, f *fake) { _ = os.RemoveAll(filepath.Join(f.dir, "sys/class/net/vlan30")) }},
		"another ID": {"mgmt/0", "its VLAN is 31, not 30", func(t *testing.T, f *fake) {
			put(t, f.dir, "proc/net/vlan/vlan30", "vlan30  VID: 31\t x\nDevice: eth0\n")
		}},
		"no VLAN":      {"mgmt/0", "it is no VLAN interface", func(t *testing.T, f *fake) { put(t, f.dir, "proc/net/vlan/vlan30", "") }},
		"another port": {"mgmt/1", "it is on eth0, not on eth1", func(*testing.T, *fake) {}},
		"another NIC":  {"", "it is on eth1, with MAC 52:54:00:77:00:12, and not on the NIC with MAC 52:54:00:77:00:11", func(t *testing.T, f *fake) { f.tag(t, one(""), "eth1") }},
		"no address":   {"mgmt/0", "it has no address fd30::b/64", func(_ *testing.T, f *fake) { f.has["vlan30"] = f.has["vlan30"][:1] }},
		"a duplicate": {"mgmt/0", "another machine on its network has fd30::b", func(t *testing.T, f *fake) {
			put(t, f.dir, "proc/net/if_inet6", "fd30000000000000000000000000000b 05 40 00 c8   vlan30\n")
		}},
		"MTU": {"mgmt/0", "the MTU of vlan30 is 1500, not 4200", func(t *testing.T, f *fake) { put(t, f.dir, "sys/class/net/vlan30/mtu", "1500\n") }},
	} {
		for _, kind := range []string{"networkd", "netplan", "NetworkManager"} {
			var f *fake
			if kind == "netplan" {
				f = withNetplan(t, one(c.over))
			} else {
				f = newFake(t, kind == "NetworkManager")
				f.install(t, kind == "NetworkManager", one(c.over))
			}
			for _, netdev := range []string{"eth0", "eth1"} {
				put(t, f.dir, "sys/class/net/"+netdev+"/mtu", "9000\n")
			}
			f.tag(t, one(c.over), "eth0")
			c.change(t, f)
			r := f.Look(one(c.over))
			l := r.Links[len(r.Links)-1]
			if r.Error != nil || !l.VLAN || r.Conforms != (c.want == "") || c.want != "" && (len(l.Problems) != 1 || !strings.HasPrefix(l.Problems[0], "vlan30: "+c.want)) {
				t.Errorf("%s, %s: %+v", name, kind, r)
			}
			if c.want != "" {
				continue
			}
			// Another MTU of all: the file is then that of an installation with it.
			p := one(c.over)
			p.VLANs[0].MTU = 1500
			if r := f.Set(t.Context(), p); !r.Conforms || len(r.Changed) != 2 {
				t.Errorf("%s, %s: another MTU: %+v", name, kind, r)
			}
			if again := f.Set(t.Context(), p); !again.Conforms || len(again.Changed) > 0 {
				t.Errorf("%s, %s: again: %+v", name, kind, again)
			}
		}
	}
}

// TestVLANs that cannot be made are refused.
func TestVLANs(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*wire.NetworkParams){
		"name": func(p *wire.NetworkParams) { p.VLANs[0].Name = "a/b" }, "twice": func(p *wire.NetworkParams) { p.VLANs = append(p.VLANs, p.VLANs[0]) },
		"0": func(p *wire.NetworkParams) { p.VLANs[0].ID = 0 }, "4095": func(p *wire.NetworkParams) { p.VLANs[0].ID = 4095 }, "MTU": func(p *wire.NetworkParams) { p.VLANs[0].MTU = 0 },
		"port": func(p *wire.NetworkParams) { p.VLANs[0].Over = "x/0" }, "MAC": func(p *wire.NetworkParams) { p.VLANs[0].Over = "" },
		"member": func(p *wire.NetworkParams) { p.Bonds = bonded("802.3ad", 9000).Bonds }, "address": func(p *wire.NetworkParams) { p.VLANs[0].Addresses[0] = netip.Prefix{} },
	} {
		p := tagged(ports(9000), "mgmt/1")
		if change(&p); Check(p) == nil {
			t.Errorf("%s: %+v was taken", name, p)
		}
	}
}

// TestPeerVLAN: what netplan makes of its file for systemd-networkd is what our own files say;
// systemd-networkd reads every line of both, and NetworkManager the profiles. Whether the kernel
// here has VLANs is another matter.
func TestPeerVLAN(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "netplan", "/usr/lib/systemd/systemd-networkd", "unshare", "ip")
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	for name, c := range map[string]struct {
		p      wire.NetworkParams
		parent string // what netplan calls it
	}{
		"on the boot NIC": {tagged(ports(9000), "", "mgmt/0"), "boot"},
		"on a port":       {tagged(ports(9000), "mgmt/1", "mgmt/1"), "port-mgmt-1"},
		"on a bond":       {tagged(bonded("802.3ad", 9000), "bond0", "bond0"), "bond0"},
	} {
		made := withNetplan(t, c.p)
		dir := generate(t, made)
		theirs := newFake(t, false)
		for _, file := range made.FS.Names(dir) {
			// Interfaces of the test, unlike NICs, have no permanent address.
			put(t, theirs.dir, networkdFolder+file, strings.ReplaceAll(made.read(t, dir+"/"+file), "\nPermanentMACAddress=", "\nMACAddress="))
		}
		if text := made.read(t, dir+"/10-netplan-"+c.parent+".network"); !strings.Contains(text, "VLAN=vlan30\n") || !strings.Contains(text, "VLAN=vlan31\n") {
			t.Errorf("%s: netplan makes\n%s", name, text)
		}
		for file, wants := range map[string][]string{
			"vlan31.netdev":  {"Name=vlan31\n", "Kind=vlan\n", "[VLAN]\nId=31\n"},
			"vlan31.network": {"Name=vlan31\n", "MTUBytes=4200\n", "Address=10.30.1.11/24\nAddress=fd31::b/64\nIPv6AcceptRA=no\n", "RequiredForOnline=no\n"},
		} {
			text := made.read(t, dir+"/10-netplan-"+file)
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s: %s is\n%s\nwithout %q", name, file, text, want)
				}
			}
		}
		ours := newFake(t, false)
		ours.install(t, false, c.p)
		own := map[string]string{"port-mgmt-1": "port-mgmt-1"}[c.parent]
		if text := ours.read(t, NetworkdPrefix+cmp.Or(own, "boot")+".network"); !strings.Contains(text, "\nVLAN=vlan30\nVLAN=vlan31\n") {
			t.Errorf("%s: our file is\n%s", name, text)
		}
		for _, f := range []*fake{theirs, ours} {
			if out := runNetworkd(t, f, "5"); !strings.Contains(out, `vlan30: loaded "vlan"`) || !strings.Contains(out, `vlan31: loaded "vlan"`) {
				t.Errorf("%s: networkd did not load the VLANs:\n%s", name, out)
			}
		}
	}
}

// TestPeerVLANManager: NetworkManager reads the profiles, on what they are to be on.
func TestPeerVLANManager(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "nmcli")
	for parent, p := range map[string]wire.NetworkParams{"boot": tagged(ports(9000), ""), "port-mgmt-1": tagged(ports(9000), "mgmt/1")} {
		f := newFake(t, true)
		f.install(t, true, p)
		_, own, _ := strings.Cut(f.read(t, managerFolder+"ironrail-"+parent+".nmconnection"), "\nuuid=")
		id, _, _ := strings.Cut(own, "\n")
		managerReads(t, filepath.Join(f.dir, managerFolder, "ironrail-vlan30.nmconnection"), []string{"type=vlan\n", "interface-name=vlan30\n", "[ethernet]\nmtu=4200\n",
			"id=30\nparent=" + id + "\n", "[ipv4]\naddress1=10.30.0.11/24\nmethod=manual\n", "[ipv6]\naddress1=fd30::b/64\nmethod=manual\n"})
	}
}

// onVLAN are parameters with the node's own address on a VLAN interface over a port or bond; "": over
// the NIC that boots.
func onVLAN(p wire.NetworkParams, over string) wire.NetworkParams {
	p = tagged(p, over)
	p.VLANs[0].Boot, p.VLANs[0].Addresses = true, []netip.Prefix{netip.MustParsePrefix(boot.Address)}
	return p
}

// TestBootVLAN: the node's own addresses and what goes with them are the VLAN interface's, and what it is
// on has none.
func TestBootVLAN(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ over, parent string }{{"mgmt/0", "boot"}, {"", "boot"}, {"bond0", "bond0"}} {
		p := onVLAN(ports(9000), c.over)
		if c.over == "bond0" {
			p = onVLAN(bonded("active-backup", 9000), c.over)
		}
		for kind, wants := range map[string][2][]string{
			"networkd": {{"LinkLocalAddressing=no\nConfigureWithoutCarrier=yes\nVLAN=vlan30\n", "RequiredForOnline=no\n"}, {"Address=10.77.0.11/24\nGateway=10.77.0.1\nDNS=10.77.0.2\nDomains=lab.example\n", "MTUBytes=4200\n"}},
			"manager":  {{"[ipv4]\nmethod=disabled\n"}, {"type=vlan\n", "id=30\n", "method=manual\naddress1=10.77.0.11/24\ngateway=10.77.0.1\ndns=10.77.0.2;\ndns-search=lab.example;\n", "mtu=4200\n"}},
			"netplan":  {{"dhcp4: false\n", "optional: true\n", "link-local: []\n"}, {"id: 30\n", "link: " + c.parent + "\n", "- \"10.77.0.11/24\"\n", "via: \"10.77.0.1\"\n", "mtu: 4200\n"}},
		} {
			var on, vlan string
			switch kind {
			case "netplan":
				text := withNetplan(t, p).read(t, NetplanFile)
				_, on, _, _ = cutNetplan(text, c.parent)
				_, vlan, _, _ = cutNetplan(text, "vlan30")
			default:
				f := newFake(t, kind == "manager")
				f.install(t, kind == "manager", p)
				prefix, end := NetworkdPrefix, ".network"
				if kind == "manager" {
					prefix, end = ManagerPrefix, ".nmconnection"
				}
				on, vlan = f.read(t, prefix+"boot"+end), f.read(t, prefix+"vlan30"+end)
			}
			for i, text := range []string{on, vlan} {
				for _, want := range wants[i] {
					if !strings.Contains(text, want) {
						t.Errorf("%s over %q: no %q in\n%s", kind, c.over, want, text)
					}
				}
			}
			if strings.Contains(on, "10.77.0") || strings.Contains(vlan, "RequiredForOnline=no") || strings.Contains(vlan, "optional") {
				t.Errorf("%s over %q:\n%s\n%s", kind, c.over, on, vlan)
			}
		}
	}
}

// TestPeerBootVLAN: systemd-networkd and NetworkManager read every line, and netplan makes the same
// of its file.
func TestPeerBootVLAN(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "netplan", "nmcli", "/usr/lib/systemd/systemd-networkd", "unshare", "ip")
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	p := onVLAN(ports(9000), "mgmt/0")
	made, ours, manager := withNetplan(t, p), newFake(t, false), newFake(t, true)
	dir := generate(t, made)
	if text := made.read(t, dir+"/10-netplan-vlan30.network"); !strings.Contains(text, "Address=10.77.0.11/24\n") || !strings.Contains(text, "Gateway=10.77.0.1\n") || strings.Contains(text, "RequiredForOnline=no") {
		t.Errorf("netplan makes\n%s", text)
	}
	if text := made.read(t, dir+"/10-netplan-boot.network"); !strings.Contains(text, "VLAN=vlan30\n") || strings.Contains(text, "Address=10") || !strings.Contains(text, "RequiredForOnline=no") {
		t.Errorf("netplan makes\n%s", text)
	}
	ours.install(t, false, p)
	if out := runNetworkd(t, ours, "5"); !strings.Contains(out, `vlan30: loaded "vlan"`) {
		t.Errorf("networkd did not load the VLAN:\n%s", out)
	}
	manager.install(t, true, p)
	managerReads(t, filepath.Join(manager.dir, managerFolder, "ironrail-vlan30.nmconnection"), []string{"type=vlan\n", "id=30\n", "address1=10.77.0.11/24,10.77.0.1\n", "dns=10.77.0.2;\n"})
	managerReads(t, filepath.Join(manager.dir, managerFolder, "ironrail-boot.nmconnection"), []string{"[ipv4]\nmethod=disabled\n"})
}

// TestBootVLAN6: the second address is on the VLAN interface, which has the MAC of what it is on.
func TestBootVLAN6(t *testing.T) {
	t.Parallel()
	p := onVLAN(with6(ports(9000)), "mgmt/0")
	for netdev, want := range map[string]string{"vlan30": "", "eth0": "eth0 has it, and not vlan30"} {
		f := newFake(t, false)
		f.install(t, false, p)
		f.tag(t, p, "eth0")
		put(t, f.dir, "sys/class/net/vlan30/address", "52:54:00:77:00:11\n")
		put(t, f.dir, "sys/class/net/eth0/mtu", "9000\n")
		put(t, f.dir, "sys/class/net/eth1/mtu", "9000\n")
		put(t, f.dir, "proc/net/if_inet6", strings.ReplaceAll(inet6Good, "eth0", netdev))
		put(t, f.dir, "proc/net/ipv6_route", strings.ReplaceAll(route6Good, "eth0", netdev))
		r := f.Look(p)
		l := r.Links[len(r.Links)-1]
		if r.Conforms != (want == "") || want != "" && (len(l.Problems) != 1 || !strings.HasSuffix(l.Problems[0], want)) {
			t.Errorf("on %s: %+v", netdev, r)
		}
	}
}
