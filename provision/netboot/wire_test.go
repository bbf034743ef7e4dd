// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/provision/netboot"
)

// neighbour makes a second namespace, connected by the pair boot0 - wire0, and
// returns the words that run a command in it.
func neighbour(t *testing.T) []string {
	t.Helper()
	pid, in := second(t)
	for _, c := range []string{
		"ip link set lo up",
		"ip link add boot0 type veth peer name wire0 netns " + pid,
		"ip addr add 10.99.0.2/16 dev boot0",
		"ip link set boot0 up",
		strings.Join(in, " ") + " ip link set lo up",
		strings.Join(in, " ") + " ip addr add 10.99.255.1/16 dev wire0",
		strings.Join(in, " ") + " ip link set wire0 up",
	} {
		sh(t, c)
	}
	until(t, time.Minute, func() string { return linkOf(t, in, "wire0") }, "state UP") // Kea passes over one that is not
	return in
}

// second makes a second namespace, and returns the process that holds it and the words
// that run a command in it.
func second(t *testing.T) (pid string, in []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", "sh", "-c", "echo ready; exec sleep 600")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("second namespace: %q %v", line, err)
	}
	pid = strconv.Itoa(cmd.Process.Pid)
	return pid, []string{"nsenter", "-t", pid, "-n"}
}

// dnsmasq starts a DHCP server in front of words (a namespace) on an interface,
// and waits until it holds its port.
func dnsmasq(t *testing.T, in []string, ifname string) {
	t.Helper()
	args := append(in, "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--user=root", "--bind-interfaces", "--interface="+ifname,
		"--dhcp-range=10.99.100.1,10.99.100.9,1h", "--dhcp-leasefile="+t.TempDir()+"/leases", "--pid-file=", "--no-ping")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Signal(syscall.SIGTERM); cmd.Wait() })
	for sc := bufio.NewScanner(stderr); sc.Scan(); {
		t.Log(sc.Text())
		if strings.Contains(sc.Text(), "DHCP, sockets bound") {
			return
		}
	}
	t.Fatal("dnsmasq did not bind its socket")
}

// TestPeerLocalServer finds a dnsmasq on the controller itself, which frames that we
// send never reach.
func TestPeerLocalServer(t *testing.T) {
	t.Parallel()
	if !inNamespace(t, "unshare", "nsenter", "dnsmasq") {
		return
	}
	neighbour(t)
	dnsmasq(t, nil, "boot0")
	_, err := netboot.Open(t.Context(), config(), newOne(t), newDiary())
	checkRefused(t, err, "UDP port 67", "dnsmasq (pid ")
}

func checkRefused(t *testing.T, err error, words ...string) {
	t.Helper()
	if errkind.Of(err) != errkind.Refused || errkind.Action(err) == "" {
		t.Fatalf("got %v (kind %v, action %q), want one that is refused with an action", err, errkind.Of(err), errkind.Action(err))
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not name %q", err, w)
		}
	}
	t.Logf("%v\n%s", err, errkind.Action(err))
}

// row is a Source of many nodes with consecutive MACs, as perfdhcp makes them.
type row struct{ base, count uint64 }

func (r row) at(i uint64) netboot.Client {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], r.base+i)
	return netboot.Client{Node: fmt.Sprintf("n%d", i), MACs: []addr.MAC{addr.MAC(b[2:])},
		Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 99, byte(1 + i>>8), byte(i)}), 16)}
}

func (r row) ByMAC(m addr.MAC) (netboot.Client, bool) {
	var b [8]byte
	copy(b[2:], m[:])
	i := binary.BigEndian.Uint64(b[:]) - r.base
	if i >= r.count {
		return netboot.Client{}, false
	}
	return r.at(i), true
}
func (r row) ByAddress(netip.Addr) (netboot.Client, bool) { return netboot.Client{}, false }
func (r row) Attempt(string) (netboot.Attempt, bool)      { return netboot.Attempt{}, false }

// TestPeerStorm powers on 2,000 nodes behind a relay, faster than a rack does:
// perfdhcp is the independent client. Whatever reaches the server is answered.
// How fast that can be is measured by benchmarks, not judged here: on a loaded
// machine the client itself loses packets.
func TestPeerStorm(t *testing.T) {
	if !inNamespace(t, "unshare", "nsenter", "perfdhcp") {
		return
	}
	in := neighbour(t)
	src := row{base: 0x020000000000, count: 2000}
	s := serve(t, config(), src, newDiary())
	args := append(in, "perfdhcp", "-4", "-l", "wire0", "-b", "mac=02:00:00:00:00:00", "-R", "2000", "-n", "2000", "-r", "700", "-d", "10", "-W", "2000000", "-s", "1", "10.99.0.2")
	began := time.Now()
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	st := s.DHCPStats()
	t.Logf("perfdhcp: %v after %v; our counters %+v\n%s", err, time.Since(began).Round(time.Millisecond), st, out)
	if st.Received < 2000 || st.Answered != st.Received || st.Dropped != 0 || st.Failed != 0 {
		t.Errorf("counters %+v: want every request answered", st)
	}
}
