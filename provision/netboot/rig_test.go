// SPDX-License-Identifier: Apache-2.0

package netboot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/provision/netboot"
)

// inNamespace runs the calling test again inside a network namespace of its own
// and reports whether this is that second run. Sockets that libraries open in
// goroutines would leave a namespace that only one thread had entered.
func inNamespace(t *testing.T, tools ...string) bool {
	t.Helper()
	const mark = "IRONRAIL_TEST_NETNS"
	if os.Getenv(mark) == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root: makes a network namespace")
	}
	peertest.Need(t, append(tools, "ip")...)
	ns := fmt.Sprintf("irnb-%d-%d", os.Getpid(), time.Now().UnixNano())
	if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
		t.Skipf("needs network namespaces: %s", out)
	}
	t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
	cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", ns, os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.timeout=9m")
	cmd.Env = append(os.Environ(), mark+"="+t.Name())
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("in namespace %s:\n%s", ns, out)
	if err != nil {
		t.Fatalf("in namespace %s: %v", ns, err)
	}
	return false
}

// sh runs one command of words and fails the test if it fails.
func sh(t *testing.T, words string) {
	t.Helper()
	f := strings.Fields(words)
	if out, err := exec.CommandContext(t.Context(), f[0], f[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", words, err, out)
	}
}

// bridge makes the boot network: a bridge with the controller's address and one
// tap for a node.
func bridge(t *testing.T) {
	t.Helper()
	os.WriteFile("/proc/sys/net/ipv6/conf/default/accept_dad", []byte("0"), 0o644)
	for _, c := range []string{
		"ip link set lo up",
		"ip link add boot0 type bridge forward_delay 0",
		"ip addr add 10.99.0.2/24 dev boot0",
		"ip tuntap add dev tap0 mode tap",
		"ip link set tap0 master boot0",
		"ip link set tap0 up",
		"ip link set boot0 up",
	} {
		sh(t, c)
	}
}

const nodeMAC, nodeUUID = "52:54:00:99:00:11", "6c616230-0000-4000-8000-000000000001"

// one is a Source of one node.
type one struct {
	client  netboot.Client
	attempt *netboot.Attempt
}

func newOne(t *testing.T) *one {
	t.Helper()
	mac, err := addr.ParseMAC(nodeMAC)
	if err != nil {
		t.Fatal(err)
	}
	return &one{client: netboot.Client{Node: "n1", MACs: []addr.MAC{mac}, UUID: nodeUUID,
		Address: netip.MustParsePrefix("10.99.0.11/24"), Hostname: "n1"}}
}

func (o *one) ByMAC(m addr.MAC) (netboot.Client, bool) {
	return o.client, slices.Contains(o.client.MACs, m)
}
func (o *one) ByAddress(a netip.Addr) (netboot.Client, bool) {
	return o.client, a == o.client.Address.Addr()
}
func (o *one) Attempt(node string) (netboot.Attempt, bool) {
	if o.attempt == nil || node != o.client.Node {
		return netboot.Attempt{}, false
	}
	return *o.attempt, true
}

// diary keeps evidence and lets a test wait for it.
type diary struct {
	mu    sync.Mutex
	start time.Time
	seen  []netboot.Evidence // guarded by mu
	more  chan struct{}      // closed and replaced at each entry; guarded by mu
}

func newDiary() *diary { return &diary{start: time.Now(), more: make(chan struct{})} }

func (d *diary) Record(e netboot.Evidence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, e)
	close(d.more)
	d.more = make(chan struct{})
}

// wait returns the first evidence that fits.
func (d *diary) wait(t *testing.T, limit time.Duration, what string, fits func(netboot.Evidence) bool) netboot.Evidence {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for {
		d.mu.Lock()
		more := d.more
		i := slices.IndexFunc(d.seen, fits)
		var e netboot.Evidence
		if i >= 0 {
			e = d.seen[i]
		}
		d.mu.Unlock()
		if i >= 0 {
			return e
		}
		select {
		case <-more:
		case <-ctx.Done():
			t.Fatalf("no %s within %v; seen:\n%s", what, limit, d)
		}
	}
}

func (d *diary) all() []netboot.Evidence {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen)
}

func (d *diary) String() string {
	var b strings.Builder
	for _, e := range d.all() {
		fmt.Fprintf(&b, "%6.2fs %-4s %-12s %s %s %d %s refused=%v\n", e.Time.Sub(d.start).Seconds(), e.Proto, e.What, e.Node, e.MAC, e.Bytes, e.Detail, e.Refused)
	}
	return b.String()
}

// serve opens and serves the boot services until the test ends, and checks that
// Serve returns nil then.
func serve(t *testing.T, cfg netboot.Config, src netboot.Source, w netboot.Recorder) *netboot.Server {
	t.Helper()
	s, err := netboot.Open(t.Context(), cfg, src, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve did not return")
		}
	})
	return s
}

// machine starts QEMU under emulation and returns its serial output so far.
func machine(t *testing.T, args ...string) func() string {
	t.Helper()
	return emulate(t, "qemu-system-x86_64", append([]string{"-machine", "q35,graphics=off"}, args...)...)
}

// machineOn is machine with another backend of its NIC than tap0.
func machineOn(t *testing.T, netdev []string, args ...string) func() string {
	t.Helper()
	return emulateOn(t, "qemu-system-x86_64", netdev, append([]string{"-machine", "q35,graphics=off"}, args...)...)
}

// emulate starts a machine of any architecture.
func emulate(t *testing.T, program string, args ...string) func() string {
	t.Helper()
	return emulateOn(t, program, []string{"-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no"}, args...)
}

func emulateOn(t *testing.T, program string, netdev []string, args ...string) func() string {
	t.Helper()
	dir := t.TempDir()
	serial := filepath.Join(dir, "serial")
	all := append([]string{"-accel", "tcg,tb-size=128", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot",
		"-serial", "file:" + serial, "-uuid", nodeUUID}, append(slices.Clone(netdev), args...)...)
	cmd := exec.CommandContext(t.Context(), program, all...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) || stderr.Len() > 0 {
			t.Logf("qemu: %v %s", err, &stderr)
		}
	})
	return func() string { b, _ := os.ReadFile(serial); return string(b) }
}

// until polls what has no event of its own: the serial output of a machine.
func until(t *testing.T, limit time.Duration, serial func() string, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for !strings.Contains(serial(), text) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("no %q within %v on the console:\n%s", text, limit, serial())
		}
	}
}
