// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
)

// with6 is two ports, and an IPv6 address of the boot interface.
func with6(p wire.NetworkParams) wire.NetworkParams {
	p.IPv6 = &wire.NetworkAddress{MAC: bootMAC, Address: netip.MustParsePrefix("fd20::b/64"), Gateway: netip.MustParseAddr("fd20::1")}
	return p
}

// Lines of Linux 6.1.
const (
	inet6Good  = "fd20000000000000000000000000000b 02 40 00 80     eth0\n"
	inet6Other = "00000000000000000000000000000001 01 80 10 80       lo\nfe80000000000000505400fffe770011 02 40 20 80     eth0\n"
	route6Good = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd200000000000000000000000000001 00000400 00000001 00000000 00000003     eth0\n"
)

// TestIPv6: what is wrong with an address is said with its interface.
func TestIPv6(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ inet6, routes, what, want string }{
		"as it is to be":     {inet6Other + inet6Good, route6Good, "", ""},
		"none":               {inet6Other, route6Good, wire.IPv6Absent, "no interface has it"},
		"no IPv6":            {"", "", wire.IPv6Absent, "the kernel has no IPv6"},
		"another interface":  {strings.Replace(inet6Good, "eth0", "eth1", 1), route6Good, wire.IPv6Absent, "eth1 has it, with MAC 52:54:00:77:00:12, and not the interface with MAC 52:54:00:77:00:11"},
		"another length":     {strings.Replace(inet6Good, " 40 00 80", " 80 00 80", 1), route6Good, wire.IPv6Absent, "with a prefix of 128 bits"},
		"a duplicate":        {strings.Replace(inet6Good, " 00 80", " 00 c8", 1), route6Good, wire.IPv6Duplicate, "another machine on the network of eth0 has it"},
		"not yet":            {strings.Replace(inet6Good, " 00 80", " 00 c0", 1), route6Good, wire.IPv6Pending, "has not ended"},
		"no route":           {inet6Good, "", wire.IPv6Route, "no default route by fd20::1 on eth0"},
		"another gateway":    {inet6Good, strings.Replace(route6Good, "0001 00000400", "0002 00000400", 1), wire.IPv6Route, "no default route by fd20::1"},
		"a route to a place": {inet6Good, strings.Replace(route6Good, " 00 ", " 40 ", 1), wire.IPv6Route, "no default route by fd20::1"},
	} {
		f := newFake(t, false)
		f.install(t, false, with6(ports(1500)))
		if c.inet6 != "" {
			put(t, f.dir, "proc/net/if_inet6", c.inet6)
		}
		put(t, f.dir, "proc/net/ipv6_route", c.routes)
		r := f.Look(with6(ports(1500)))
		l := r.Links[len(r.Links)-1]
		if r.Conforms != (c.want == "") || l.IPv6 != c.what || (c.want != "") != (len(l.Problems) == 1) {
			t.Errorf("%s: %+v", name, r)
		} else if c.want != "" && (!strings.HasPrefix(l.Problems[0], "IPv6 address fd20::b/64: ") || !strings.Contains(l.Problems[0], c.want)) {
			t.Errorf("%s: %q", name, l.Problems)
		}
	}
	for name, bad := range map[string]wire.NetworkAddress{
		"no MAC":   {Address: netip.MustParsePrefix("fd20::b/64")},
		"IPv4":     {MAC: bootMAC, Address: netip.MustParsePrefix("10.0.0.1/24")},
		"nothing":  {MAC: addr.MAC{2}},
		"gateway4": {MAC: bootMAC, Address: netip.MustParsePrefix("fd20::b/64"), Gateway: netip.MustParseAddr("10.0.0.1")},
		"zone":     {MAC: bootMAC, Address: netip.MustParsePrefix("fd20::b/64"), Gateway: netip.MustParseAddr("fe80::1%eth0\n")},
	} {
		if Check(wire.NetworkParams{IPv6: &bad}) == nil {
			t.Errorf("%s: %+v was taken", name, bad)
		}
	}
}

// TestIPv6KeepsMTU: an MTU that is set on a running node leaves both addresses in the file.
func TestIPv6KeepsMTU(t *testing.T) {
	t.Parallel()
	for _, f := range []*fake{newFake(t, false), newFake(t, true), withNetplan(t, with6(ports(9000)))} {
		if !f.usesNetplan() {
			f.install(t, f.usesManager(), with6(ports(9000)))
		}
		put(t, f.dir, "proc/net/if_inet6", inet6Good)
		put(t, f.dir, "proc/net/ipv6_route", route6Good)
		if r := f.Set(t.Context(), with6(ports(4200))); !r.Conforms {
			t.Errorf("%+v", r)
		}
		name := f.bootFile().Name
		if f.usesNetplan() {
			name = NetplanFile
		}
		if text := f.read(t, name); !strings.Contains(text, "10.77.0.11/24") || !strings.Contains(text, "fd20::b/64") || !strings.Contains(text, "4200") {
			t.Errorf("%s", text)
		}
	}
}

// TestPeerIPv6: systemd-networkd gives both addresses and both routes, by our file and by
// what netplan makes of ours, to a port and to a bond; the kernel's own files say so to the agent, and
// that another machine has the address.
func TestPeerIPv6(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "netplan", "/usr/lib/systemd/systemd-networkd", "unshare", "ip")
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	for _, netplan := range []bool{false, true} {
		for _, taken := range []string{"", "fd20::b/64"} {
			f := newFake(t, false)
			if netplan {
				made := withNetplan(t, with6(ports(9000)))
				for _, name := range made.FS.Names(generate(t, made)) {
					// Interfaces of the test, unlike NICs, have no permanent address.
					put(t, f.dir, networkdFolder+name, strings.ReplaceAll(made.read(t, "run/systemd/network/"+name), "\nPermanentMACAddress=", "\nMACAddress="))
				}
			} else {
				f.install(t, false, with6(ports(9000)))
			}
			f.taken = taken
			_, state, _ := strings.Cut(runNetworkd(t, f, "100"), "--- if_inet6\n")
			addresses, routes, _ := strings.Cut(state, "--- ipv6_route\n")
			put(t, f.dir, "proc/net/if_inet6", addresses)
			put(t, f.dir, "proc/net/ipv6_route", routes)
			r := f.Look(wire.NetworkParams{IPv6: with6(wire.NetworkParams{}).IPv6})
			if l := r.Links[0]; taken == "" && !r.Conforms || taken != "" && l.IPv6 != wire.IPv6Duplicate && l.IPv6 != wire.IPv6Absent {
				t.Errorf("netplan %v, taken %q: %+v of\n%s\n%s", netplan, taken, r, addresses, routes)
			}
		}
	}
}

// TestPeerIPv6Manager: NetworkManager reads the profile with both families.
func TestPeerIPv6Manager(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "nmcli")
	for _, p := range []wire.NetworkParams{ports(9000), bonded("802.3ad", 9000)} {
		f := newFake(t, true)
		f.install(t, true, with6(p))
		managerReads(t, filepath.Join(f.dir, managerFolder, "ironrail-boot.nmconnection"), []string{
			"[ipv4]\naddress1=10.77.0.11/24,10.77.0.1\n", "dns-search=lab.example;\nmethod=manual\n",
			"[ipv6]\naddress1=fd20::b/64,fd20::1\nmethod=manual\n"})
	}
}
