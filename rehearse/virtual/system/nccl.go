// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ironrail/ironrail/rehearse/virtual/model"
)

// The words and formats are those of nccl-tests 2.17 and rccl-tests 2.13 (util.cu,
// common.cu), built with MPI, and of public outputs of them.

// perfProgram is the all-reduce of nccl-tests and of rccl-tests; compiled with MPI, its
// file has withMPI at the end of its name. The others of perfPrograms lie beside it.
const (
	perfProgram = "all_reduce_perf"
	withMPI     = "_mpi"
)

// perfPrograms are the tests that are known, and what their rows say of them.
var perfPrograms = map[string]collective{
	perfProgram:           {redop: "sum", root: -1, factor: func(n float64) float64 { return 2 * (n - 1) / n }, inside: 1},
	"all_gather_perf":     {redop: "none", root: -1, factor: func(n float64) float64 { return (n - 1) / n }, inside: 0.77},
	"reduce_scatter_perf": {redop: "sum", root: -1, factor: func(n float64) float64 { return (n - 1) / n }, inside: 0.77},
	"alltoall_perf":       {redop: "none", root: -1, factor: func(n float64) float64 { return (n - 1) / n }, inside: 0.72, alone: true},
	"sendrecv_perf":       {redop: "none", root: -1, factor: func(float64) float64 { return 1 }, inside: 0.72, alone: true},
}

// collective is one of them.
type collective struct {
	redop  string
	root   int
	factor func(ranks float64) float64 // of the bus bandwidth to the algorithm's (nccl-tests, doc/PERFORMANCE.md)
	// inside is the part of the all-reduce's bandwidth within a node. Read: 365 to 370 of
	// 476 GB/s of a ring on eight H100, which has no NVLink SHARP; the last two are belief.
	inside float64
	alone  bool // each rank sends over its own rail, and the bandwidth is that of one
}

// What a collective carries of its rails. Read: 387 of 400 GB/s on 8 nodes of H100
// with 8 rails of 400 Gb/s (CoreWeave), 357 on two nodes of MI300X (oci-hpc-oke).
const (
	ncclShare = 0.985
	// ncclFlows is over how many queue pairs a rank spreads what it sends over one rail:
	// those of its channels. An assumption: the library chooses them by the size.
	ncclFlows = 4
	rcclShare = 0.92
)

// within is what an all-reduce within one node shows in GB/s, by a word of the
// GPU's model. Read: the ML Engineering book, azurehpc-health-checks, AMD's
// documentation; the last one is belief.
var within = [...]withinNode{{"H200", 480}, {"H100", 476}, {"A100", 235}, {"B200", 842}, {"B300", 850}, {"MI300X", 315}, {"MI325X", 330}, {"", 200}}

// withinNode is a figure of a model.
type withinNode struct {
	model string // a part of its name; empty: any
	busbw float64
}

// ncclStart is how long the ranks take to find each other, and what each adds.
// Belief.
const (
	ncclStart   = 6 * time.Second
	ncclPerRank = 15 * time.Millisecond
)

// perfTest is one run of a program of perfPrograms.
type perfTest struct {
	program        string
	size           int64
	iters, warmups int
	devices        []string // rails, by RDMA device; empty: all
	log            bool     // the library is to say what it does
	multiNode      bool     // it may use the NVLink between nodes
}

// perfArguments reads the options of a program of perfPrograms. One size alone is known.
func perfArguments(program string, argv []string, env map[string]string) (*perfTest, error) {
	p := &perfTest{program: program, size: 32 << 20, iters: 20, warmups: 1, log: env["NCCL_DEBUG"] == "INFO", multiNode: env["NCCL_MNNVL_ENABLE"] != "0"}
	if list, ok := strings.CutPrefix(env["NCCL_IB_HCA"], "="); ok {
		p.devices = strings.Split(list, ",")
	}
	var least int64
	for len(argv) >= 2 {
		n, err := strconv.ParseInt(argv[1], 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("invalid argument %q of %s", argv[1], argv[0])
		}
		switch argv[0] {
		case "-b":
			least = n
		case "-e":
			p.size = n
		case "-n":
			p.iters = int(n)
		case "-w":
			p.warmups = int(n)
		case "-g", "-t", "-c":
			if n != 1 {
				return nil, fmt.Errorf("this virtual node knows %s 1 alone", argv[0])
			}
		default:
			return nil, fmt.Errorf("option %s is not known here", argv[0])
		}
		argv = argv[2:]
	}
	if len(argv) > 0 || least != p.size || p.size < 4 {
		return nil, errors.New("this virtual node measures one size, with -b and -e alike")
	}
	return p, nil
}

// allReducePerf is the program called without mpirun.
func allReducePerf(_ context.Context, c call) int {
	c.fail("this virtual node runs it under mpirun alone")
	return 1
}

// device is one GPU as the test lists it.
type device struct{ bus, name string }

// devices are the GPUs that a driver shows on a node; nil without one.
func (n *node) devices() (list []device) {
	short := func(at string) string { return strings.ToLower(strings.TrimSuffix(at, path.Ext(at))) }
	if n.loaded("nvidia") {
		for _, g := range n.gpus() {
			list = append(list, device{short(strings.TrimPrefix(g.bus, "0000")), g.name})
		}
	}
	if n.loaded("amdgpu") {
		for _, at := range n.amdAddresses() {
			name := "AMD Instinct"
			for _, g := range n.cfg.Hardware.GPUs {
				name = "AMD Instinct " + g.Model
			}
			list = append(list, device{short(at), name})
		}
	}
	return list
}

// amd reports whether the ranks of a run use GPUs of AMD.
func (j job) amd() bool { return strings.HasPrefix(j.n.devices()[0].name, "AMD") }

// perform runs the test over the members and prints what rank 0 prints.
func (j job) perform(ctx context.Context, members []*node) int {
	ranks := len(members) * j.slots
	for _, n := range members {
		if have := len(n.devices()); have < j.slots {
			if have == 0 {
				j.print(fmt.Sprintf("%s: Test CUDA failure common.cu:1030 'no CUDA-capable device is detected'\n .. %s pid 4100: Test failure common.cu:937\n", n.hostname(), n.hostname()))
			} else {
				_, _ = fmt.Fprintf(j.Err, "Invalid number of GPUs: %d requested but only %d were found.\nPlease check the number of processes and GPUs per process.\n", j.slots, have)
			}
			_, _ = j.Err.Write([]byte(abortedText(3)))
			return 3
		}
	}
	j.head(members)
	if j.n.cfg.Clock.Sleep(ctx, ncclStart+time.Duration(ranks)*ncclPerRank) != nil {
		return 137
	}
	busbw, fault := j.busbw(members)
	if fault != "" {
		if j.n.cfg.Clock.Sleep(ctx, retryTime) != nil {
			return 137
		}
		j.print(fault)
		_, _ = j.Err.Write([]byte(abortedText(3)))
		return 3
	}
	factor := perfPrograms[j.perf.program].factor(float64(ranks))
	took := time.Duration(float64(j.perf.size) * factor / busbw * float64(time.Second))
	if j.n.cfg.Clock.Sleep(ctx, time.Duration(2*(j.perf.iters+j.perf.warmups)+1)*took) != nil {
		return 137
	}
	j.row(took, factor)
	return 0
}

// head prints what comes before the row.
func (j job) head(members []*node) {
	p := j.perf
	b := new(strings.Builder)
	if !j.amd() {
		b.WriteString("# nccl-tests version 2.17.6 nccl-headers=22809 nccl-library=22809\n")
	}
	fmt.Fprintf(b, "# Collective test starting: %s\n# nThread 1 nGpus 1 minBytes %d maxBytes %d step: 1048576(bytes) warmup iters: %d iters: %d agg iters: 1 validation: 1 graph: 0\n#\n", p.program, p.size, p.size, p.warmups, p.iters)
	if j.amd() {
		b.WriteString("rccl-tests: Version develop:a7809b3\n")
	}
	b.WriteString("# Using devices\n")
	for i, n := range members {
		for k, d := range n.devices()[:j.slots] {
			fmt.Fprintf(b, "#  Rank %2d Group  0 Pid %6d on %10s device %2d [%s] %s\n", i*j.slots+k, 4100+k, n.hostname(), k, d.bus, d.name)
		}
	}
	if j.amd() {
		b.WriteString("RCCL version : 2.22.3-develop:a7809b3\n")
	} else {
		b.WriteString("NCCL version 2.28.9+cuda13.0\n")
	}
	if p.log && len(members) > 1 {
		j.network(b, members)
	}
	b.WriteString("#\n#                                                              out-of-place                       in-place          \n" +
		"#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n" +
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n")
	j.print(b.String())
}

// row prints the measurement and the end.
func (j job) row(took time.Duration, factor float64) {
	p := j.perf
	b := new(strings.Builder)
	fmt.Fprintf(b, "%12d  %12d  %8s  %6s  %6d", p.size, p.size/4, "float", perfPrograms[p.program].redop, perfPrograms[p.program].root)
	sum := 0.0
	for _, slower := range []float64{1, 1.002} {
		us := took.Seconds() * 1e6 * slower
		alg := float64(p.size) / us / 1e3
		fmt.Fprintf(b, "  %7s  %6.2f  %6.2f  %6d", formatMicroseconds(us), alg, alg*factor, 0)
		sum += alg * factor
	}
	fmt.Fprintf(b, "\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %g \n#\n# Collective test concluded: %s\n", sum/2, p.program)
	j.print(b.String())
}

// formatMicroseconds writes a time into seven columns, as getFloatStr does.
func formatMicroseconds(us float64) string {
	switch {
	case us < 1e4:
		return strconv.FormatFloat(us, 'f', 2, 64)
	case us < 1e5:
		return strconv.FormatFloat(us, 'f', 1, 64)
	}
	return strconv.FormatFloat(us, 'f', 0, 64)
}

// busbw is the bus bandwidth in bytes per second; between nodes all rails carry
// equal parts, so the slowest pair of neighbours decides. The second value is what
// is printed when two of them do not reach each other.
func (j job) busbw(members []*node) (float64, string) {
	if len(members) < 2 {
		return j.inside(), ""
	}
	if j.perf.multiNode && len(inClique(members)) == len(members) {
		return overDomain(len(members)) * perfPrograms[j.perf.program].inside * scatterOf(j.n.cfg.Node), ""
	}
	rails := j.rails(members[0])
	slowest := 0.0
	for i, n := range members {
		next := members[(i+1)%len(members)]
		to := j.rails(next)
		for r, p := range rails {
			mine := j.rails(n)
			if r >= len(mine) || r >= len(to) {
				return 0, describeUnreachable(n, next, p)
			}
			flow, err := j.n.cfg.Site.model.Write(model.Question{Test: j.perf.program, From: mine[r].ID, To: to[r].ID, Size: 1 << 20, Flows: ncclFlows})
			if err != nil {
				return 0, describeUnreachable(n, next, mine[r])
			}
			j.n.cfg.Site.model.Carry(mine[r].ID, to[r].ID, ncclFlows, 2*j.perf.size/int64(len(rails))*int64(j.perf.iters+j.perf.warmups))
			if slowest == 0 || flow.Average < slowest {
				slowest = flow.Average
			}
		}
	}
	if len(rails) == 0 {
		return 0, describeUnreachable(members[0], members[1], Port{RDMA: "no device"})
	}
	share := ncclShare
	if j.amd() {
		share = rcclShare
	}
	return j.onRails(slowest, len(members), len(rails)) * share, ""
}

// onRails is the bus bandwidth that the slowest of the rails, in bytes per second, leaves a
// run over so many nodes. A ring carries over all rails what each of them does; what goes
// from each rank to each other crosses its own rail but for the ranks of its node.
func (j job) onRails(slowest float64, nodes, rails int) float64 {
	ranks := float64(nodes * j.slots)
	switch {
	case j.perf.program == "alltoall_perf":
		return slowest * float64(rails) / float64(j.slots) * (ranks - 1) / (ranks - float64(j.slots))
	case perfPrograms[j.perf.program].alone:
		return slowest * float64(rails) / float64(j.slots)
	}
	return slowest * float64(rails)
}

// inside is the bus bandwidth within the first member. It is no bound of that
// between nodes: MI300X shows 315 GB/s in one node and 357 over two.
func (j job) inside() float64 {
	name := strings.ToUpper(j.n.devices()[0].name)
	i := slices.IndexFunc(within[:], func(w withinNode) bool { return strings.Contains(name, w.model) })
	return within[i].busbw * perfPrograms[j.perf.program].inside * 1e9 * scatterOf(j.n.cfg.Node)
}

// scatterOf returns how a node's figure differs from the others', within 1 %.
func scatterOf(node string) float64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(node))
	return 1 - float64(h.Sum32()%100)/1e4
}

// rails are the ports that the run may use, in the order in which they are named.
func (j job) rails(n *node) (list []Port) {
	if j.perf.devices == nil {
		for _, p := range n.cfg.Ports {
			if p.RDMA != "" {
				list = append(list, p)
			}
		}
		return list
	}
	for _, d := range j.perf.devices {
		for _, p := range n.cfg.Ports {
			if p.RDMA == d {
				list = append(list, p)
			}
		}
	}
	return list
}

// describeUnreachable returns what the library says of two ranks whose rail carries nothing.
func describeUnreachable(from, to *node, p Port) string {
	return fmt.Sprintf("\n%[1]s:4100:4188 [0] transport/net_ib.cc:2453 NCCL WARN NET/IB: Got completion from peer %[2]s<40554> with status=12 opcode=0 len=0 vendor err 129 (Send) hca %[3]s\n"+
		"%[1]s: Test NCCL failure common.cu:303 'remote process exited or there was a network error / '\n .. %[1]s pid 4100: Test failure common.cu:401\n", from.hostname(), to.cfg.Address, p.RDMA)
}
