// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/netboot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// TestPeerRelay asks through dhcrelay of ISC, which adds option 82 and takes replies only
// that have it back: a node gets its address at its own port, and is refused at another;
// a machine that nobody knows gets an address of the pool behind the relay agent.
func TestPeerRelay(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "unshare", "nsenter", "busybox", "dhcrelay") {
		return
	}
	relay := neighbour(t) // 10.99.255.1 on wire0
	pid, client := second(t)
	in, far := strings.Join(relay, " "), strings.Join(client, " ")
	for _, c := range []string{
		in + " ip link add Ethernet8 type veth peer name wire0 netns " + pid,
		in + " ip addr add 10.98.0.1/24 dev Ethernet8",
		in + " ip link set Ethernet8 up",
		far + " ip link set wire0 address " + nodeMAC,
		far + " ip link set wire0 up",
		"ip route add 10.98.0.0/24 via 10.99.255.1",
	} {
		sh(t, c)
	}
	src, d := newOne(t), newDiary()
	src.client.Address, src.client.Gateway = netip.MustParsePrefix("10.98.0.11/24"), netip.MustParseAddr("10.98.0.1")
	var port atomic.Pointer[string]
	own, asked := "Ethernet8", atomic.Pointer[dhcp.Asked]{}
	port.Store(&own)
	cfg := config()
	cfg.Networks = []dhcp.Network{{Name: "boot", Prefix: netip.MustParsePrefix("10.99.0.0/16"), Local: true},
		{Name: "far", Prefix: netip.MustParsePrefix("10.98.0.0/24"), Relays: []netip.Addr{src.client.Gateway}, Gateway: src.client.Gateway,
			Pool: dhcp.NewPool(netip.MustParseAddr("10.98.0.200"), netip.MustParseAddr("10.98.0.240"), func(netip.Addr) bool { return false })}}
	cfg.WrongPort = func(_ netboot.Client, a dhcp.Asked) string {
		asked.Store(&a)
		if string(a.Circuit) != *port.Load() {
			return "asks at another port"
		}
		return ""
	}
	serve(t, cfg, src, d)
	program(t, "Sending on", append(relay, "dhcrelay", "-4", "-d", "--no-pid", "-a", "-D", "-i", "Ethernet8", "-i", "wire0", "10.99.0.2"))
	if env := lease(t, client); !strings.Contains(env, "\nip=10.98.0.11\n") || !strings.Contains(env, "\nrouter=10.98.0.1\n") {
		t.Errorf("at its port: %s\n%s", env, d)
	}
	if a := asked.Load(); a == nil || a.Relay != src.client.Gateway || string(a.Circuit) != "Ethernet8" {
		t.Fatalf("asked %+v", a)
	}
	other := "Ethernet16"
	port.Store(&other)
	if env := lease(t, client); env != "" {
		t.Errorf("at another port: %s", env)
	}
	if e := d.wait(t, time.Minute, "the refusal", func(e netboot.Evidence) bool { return e.What == dhcp.EventPort }); !e.Refused || e.Node != "n1" {
		t.Errorf("%+v", e)
	}
	for _, c := range []string{"down", "address 02:77:00:00:00:01", "up"} {
		sh(t, far+" ip link set wire0 "+c)
	}
	if env := lease(t, client); !strings.Contains(env, "\nip=10.98.0.2") || !strings.Contains(env, "\nlease=600\n") {
		t.Errorf("nobody's machine: %s\n%s", env, d)
	}
	if e := d.wait(t, time.Minute, "the lease", saw("dhcp", "pool")); !strings.Contains(e.Detail, `relay 10.98.0.1, circuit id "Ethernet8"`) {
		t.Errorf("%+v", e)
	}
}
