// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/onnode"
	"github.com/ironrail/ironrail/internal/peertest"
)

func members(n int) []Member {
	var ms []Member
	for i := range n {
		ms = append(ms, Member{Node: fmt.Sprintf("n%d", i+1), Address: netip.MustParseAddr(fmt.Sprintf("10.77.0.%d", 11+i)),
			Rails: []netip.Addr{netip.MustParseAddr(fmt.Sprintf("10.77.16.%d", 11+i))}, HostKey: "ssh-ed25519 AAAA"})
	}
	return ms
}

func job(n int) Job {
	return Job{Members: members(n), Control: netip.MustParsePrefix("10.77.0.0/24"), Data: netip.MustParsePrefix("10.77.16.0/24"),
		Sizes: []int64{4096, 1 << 20}, Iterations: 3, Warmups: 1, Limit: time.Minute}
}

const head = `{"ranks": 2, "hosts": ["n1", "n2"], "mpi": "Open MPI v4.1.4"}` + "\n"

func row(size int64, us, factor float64, wrong string) string {
	alg := float64(size) / us * 1e6
	return fmt.Sprintf(`{"size": %d, "ranks": 2, "iterations": 3, "time_us": {"min": 1, "avg": %g, "max": 9000}, "algbw": %g, "busbw": %g, "wrong": %s}`+"\n", size, us, alg, alg*factor, wrong)
}

func TestParse(t *testing.T) {
	t.Parallel()
	ok := row(4096, 100, 1, `0, "wrong_by_rank": [0, 0]`) + row(1<<20, 5000, 1, `3, "wrong_by_rank": [0, 3]`)
	for _, c := range []struct{ name, in, fails string }{
		{"good", "some warning\n" + head + ok, ""},
		{"sizes out of order", head + row(1<<20, 5000, 1, `3, "wrong_by_rank": [0, 3]`) + row(4096, 100, 1, `0, "wrong_by_rank": [0, 0]`), ""},
		{"no header", ok, "no header"},
		{"each on its own", strings.Replace(head, `"ranks": 2`, `"ranks": 1`, 1) + ok, "1 ranks on 2 nodes"},
		{"both on one node", strings.Replace(head, "n2", "n1", 1) + ok, "2 ranks on 1 nodes"},
		{"started twice", head + head + ok, "on its own"},
		{"row missing", head + row(4096, 100, 1, `0, "wrong_by_rank": [0, 0]`), "no row of size 1048576"},
		{"cut", head + ok[:len(ok)-20], "row:"},
		{"busbw does not fit", head + ok + row(64, 10, 7, `0, "wrong_by_rank": [0, 0]`), "does not fit its time"},
		{"no count of wrong elements", head + strings.Replace(ok, `"wrong":`, `"wrongs":`, 1), "unknown field"},
		{"another sum of wrong elements", head + strings.Replace(ok, `"wrong": 3`, `"wrong": 0`, 1), "not the sum of [0 3] by rank"},
		{"another number of iterations", head + strings.Replace(ok, `"iterations": 3`, `"iterations": 2`, 1), "incomplete"},
		{"average outside", head + strings.Replace(ok, `"max": 9000`, `"max": 90`, 1), "not between"},
		{"two on a line", head + strings.Replace(ok, "}\n", "} {}\n", 1), "stands behind it"},
		{"rank missing", head + ok + row(64, 10, 1, `0, "wrong_by_rank": [0]`), "incomplete"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := Parse([]byte(c.in), job(2))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || errkind.Action(err) == "" {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			r, _ := out.Largest()
			if r.Size != 1<<20 || out.Wrong() != 3 || int(r.BusBW) != 209715200 {
				t.Errorf("got %+v", out)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head + row(4096, 100, 1, `0, "wrong_by_rank": [0, 0]`) + row(1<<20, 5000, 1, `3, "wrong_by_rank": [0, 3]`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		out, err := Parse(b, job(2))
		if err != nil {
			return
		}
		if r, ok := out.Largest(); !ok || !(r.BusBW > 0) || len(out.Hosts) != 2 {
			t.Errorf("%+v", out)
		}
	})
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"no route", "ssh: connect to host 10.77.0.12 port 22: No route to host\n", "n2"},
		{"key refused", "root@10.77.0.13: Permission denied (publickey).\n", "n3"},
		{"daemon lost", "ORTE has lost communication with a remote daemon.\n\n  HNP daemon   : [[1,0],0] on node n1\n  Remote daemon: [[1,0],1] on node n2\n", "n2"},
		{"killed", "mpirun noticed that process rank 1 with PID 712 on node 10.77.0.12 exited on signal 9 (Killed).\n", "n2"},
		{"rail", "  Message:    connect() to 10.77.16.12:1024 failed\n  Error:      No route to host (113)\n", "n2"},
		{"two named", "connect to host 10.77.0.12 port 22: x\nconnect to host 10.77.0.13 port 22: x\n", ""},
		{"time limit", "The user-provided time limit for job execution has been reached:\n  Timeout: 60 seconds\n", ""},
		{"only noticed", "  Local host: n1\n  PID: 12\n", ""},
		{"longer address", "connect to host 10.77.0.120 port 22: x\n", ""},
		{"empty", "", ""},
	} {
		w := newWatcher(membersByWord(members(3)), nil)
		_, _ = w.Write([]byte(c.text))
		w.close()
		if got := namedMember(w); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestPeerScriptFindsWrongElements breaks one element and counts it.
func TestPeerScriptFindsWrongElements(t *testing.T) {
	t.Parallel()
	python := peertest.Python(t, "mpi4py")
	code := `
import allreduce as a
w = a.pattern(1000, 3, 5)
g = a.pattern(1000, 3, 5)
assert a.wrong_elements(g, w) == 0
g[0] += 1; g[999] = 0
assert a.wrong_elements(g, w) == 2, a.wrong_elements(g, w)
assert a.wrong_elements(a.pattern(1000, 3, 6), w) == 1000
assert len(a.pattern(1, 1, 0)) == 1
`
	if out, err := exec.Command(python, "-B", "-c", code).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestPeerScriptOnTwoRanks runs the real script under the real mpirun.
func TestPeerScriptOnTwoRanks(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "mpirun")
	python := peertest.Python(t, "mpi4py")
	cmd := exec.CommandContext(t.Context(), "mpirun", "--allow-run-as-root", "--oversubscribe", "--timeout", "60", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
		"--mca", "btl_tcp_if_include", "lo", "-np", "2", python, "-B", "allreduce.py", "3", "1", "4096", "1048576")
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	// Both ranks ran here; apart from that the output is a good one.
	if _, err := Parse(out, job(2)); err == nil || !strings.Contains(err.Error(), "2 ranks on 1 nodes") {
		t.Errorf("one node taken for two: %v", err)
	}
	host := strings.SplitN(strings.SplitN(string(out), `"hosts": ["`, 2)[1], `"`, 2)[0]
	two := strings.Replace(string(out), `["`+host, `["other`, 1)
	got, err := Parse([]byte(two), job(2))
	if err != nil || got.Wrong() != 0 || len(got.Rows) != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestLargeJob: the members of a run stand in a file, since Linux takes no argument
// above 128 KiB, and the shell of a node is given all of them as one.
func TestLargeJob(t *testing.T) {
	t.Parallel()
	j := Job{Control: netip.MustParsePrefix("10.0.0.0/8"), Data: netip.MustParsePrefix("10.0.0.0/8"), Limit: time.Hour, Sizes: []int64{4096}, Iterations: 3}
	for i := range 12_500 {
		a := netip.AddrFrom4([4]byte{10, 100, byte(i >> 8), byte(i)})
		j.Members = append(j.Members, Member{Node: fmt.Sprintf("rack%04d-node%05d.cluster.example", i/8, i), Address: a})
	}
	elsewhere := j
	elsewhere.Start, elsewhere.Libraries = "/usr/lib64/openmpi/bin/mpirun", "/usr/lib64/openmpi/lib"
	if line := strings.Join(elsewhere.argv("/run/x"), " "); !strings.Contains(line, " /usr/lib64/openmpi/bin/mpirun --allow-run-as-root ") || !strings.Contains(line, " -x LD_LIBRARY_PATH=/usr/lib64/openmpi/lib ") {
		t.Errorf("Open MPI of another folder: %s", line)
	}
	if line := strings.Join(j.argv("/run/x"), " "); len(line) > 4<<10 {
		t.Errorf("the command line has %d bytes", len(line))
	}
	if hosts := strings.Split(strings.TrimSpace(string(j.hosts())), "\n"); len(hosts) != 12_500 || hosts[0] != "10.100.0.0 slots=1" {
		t.Errorf("%d hosts, the first is %q", len(hosts), hosts[0])
	}
	hosts, zeros := new(strings.Builder), strings.TrimSuffix(strings.Repeat("0, ", len(j.Members)), ", ")
	for i, m := range j.Members {
		if i > 0 {
			hosts.WriteString(", ")
		}
		fmt.Fprintf(hosts, "%q", m.Node)
	}
	alg := 4096 / 100e-6
	text := fmt.Sprintf(`{"ranks": 12500, "hosts": [%s], "mpi": "x"}`+"\n"+`{"size": 4096, "ranks": 12500, "iterations": 3, "time_us": {"min": 1, "avg": 100, "max": 900}, "algbw": %g, "busbw": %g, "wrong": 0, "wrong_by_rank": [%s]}`+"\n",
		hosts, alg, alg*2*12499/12500, zeros)
	if out, err := Parse([]byte(text), j); err != nil || len(out.Hosts) != 12_500 {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	if _, err := Parse([]byte(strings.Replace(text, `"x"`, `"`+strings.Repeat("x", 4<<20)+`"`, 1)), j); !errors.Is(err, onnode.ErrCut) {
		t.Errorf("a line that is cut: %v", err)
	}
}

// TestPeerFileLimit: mpirun and its ranks have as many files as the system allows, also
// where a login has few.
func TestPeerFileLimit(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "mpirun")
	argv := job(2).argv("/run/x")
	i := slices.Index(argv, "opal_set_max_sys_limits")
	if i < 1 {
		t.Fatalf("not raised by %q", argv)
	}
	script := `ulimit -Sn 256; exec "$@"`
	rank := `test "$(ulimit -Sn)" = "$(ulimit -Hn)" || ulimit -Sn`
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", script, "sh", "mpirun", "--allow-run-as-root", "--timeout", "60"}, append(slices.Clone(argv[i-1:i+2]), "-np", "1", "sh", "-c", rank)...)...)
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "" {
		t.Errorf("%v: %s", err, out)
	}
}
