// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision/netboot"
)

// addressServer starts a dnsmasq behind the boot bridge that gives the node of the tests
// an address, as a site's DHCP server does, and no boot file.
func addressServer(t *testing.T, address string) {
	t.Helper()
	in := plugged(t, "peer1", "10.99.0.3/24")
	program(t, "DHCP, sockets bound", append(in, "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--user=root", "--bind-interfaces", "--interface=wire0",
		"--dhcp-range=10.99.0.0,static", "--dhcp-host="+nodeMAC+","+address, "--dhcp-leasefile="+filepath.Join(t.TempDir(), "leases"), "--pid-file=", "--no-ping"))
}

// plugged is a machine at the boot bridge, in a namespace of its own: the words that run a
// command there. port is the name of its end at the bridge; addresses are given by hand.
func plugged(t *testing.T, port string, addresses ...string) []string {
	t.Helper()
	pid, in := second(t)
	run := strings.Join(in, " ")
	list := []string{"ip link add " + port + " type veth peer name wire0 netns " + pid, "ip link set " + port + " master boot0", "ip link set " + port + " up", run + " ip link set lo up"}
	for _, a := range addresses {
		list = append(list, run+" ip addr add "+a+" dev wire0")
	}
	for _, c := range append(list, run+" ip link set wire0 up") {
		sh(t, c)
	}
	return in
}

// proxied boots a machine whose address comes from dnsmasq and whose boot file comes from
// the controller, to a kernel of the given name.
func proxied(t *testing.T, kernel string, firmware func(*testing.T) []string) *diary {
	t.Helper()
	bridge(t)
	addressServer(t, "10.99.0.11")
	mount, attempt := bootFiles(t, kernel)
	src, d := newOne(t), newDiary()
	src.attempt = attempt
	cfg := config(mount)
	cfg.Proxy, cfg.WatchOthers = true, true
	serve(t, cfg, src, d)
	machine(t, firmware(t)...)
	e := d.wait(t, 240*time.Second, "initrd", saw("http", "initrd.end"))
	t.Logf("initrd after %.1f s\n%s", e.Time.Sub(d.start).Seconds(), d)
	for _, e := range d.all() {
		if e.Proto == "dhcp" && (e.What == "ack" || e.Refused) {
			t.Errorf("beside another server: %+v", e)
		}
	}
	return d
}

// TestPeerProxyBIOS boots SeaBIOS with its iPXE ROM beside dnsmasq.
func TestPeerProxyBIOS(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "qemu-system-x86_64", "dnsmasq", "unshare", "nsenter") {
		return
	}
	d := proxied(t, "ipxe.lkrn", func(*testing.T) []string { return biosArgs() })
	d.wait(t, time.Second, "the address", saw("dhcp", "leased"))
}

// TestPeerProxyUEFI boots EDK2's PXE, which asks the boot server's port, and then iPXE.
func TestPeerProxyUEFI(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "qemu-system-x86_64", "dnsmasq", "unshare", "nsenter") {
		return
	}
	d := proxied(t, "ipxe.efi", uefiArgs)
	d.wait(t, time.Second, "a request at the boot server's port", saw("dhcp", "boot-server"))
	d.wait(t, time.Second, "snponly.efi", saw("tftp", "done"))
}

// TestPeerProxyHTTP boots EDK2's HTTP boot, and then iPXE.
func TestPeerProxyHTTP(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "qemu-system-x86_64", "dnsmasq", "unshare", "nsenter") {
		return
	}
	d := proxied(t, "ipxe.efi", func(t *testing.T) []string {
		return append(uefiArgs(t), "-fw_cfg", "name=opt/org.tianocore/IPv4PXESupport,string=n", "-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=n")
	})
	d.wait(t, time.Second, "snponly.efi", saw("http", "loader"))
}

// TestPeerProxyOtherAddress: an address that is not the node's is named with who gave it.
func TestPeerProxyOtherAddress(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "qemu-system-x86_64", "dnsmasq", "unshare", "nsenter") {
		return
	}
	bridge(t)
	addressServer(t, "10.99.0.77")
	src, d := newOne(t), newDiary()
	cfg := config()
	cfg.Proxy = true
	serve(t, cfg, src, d)
	machine(t, biosArgs()...)
	e := d.wait(t, 240*time.Second, "refusal", func(e netboot.Evidence) bool { return e.Refused })
	if e.What != "address" || e.Node != "n1" || !strings.Contains(e.Detail, "the DHCP server 10.99.0.3 gives it 10.99.0.77, and the files say 10.99.0.11") {
		t.Errorf("evidence %+v", e)
	}
}
