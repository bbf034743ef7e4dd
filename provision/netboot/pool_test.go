// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/netboot/boot"
	"github.com/ironrail/ironrail/provision/netboot/dhcp"
)

// behindWire serves a pool on the far end of boot0, beside the node whose MAC wire0 gets
// where known is set, and returns the words that run a command there.
func behindWire(t *testing.T, last string, known bool) ([]string, *diary) {
	t.Helper()
	in := neighbour(t)
	if known {
		sh(t, strings.Join(in, " ")+" ip link set wire0 down")
		sh(t, strings.Join(in, " ")+" ip link set wire0 address "+nodeMAC)
		sh(t, strings.Join(in, " ")+" ip link set wire0 up")
	}
	d := newDiary()
	cfg := config()
	cfg.Networks = []dhcp.Network{{Name: "boot", Prefix: netip.MustParsePrefix("10.99.0.0/16"), Local: true, Relays: []netip.Addr{netip.MustParseAddr("10.99.255.1")},
		Pool: dhcp.NewPool(netip.MustParseAddr("10.99.100.1"), netip.MustParseAddr(last), func(netip.Addr) bool { return false })}}
	src := newOne(t)
	src.client.Address = netip.MustParsePrefix("10.99.0.11/16")
	serve(t, cfg, src, d)
	return in, d
}

// lease runs udhcpc of busybox once, and returns what its script was given.
func lease(t *testing.T, in []string, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	script := write(t, dir, "script", "#!/bin/sh\n[ \"$1\" = deconfig ] || env > "+dir+"/env\n")
	sh(t, "chmod 755 "+script)
	args := append(append([]string{}, in...), "busybox", "udhcpc", "-i", "wire0", "-f", "-q", "-n", "-t", "6", "-T", "2", "-s", script)
	args = append(args, more...)
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	env, _ := exec.CommandContext(t.Context(), "cat", filepath.Join(dir, "env")).Output()
	t.Logf("udhcpc: %v\n%s%s", err, out, env)
	if err != nil {
		return ""
	}
	return "\n" + string(env)
}

// TestPeerPool: udhcpc on a machine that nobody knows gets an address of the pool for ten
// minutes and no boot file.
func TestPeerPool(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "unshare", "nsenter", "busybox") {
		return
	}
	in, d := behindWire(t, "10.99.100.40", false)
	env := lease(t, in)
	if !strings.Contains(env, "\nip=10.99.100.") || !strings.Contains(env, "\nlease=600\n") || !strings.Contains(env, "\nmask=16\n") || strings.Contains(env, "boot_file=") {
		t.Errorf("got %s", env)
	}
	e := d.wait(t, time.Minute, "the lease", saw("dhcp", "pool"))
	if e.Node != "" || !strings.Contains(e.Detail, macOf(t, in)) {
		t.Errorf("%+v", e)
	}
}

// TestPeerPoolNode: a node has its own address there.
func TestPeerPoolNode(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "unshare", "nsenter", "busybox") {
		return
	}
	in, _ := behindWire(t, "10.99.100.40", true)
	if env := lease(t, in); !strings.Contains(env, "\nip=10.99.0.11\n") {
		t.Errorf("got %s", env)
	}
}

// TestPeerPoolConflict: of three addresses somebody has two, who answers by ARP; the third is
// given.
func TestPeerPoolConflict(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "unshare", "nsenter", "busybox") {
		return
	}
	bridge(t)
	owner := plugged(t, "peer1", "10.99.0.100/24", "10.99.0.101/24")
	in := plugged(t, "peer2")
	d := newDiary()
	cfg := config()
	cfg.Networks = []dhcp.Network{{Name: "boot", Prefix: netip.MustParsePrefix("10.99.0.0/24"), Local: true,
		Pool: dhcp.NewPool(netip.MustParseAddr("10.99.0.100"), netip.MustParseAddr("10.99.0.102"), func(netip.Addr) bool { return false })}}
	serve(t, cfg, newOne(t), d)
	for range 2 { // the second time it has its lease
		if env := lease(t, in, "-r", "10.99.0.100"); !strings.Contains(env, "\nip=10.99.0.102\n") {
			t.Errorf("got %s\n%s", env, d)
		}
	}
	d.wait(t, time.Minute, "the conflict", func(e boot.Evidence) bool { return e.What == "conflict" })
	for _, e := range d.all() {
		if e.What == "conflict" && (!e.Refused || !strings.Contains(e.Detail, macOf(t, owner))) {
			t.Errorf("%+v", e)
		}
	}
	t.Logf("\n%s", d)
}

// TestPeerPoolFlood: perfdhcp asks as a thousand machines behind a relay agent; it gets half
// of the pool at most, and a node its address.
func TestPeerPoolFlood(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "unshare", "nsenter", "perfdhcp") {
		return
	}
	in, d := behindWire(t, "10.99.100.200", true)
	args := append(append([]string{}, in...), "perfdhcp", "-4", "-l", "wire0", "-b", "mac=02:00:00:00:00:00", "-R", "1000", "-n", "1000", "-r", "300", "-d", "10", "-W", "1000000", "-s", "1", "10.99.0.2")
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	leases := 0
	for _, e := range d.all() {
		if e.What == dhcp.EventPool {
			leases++
		}
	}
	t.Logf("%v, %d leases\n%s", err, leases, out)
	if leases == 0 || leases > 100 {
		t.Errorf("a flood got %d of 200 addresses", leases)
	}
	if env := lease(t, in); !strings.Contains(env, "\nip=10.99.0.11\n") {
		t.Errorf("a node after the flood: %s", env)
	}
}
