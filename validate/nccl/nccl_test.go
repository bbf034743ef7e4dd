// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
)

// printed is what all_reduce_perf prints of 1 GiB in 5 ms over nodes with two GPUs
// each: 214.75 GB/s, times 2(n-1)/n.
func printed(nodes ...string) string {
	b := new(strings.Builder)
	b.WriteString("# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 1073741824 step: 1048576(bytes) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n")
	n := 2 * len(nodes)
	for i := range n {
		fmt.Fprintf(b, "#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:1b:00] NVIDIA H100 80GB HBM3\n", i, 100+i, nodes[i/2], i%2)
	}
	bus := 214.75 * 2 * float64(n-1) / float64(n)
	fmt.Fprintf(b, "NCCL version 2.28.9+cuda13.0\n%[1]s:100:100 [0] NCCL INFO AllReduce: 1073741824 Bytes -> Algo 1 proto 2 time 5000.0\n"+
		"#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"+
		"  1073741824     268435456     float     sum      -1  5000.00  214.75  %6.2[2]f      0  5010.00  214.32  %6.2[3]f      0\n"+
		"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %[4]g \n", nodes[0], bus, 214.32/214.75*bus, (bus+214.32/214.75*bus)/2)
	return b.String()
}

func test(nodes ...string) Test {
	return Test{Engine: NCCL, Nodes: nodes, GPUs: 2, Size: 1 << 30, Ring: len(nodes) == 2, Devices: []string{"mlx5_0", "mlx5_3"}, GIDIndex: 3}
}

func TestRead(t *testing.T) {
	t.Parallel()
	m, err := test("n1", "n2").Read([]byte(printed("n1", "n2")))
	if err != nil || m.BusBW < 321.4e9 || m.BusBW > 321.6e9 || m.Wrong != 0 || m.Library != "2.28.9+cuda13.0" || m.Algorithm != "Ring" {
		t.Errorf("%v %+v", err, m)
	}
	if m, err = test("n1").Read([]byte(printed("n1"))); err != nil || m.BusBW < 214e9 {
		t.Errorf("%v %+v", err, m)
	}
	whole := printed("n1", "n2")
	alone := printed("n1")
	for _, c := range []struct{ name, in, want string }{
		{"without MPI, one after another", alone + strings.ReplaceAll(alone, "n1", "n2"), "there are 2 tests in it"},
		{"without MPI, one node's alone", alone, "2 ranks ran on 1 nodes"},
		{"without MPI, beside each other", strings.Replace(whole, "Rank  2", "Rank  0", 1), "copies of the program ran beside each other"},
		{"another node", strings.ReplaceAll(whole, "n2", "n7"), "node n2 ran on GPUs []"},
		{"one GPU twice", strings.Replace(whole, "device  1", "device  0", 1), "node n1 ran on GPUs [0 0]"},
		{"groups", strings.ReplaceAll(strings.Replace(strings.Replace(whole, "Rank  2 Group  0", "Rank  2 Group  1", 1), "Rank  3 Group  0", "Rank  3 Group  1", 1), "x", "x"), "in communicators of 2"},
		{"less memory", strings.ReplaceAll(whole, "1073741824     268435456", "536870912     134217728"), "the largest size that was tested is 536870912"},
		{"not checked", strings.ReplaceAll(whole, "     0\n", "   N/A\n"), "were not checked"},
		{"NVLink SHARP", strings.Replace(whole, "Algo 1 proto", "Algo 5 proto", 1), "the library took NVLSTree"},
		{"figures that do not fit", strings.Replace(whole, "5000.00", "4000.00", 1), "does not follow from the time"},
		{"cut", whole[:strings.Index(whole, "# Out")], "the end is not there"},
		{"nothing", "mpirun: command not found\n", "there is no test"},
		{"driver", "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\nn1: Test CUDA failure common.cu:1030 'system not yet initialized'\n", "0 ranks ran on 0 nodes"},
	} {
		_, err := test("n1", "n2").Read([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || errkind.Action(err) == "" {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
	wrong := strings.Replace(whole, "321.5", "321.5", 1)
	wrong = strings.Replace(wrong, "      0  5010", "      7  5010", 1)
	if m, err := test("n1", "n2").Read([]byte(strings.Replace(wrong, "values : 0 OK", "values : 7 FAILED", 1))); err != nil || m.Wrong != 7 {
		t.Errorf("%v %+v", err, m)
	}
}

func TestWhy(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\nn1: Test CUDA failure common.cu:1030 'system not yet initialized'\n-----\nmpirun detected that one or more\n":     "n1: Test CUDA failure common.cu:1030 'system not yet initialized': the Fabric Manager does not run, or not in the version of the driver",
		"# Using devices\n# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\nn1:1:1 [0] net_ib.cc:1 NCCL WARN Call to ibv_modify_qp failed with 101 Network is unreachable\n": "NCCL warns: Call to ibv_modify_qp failed with 101 Network is unreachable: there is no route from this GID to the other",
		printed("n1"):         "",
		"nothing of a test\n": "",
	} {
		r := NewReader()
		_, _ = r.Stdout().Write([]byte(in))
		if got := r.Why(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	if got, want := strings.Join(test("n1", "n2").Argv("/opt/p"), " "), "/opt/p -b 1073741824 -e 1073741824 -g 1 -t 1 -n 20 -w 5 -c 1"; got != want {
		t.Errorf("got %s", got)
	}
	for _, c := range []struct {
		t    Test
		want string
	}{
		{test("n1"), "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING"},
		{test("n1", "n2"), "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING NCCL_IB_HCA==mlx5_0,mlx5_3 NCCL_IB_GID_INDEX=3 NCCL_CROSS_NIC=0 NCCL_ALGO=Ring NCCL_NVLS_ENABLE=0 NCCL_MNNVL_ENABLE=0"},
		{Test{Engine: NCCL, Nodes: []string{"n1", "n2", "n3"}, Rails: true}, "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING NCCL_CROSS_NIC=0 NCCL_MNNVL_ENABLE=0"},
		{Test{Engine: NCCL, Nodes: []string{"n1", "n2", "n3"}, Domain: true}, "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING NCCL_CROSS_NIC=0"},
		{Test{Engine: RCCL, Nodes: []string{"n1", "n2", "n3"}}, "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,TUNING HSA_NO_SCRATCH_RECLAIM=1 NCCL_CROSS_NIC=0"},
	} {
		if got := strings.Join(c.t.Env(), " "); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
	if f := RCCL.Find(AllReduce); len(f) != 3 || !strings.Contains(f[2], "/opt/rccl-tests/build/all_reduce_perf") || slices.Contains(NCCL.Places(), "/opt/rocm/bin") {
		t.Errorf("%q", f)
	}
}

// TestCeiling: figures of facts. Two nodes of eight GPUs with 50 GB/s each carry
// 400 GB/s in a ring, and 750 may be printed when nodes reduce first.
func TestCeiling(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes int
		ring  bool
		want  float64
	}{{1, false, 0}, {2, true, 400e9}, {2, false, 750e9}, {16, false, 127.0 / 15 * 50e9}, {16, true, 400e9}} {
		if got := BandwidthCeiling(c.nodes, 8, 50e9, c.ring); got < c.want*0.9999 || got > c.want*1.0001 {
			t.Errorf("%+v: got %g", c, got)
		}
	}
}

// TestOutside: the nodes of a domain that the log does not show on its NVLink.
func TestOutside(t *testing.T) {
	t.Parallel()
	line := func(host string, size int) string {
		return fmt.Sprintf("%s:100:100 [0] NCCL INFO MNNVL 1 cliqueId 7ffe cliqueSize %d cliqueRank 0\n", host, size)
	}
	for _, c := range []struct{ name, log, want string }{
		{"all use it", line("n1", 6) + line("n2", 6) + line("n3", 6), ""},
		{"one does not", line("n1", 4) + line("n2", 4), "n3"},
		{"one is in a clique of its own", line("n1", 4) + line("n2", 4) + line("n3", 2), "n3"},
		{"none", "", "n1 n2 n3"},
	} {
		d := test("n1", "n2", "n3")
		d.Domain = true
		m, err := d.Read([]byte(strings.Replace(printed("n1", "n2", "n3"), "NCCL version", c.log+"NCCL version", 1)))
		var got []string
		for _, n := range d.Nodes {
			if m.Outside[n] != "" {
				got = append(got, n)
			}
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, %v", c.name, err, m.Outside)
		}
	}
}
