// SPDX-License-Identifier: Apache-2.0

package interfaces

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
)

// networkdScript starts systemd-networkd in namespaces of its own, with interfaces that it
// is to set up by the files of a folder ($1), and prints what the kernel has then. With
// /sys read-only it does as in a container: it waits for no udev.
const networkdScript = `set -e
mount -t tmpfs none /run
mkdir -p /run/systemd/netif/links /run/systemd/netif/leases
chown -R systemd-network /run/systemd/netif
mount -t tmpfs none /etc/systemd/network
cp "$1"/* /etc/systemd/network
mount -t sysfs -o ro none /sys
ip link set lo up
ip link add eth0 address 52:54:00:77:00:11 type veth peer name peer0
ip link add eth1 address 52:54:00:77:00:12 type veth peer name peer1
ip link set peer0 mtu 9216 up
if [ -n "$4" ]; then ip -6 address add "$4" dev peer0 nodad; fi
SYSTEMD_LOG_LEVEL=debug SYSTEMD_LOG_TARGET=console /usr/lib/systemd/systemd-networkd &
for i in $(seq "$3"); do
  sleep 0.1
  if ip -o link show eth1 | grep -q "$2" && ip -o -4 addr show eth0 | grep -q inet; then break; fi
done
kill $! || true
wait $! || true
for i in eth0 eth1; do echo "$i $(cat /sys/class/net/$i/mtu) $(ip -o addr show $i | grep -v fe80 | sed 's/.*inet6* \([^ ]*\) .*/\1/' | tr '\n' ' ')"; done
ip route show default
for i in $(seq 30); do
  ip -6 address show tentative -dadfailed | grep -q inet6 || break
  sleep 0.1
done
echo "--- if_inet6"
cat /proc/net/if_inet6
echo "--- ipv6_route"
cat /proc/net/ipv6_route
`

// TestPeerNetworkd: systemd-networkd takes every line of the files, and sets up what they
// say: the boot NIC's address and route, and the MTU of both ports, one of which has no
// carrier.
func TestPeerNetworkd(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "/usr/lib/systemd/systemd-networkd", "unshare", "ip")
	if os.Geteuid() != 0 {
		t.Skip("needs root for namespaces")
	}
	f := newFake(t, false)
	f.install(t, false, ports(9000))
	out := runNetworkd(t, f, "100")
	for _, want := range []string{"\neth0 9000 10.77.0.11/24 \n", "\neth1 9000 \n", "default via 10.77.0.1 dev eth0"} {
		if !strings.Contains(out, want) {
			t.Errorf("networkd did not do %q", want)
		}
	}
	for mode := range modes { // whether the kernel here has bonds or not, every line is read
		f := newFake(t, false)
		f.install(t, false, bonded(mode, 9000))
		if out := runNetworkd(t, f, "5"); !strings.Contains(out, `bond0: loaded "bond"`) {
			t.Errorf("%s: networkd did not load the bond:\n%s", mode, out)
		}
	}
}

// runNetworkd has networkd set up the interfaces of a root, and returns what it said and
// what there was then, after tenths of a second at most. What it does not understand is an error.
func runNetworkd(t *testing.T, f *fake, tenths string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--mount", "sh", "-c", networkdScript, "sh", filepath.Join(f.dir, "etc/systemd/network"), "mtu 9000", tenths, f.taken)
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "10-ironrail") && (strings.Contains(line, "Unknown") || strings.Contains(line, "ignoring") || strings.Contains(line, "Invalid") || strings.Contains(line, "Failed to parse")) {
			t.Errorf("networkd: %s", line)
		}
	}
	return string(b)
}

// TestPeerManager: NetworkManager's own program reads the profile of a port as it is meant.
func TestPeerManager(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "nmcli")
	for _, c := range []struct {
		params wire.NetworkParams
		want   map[string][]string
	}{
		{ports(9000), map[string][]string{
			"ironrail-boot":        {"mac-address=52:54:00:77:00:11\nmtu=9000\n", "address1=10.77.0.11/24,10.77.0.1\n"},
			"ironrail-port-mgmt-1": {"mac-address=52:54:00:77:00:12\nmtu=9000\n", "[ipv4]\nmethod=disabled\n", "[ipv6]\nmethod=disabled\n"},
		}},
		{bonded("802.3ad", 9000), map[string][]string{
			"ironrail-boot":        {"type=bond\n", "interface-name=bond0\n", "autoconnect-slaves=1\n", "lacp_rate=fast\n", "miimon=100\n", "mode=802.3ad\n", "xmit_hash_policy=layer3+4\n", "cloned-mac-address=52:54:00:77:00:11\n", "mtu=9000\n", "address1=10.77.0.11/24,10.77.0.1\n"},
			"ironrail-port-mgmt-0": {"master=bond0\n", "slave-type=bond\n", "mac-address=52:54:00:77:00:11\n", "mtu=9000\n"},
			"ironrail-port-mgmt-1": {"master=bond0\n", "slave-type=bond\n", "mac-address=52:54:00:77:00:12\n", "mtu=9000\n"},
		}},
		{bonded("active-backup", 0), map[string][]string{"ironrail-boot": {"mode=active-backup\n", "miimon=100\n"}}},
	} {
		f := newFake(t, true)
		f.install(t, true, c.params)
		for name, wants := range c.want {
			managerReads(t, filepath.Join(f.dir, managerFolder, name+".nmconnection"), wants)
		}
	}
}

// managerReads has nmcli read a profile and write it in its own way.
func managerReads(t *testing.T, profile string, wants []string) {
	t.Helper()
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "nmcli", "--offline", "connection", "modify", "connection.autoconnect", "yes")
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.CombinedOutput()
	for _, want := range wants {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: nmcli reads\n%s\nwithout %q of\n%s", err, out, want, text)
		}
	}
}
