// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/rootfs"
)

// withNetplan is a root with two ports and netplan.
func withNetplan(t *testing.T, installed wire.NetworkParams) *fake {
	t.Helper()
	f := newFake(t, false)
	put(t, f.dir, netplanProgram, "")
	found, err := Find(f.FS, installed)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range Netplan(boot, found) {
		put(t, f.dir, x.Name, x.Text)
		if err := os.Chmod(filepath.Join(f.dir, x.Name), x.Mode); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func (f *fake) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestUsesNetplan: a system that has netplan has its interfaces set up by it, and no other.
func TestUsesNetplan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		files []string
		want  bool
	}{
		{[]string{netplanProgram, "usr/lib/systemd/system/systemd-networkd.service"}, true},
		{[]string{"usr/lib/systemd/system/systemd-networkd.service"}, false},
		{[]string{netplanProgram, "usr/lib/systemd/system/NetworkManager.service"}, false},
	} {
		dir := t.TempDir()
		for _, name := range c.files {
			put(t, dir, name, "")
		}
		root, err := rootfs.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := UsesNetplan(root); got != c.want {
			t.Errorf("%q: %v", c.files, got)
		}
		root.Close()
	}
}

// TestSetNetplan: an MTU is set now and at boot; a second time changes nothing, and the file
// is then that of an installation with the MTU. A port that the installation knew nothing
// of comes into the file.
func TestSetNetplan(t *testing.T) {
	t.Parallel()
	f := withNetplan(t, wire.NetworkParams{})
	if r := f.Look(ports(9000)); r.Conforms || len(r.Links[0].Problems) != 2 || r.Links[0].Problems[1] != "mgmt/0: /etc/netplan/10-ironrail.yaml does not set an MTU of 9000 at boot" {
		t.Errorf("before: %+v", r)
	}
	for i, mtu := range []int{9000, 4200, 1500} {
		r := f.Set(t.Context(), ports(mtu))
		if want := 4; !r.Conforms || len(r.Changed) != want {
			t.Errorf("%d: %+v", mtu, r)
		}
		if n := strings.Count(strings.Join(f.said, "\n"), "netplan generate"); n != i+1 {
			t.Errorf("%d: netplan read its file %d times: %q", mtu, n, f.said)
		}
		if again := f.Set(t.Context(), ports(mtu)); !again.Conforms || len(again.Changed) > 0 {
			t.Errorf("%d, again: %+v", mtu, again)
		}
		got, want := f.read(t, NetplanFile), withNetplan(t, ports(mtu)).read(t, NetplanFile)
		if sorted(got) != sorted(want) {
			t.Errorf("%d:\n%s\nand an installation writes\n%s", mtu, got, want)
		}
	}
	if info, err := os.Stat(filepath.Join(f.dir, NetplanFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if names := f.FS.Names(strings.TrimSuffix(networkdFolder, "/")); len(names) > 0 {
		t.Errorf("files of networkd beside that of netplan: %q", names)
	}
}

// sorted is a text with its lines in order.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestBondNetplan: another MTU is set on a bond and its members; a node that was installed
// without the bond is refused.
func TestBondNetplan(t *testing.T) {
	t.Parallel()
	f := withNetplan(t, bonded("802.3ad", 9000))
	ok := [3]string{"up", "1", "63"}
	f.enslave(t, "802.3ad 4", map[string][3]string{"eth0": ok, "eth1": ok})
	if r := f.Look(bonded("802.3ad", 9000)); !r.Conforms || r.Error != nil {
		t.Errorf("as it is to be: %+v", r)
	}
	if r := f.Set(t.Context(), bonded("802.3ad", 4200)); !r.Conforms || f.said[0] != "bond0 4200" || len(r.Changed) != 6 {
		t.Errorf("MTU of a bond: %+v, %q", r, f.said)
	}
	if got, want := f.read(t, NetplanFile), withNetplan(t, bonded("802.3ad", 4200)).read(t, NetplanFile); got != want {
		t.Errorf("%s\nand an installation writes\n%s", got, want)
	}
	f = withNetplan(t, ports(9000))
	r := f.Look(bonded("802.3ad", 9000))
	if r.Conforms || !strings.Contains(r.Links[0].Problems[0], "no such bond on the node") {
		t.Errorf("a node that was installed without: %+v", r)
	}
}

// TestPeerNetplan: netplan takes the file, and what it makes of it for systemd-networkd is
// what the node needs: addresses on the boot NIC or its bond alone, MTUs, and bonds with
// the settings of our own files for networkd. It complains of nothing.
func TestPeerNetplan(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "netplan")
	addresses := "Address=10.77.0.11/24\nIPv6AcceptRA=no\nDNS=10.77.0.2\nDomains=lab.example\n"
	member := func(mac, more string) string {
		return "[Match]\nPermanentMACAddress=" + mac + "\n\n[Link]\nMTUBytes=9000\n\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\nBond=bond0\n" + more
	}
	for mode, want := range map[string]map[string][]string{
		"": {
			"boot.network":        {"[Match]\nPermanentMACAddress=52:54:00:77:00:11\n", "[Link]\nMTUBytes=9000\n", addresses, "Gateway=10.77.0.1\n"},
			"port-mgmt-1.network": {"[Match]\nPermanentMACAddress=52:54:00:77:00:12\n", "RequiredForOnline=no\nMTUBytes=9000\n", "LinkLocalAddressing=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\n"},
		},
		"802.3ad": {
			"bond0.netdev":        {"Name=bond0\nMACAddress=52:54:00:77:00:11\n", "Kind=bond\n", "Mode=802.3ad\nLACPTransmitRate=fast\nMIIMonitorSec=100ms\nTransmitHashPolicy=layer3+4\n"},
			"bond0.network":       {"Name=bond0\n", "MTUBytes=9000\n", addresses, "Gateway=10.77.0.1\n"},
			"port-mgmt-0.network": {member("52:54:00:77:00:11", "")}, "port-mgmt-1.network": {member("52:54:00:77:00:12", "")},
		},
		"active-backup": {
			"bond0.netdev":        {"Mode=active-backup\nMIIMonitorSec=100ms\n"},
			"port-mgmt-0.network": {member("52:54:00:77:00:11", "PrimarySlave=true\n")}, "port-mgmt-1.network": {member("52:54:00:77:00:12", "")},
		},
		"balance-xor": {"bond0.netdev": {"Mode=balance-xor\n", "TransmitHashPolicy=layer3+4\n"}},
		"balance-rr":  {"bond0.netdev": {"Mode=balance-rr\nMIIMonitorSec=100ms\n"}},
	} {
		p := ports(9000)
		if mode != "" {
			p = bonded(mode, 9000)
		}
		f := withNetplan(t, p)
		made := generate(t, f)
		for name, texts := range want {
			got := f.read(t, filepath.Join(made, "10-netplan-"+name))
			for _, text := range texts {
				if !strings.Contains(got, text) {
					t.Errorf("%q: %s is\n%s\nwithout %q", mode, name, got, text)
				}
			}
		}
		wantAddresses(t, f, made)
	}
}

// wantAddresses fails the test unless the files of networkd give the node its address once,
// and nothing asks a DHCP server for one.
func wantAddresses(t *testing.T, f *fake, made string) {
	t.Helper()
	var all strings.Builder
	names, err := fs.Glob(os.DirFS(f.dir), made+"/*.network")
	if err != nil || len(names) < 2 {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		all.WriteString(f.read(t, name))
	}
	if n := strings.Count(all.String(), "\nAddress="); n != 1 || strings.Contains(all.String(), "DHCP=") {
		t.Errorf("%d addresses in\n%s", n, all.String())
	}
}

// generate has netplan make the files of networkd, and returns their folder below the root.
func generate(t *testing.T, f *fake) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "netplan", "generate", "--root-dir", f.dir).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Fatalf("%v\n%s\n%s", err, out, f.read(t, NetplanFile))
	}
	return "run/systemd/network"
}

// TestPeerNetplanNetworkd: systemd-networkd does what netplan makes of the file, as it does
// what our own files say.
func TestPeerNetplanNetworkd(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "netplan", "/usr/lib/systemd/systemd-networkd", "unshare", "ip")
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	f := withNetplan(t, ports(9000))
	made := generate(t, f)
	for _, name := range f.FS.Names(made) {
		// Interfaces of the test, unlike NICs, have no permanent address.
		put(t, f.dir, networkdFolder+name, strings.ReplaceAll(f.read(t, made+"/"+name), "\nPermanentMACAddress=", "\nMACAddress="))
	}
	out := runNetworkd(t, f, "100")
	for _, want := range []string{"\neth0 9000 10.77.0.11/24 \n", "\neth1 9000 \n", "default via 10.77.0.1 dev eth0"} {
		if !strings.Contains(out, want) {
			t.Errorf("networkd did not do %q:\n%s", want, out)
		}
	}
}
