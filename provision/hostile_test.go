// SPDX-License-Identifier: Apache-2.0

//go:build hostile

package provision

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ironrail/ironrail/provision/services"
)

// hostileNet is three network namespaces on one bridge: the controller's, one with
// an interface for each node, and the attacker's.
type hostileNet struct{ c, n, b string }

func newHostileNet(t *testing.T, attack bool) hostileNet {
	t.Helper()
	id := fmt.Sprint(os.Getpid())
	h := hostileNet{"irc" + id, "irn" + id, "irb" + id}
	var script strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&script, format+"\n", args...) }
	for _, ns := range []string{h.c, h.n, h.b} {
		sh(t, "ip", "netns", "add", ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		sh(t, "ip", "-n", ns, "link", "set", "lo", "up")
		for _, set := range []string{"arp_ignore=1", "arp_announce=2", "rp_filter=0"} {
			sh(t, "ip", "netns", "exec", ns, "sysctl", "-qw", "net.ipv4.conf.all."+set, "net.ipv4.conf.default."+set)
		}
	}
	sh(t, "ip", "-n", h.c, "link", "add", "eth0", "type", "bridge")
	sh(t, "ip", "-n", h.c, "addr", "add", hostileController().String()+"/16", "dev", "eth0")
	sh(t, "ip", "-n", h.c, "link", "set", "eth0", "up")
	for port, ns := range map[string]string{"vn": h.n, "vb": h.b} {
		sh(t, "ip", "-n", h.c, "link", "add", port, "type", "veth", "peer", "name", "w0", "netns", ns)
		sh(t, "ip", "-n", h.c, "link", "set", port, "master", "eth0", "up")
	}
	sh(t, "ip", "-n", h.n, "link", "set", "w0", "up")
	for i := 1; i <= hostileNodes; i++ {
		say("link add link w0 name m%d address %s type macvlan mode private", i, hostileMAC(i))
		say("addr add %s/16 dev m%d\nlink set m%d up", hostileAddr(i), i, i)
	}
	batch(t, h.n, script.String())
	script.Reset()
	say("link set w0 address %s up\naddr add %s/16 dev w0", hostileMAC(hostileKnown), hostileAddr(hostileKnown))
	say("addr add %s/16 dev w0", hostileAddr(hostileOther))
	for i := range hostileUnknown {
		say("addr add %s/16 dev w0", unknownAddr(i))
	}
	if attack {
		say("addr add %s/16 dev w0", hostileAddr(hostileStolen))
	}
	batch(t, h.b, script.String())
	return h
}

func sh(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(argv, " "), err, out)
	}
}

func batch(t *testing.T, ns, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ip", "-n", ns, "-batch", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("ip -batch: %v\n%s", err, out)
	}
}

// hostileRun is one bring-up and what its processes said.
type hostileRun struct {
	t      *testing.T
	mu     sync.Mutex // guards what follows
	report hostileReport
	tasks  map[string]int // given to each node
	leaks  []string
	sent   []string
	noise  []string // what programs printed besides
}

// process starts one of the test's processes in a namespace; each line that it marks
// is given to heard.
func (r *hostileRun) process(ns, role string, one bool, heard func(string)) (in io.WriteCloser, wait func()) {
	r.t.Helper()
	argv := []string{"ip", "netns", "exec", ns}
	if one {
		argv = append(argv, "taskset", "-c", "0")
	}
	argv = append(argv, os.Args[0], "-test.run", "^TestHostile"+strings.ToUpper(role[:1])+role[1:]+"$", "-test.v", "-test.timeout", "6m")
	cmd := exec.CommandContext(r.t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "IRONRAIL_HOSTILE="+role)
	in, err := cmd.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if _, said, ok := strings.Cut(lines.Text(), hostileMark); ok {
				heard(said)
				continue
			}
			r.mu.Lock()
			r.noise = append(r.noise, role+": "+lines.Text())
			r.mu.Unlock()
		}
	}()
	return in, func() {
		<-done
		if err := cmd.Wait(); err != nil {
			r.t.Errorf("the process %s: %v\n%s", role, err, strings.Join(r.noise, "\n"))
		}
	}
}

// hostileBringUp brings the site up, under floods or without.
func hostileBringUp(t *testing.T, attack bool) *hostileRun {
	t.Helper()
	h := newHostileNet(t, attack)
	r := &hostileRun{t: t, tasks: map[string]int{}}
	var toController, toNodes, toFloods io.WriteCloser
	ended := make(chan struct{})
	nodes := func(said string) {
		switch kind, rest, _ := strings.Cut(said, " "); kind {
		case "up":
			fmt.Fprintln(toController, said)
		case "token":
			if toFloods != nil {
				fmt.Fprintln(toFloods, said)
			}
		case "task":
			r.mu.Lock()
			r.tasks[strings.Fields(rest)[0]]++
			r.mu.Unlock()
		default:
			t.Log(said)
		}
	}
	floodsSay := func(said string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if leak, ok := strings.CutPrefix(said, "leak "); ok {
			r.leaks = append(r.leaks, leak)
			return
		}
		r.sent = append(r.sent, strings.TrimPrefix(said, "sent "))
	}
	var waits []func()
	var wait func()
	toNodes, wait = r.process(h.n, "nodes", false, nodes)
	waits = append(waits, wait)
	if attack {
		toFloods, wait = r.process(h.b, "floods", true, floodsSay)
		waits = append(waits, wait)
	}
	controller := func(said string) {
		switch kind, rest, _ := strings.Cut(said, " "); kind {
		case "power":
			fmt.Fprintln(toNodes, said)
		case "own":
			if toFloods != nil {
				fmt.Fprintln(toFloods, said)
			}
		case "end":
			if err := json.Unmarshal([]byte(rest), &r.report); err != nil {
				t.Error(err)
			}
			close(ended)
		}
	}
	var waitController func()
	toController, waitController = r.process(h.c, "controller", false, controller)
	waitController()
	toNodes.Close()
	if toFloods != nil {
		toFloods.Close()
	}
	for _, w := range waits {
		w()
	}
	select {
	case <-ended:
	default:
		t.Fatal("the controller's process ended without a report\n" + strings.Join(r.noise, "\n"))
	}
	return r
}

// TestHostile boots a hundred nodes over real sockets, once quietly and once under
// floods of twelve kinds from hosts of the same network. `make hostile` runs it, as
// root.
func TestHostile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, for network namespaces")
	}
	var quiet, floods *hostileRun
	t.Run("quiet", func(t *testing.T) { quiet = hostileBringUp(t, false) })
	t.Run("floods", func(t *testing.T) { floods = hostileBringUp(t, true) })
	if quiet == nil || floods == nil {
		t.FailNow()
	}
	q, f := quiet.report, floods.report
	perQuiet, perFlood := q.CPU/float64(max(1, len(q.Done))), f.CPU/float64(max(1, len(f.Done)))
	t.Logf("\n%-34s %12s %12s\n%-34s %12d %12d\n%-34s %12.1f %12.1f\n%-34s %12d %12d\n%-34s %12d %12d\n%-34s %12d %12d", "", "quiet", "floods",
		"nodes installed", len(q.Done), len(f.Done), "CPU of the controller, ms per boot", 1000*perQuiet, 1000*perFlood,
		"most memory, MiB", q.MiB, f.MiB, "most descriptors", q.Files, f.Files, "DHCP datagrams read", q.DHCP, f.DHCP)
	t.Logf("attempts of each flood:\n%s", strings.Join(floods.sent, "\n"))
	if len(q.Done) != hostileNodes {
		t.Errorf("quiet: %d of %d nodes are installed: %v", len(q.Done), hostileNodes, q.Failed)
	}
	if perFlood > 2*perQuiet {
		t.Errorf("a boot costs %.1f ms of CPU under floods and %.1f ms without", 1000*perFlood, 1000*perQuiet)
	}
	if f.MiB >= 256 || f.Files >= 2000 {
		t.Errorf("%d MiB of memory and %d descriptors; the bounds are 256 and 2,000", f.MiB, f.Files)
	}
	hostileVictims(t, floods)
	hostileFound(t, q.Found, f.Found)
	hostileNamed(t, f.Seen)
}

// hostileVictims: all nodes are installed but the one whose address is stolen, which
// fails closed.
func hostileVictims(t *testing.T, r *hostileRun) {
	t.Helper()
	stolen := hostileName(hostileStolen)
	for i := 1; i < hostileStolen; i++ {
		if cause, failed := r.report.Failed[hostileName(i)]; failed {
			t.Errorf("healthy node %s is blamed: %s", hostileName(i), cause)
		}
	}
	if len(r.report.Done) != hostileNodes-1 {
		t.Errorf("%d of %d nodes are installed", len(r.report.Done), hostileNodes-1)
	}
	cause := r.report.Failed[stolen]
	for _, mac := range []string{hostileMAC(hostileStolen).String(), hostileMAC(hostileKnown).String()} {
		if !strings.Contains(cause, mac) {
			t.Errorf("the cause of %s does not name %s: %q", stolen, mac, cause)
		}
	}
	if r.tasks[stolen] != 0 || slices.Contains(r.report.HostKeys, stolen) || len(r.leaks) > 0 {
		t.Errorf("%s was given %d tasks, its host key is pinned: %v, boot files given away: %v", stolen, r.tasks[stolen], slices.Contains(r.report.HostKeys, stolen), r.leaks)
	}
}

// hostileFound: requests for the boot files of node 101 from addresses of unknown clients
// are findings, in a bounded number; a quiet run has none.
func hostileFound(t *testing.T, quiet, floods []string) {
	t.Helper()
	if len(quiet) > 0 {
		t.Errorf("findings of the quiet run: %v", quiet)
	}
	if !slices.ContainsFunc(floods, func(s string) bool {
		return strings.Contains(s, "boot files of n101") && strings.Contains(s, "from 10.99.200.")
	}) || len(floods) > services.MostFindings+1 {
		t.Errorf("%d findings about the site: %v", len(floods), floods)
	}
}

// hostileNamed: each attack that is refused is in the evidence, with who made it.
func hostileNamed(t *testing.T, seen []string) {
	t.Helper()
	for _, want := range []struct{ attack, line string }{
		{"unknown MACs", "dhcp unknown"},
		{"half-open or slow connections of unknown clients", "http connection-refused: 10.99.200."},
		{"slow readers of a known address", "n101 10.99.1.101 "},
		{"idle TLS of a known address", "n102 10.99.1.102 02:00:5e:00:00:66 agent connection-refused: "},
		{"idle TLS of unknown clients", "agent connection-refused: no node"},
		{"refused TFTP reads", "10.99.200.1 00:00:00:00:00:00 tftp refused"},
		{"stolen token", "agent stolen-token: "},
		{"forged results", "agent unasked-result: "},
		{"spoofed relays", "dhcp relay: "},
		{"stolen address", "agent address-conflict: "},
	} {
		if !slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, want.line) }) {
			t.Errorf("%s: no record has %q", want.attack, want.line)
		}
	}
	if t.Failed() {
		t.Logf("records of attackers:\n%s", strings.Join(seen[:min(len(seen), 60)], "\n"))
	}
}
