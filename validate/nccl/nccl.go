// SPDX-License-Identifier: Apache-2.0

// Package nccl writes the command line of an all-reduce with nccl-tests or
// rccl-tests, and holds what they print against what was asked for. A program that
// runs once on each node without finding the others, a size that memory had no
// room for, and an algorithm that goes around the wire are refused: each would
// print a splendid bandwidth. It runs nothing and is pure.
package nccl

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/tool/nccllog"
	"github.com/ironrail/ironrail/tool/nccltests"
)

// Engine is a library and its tests.
type Engine string

// The engines.
const (
	NCCL Engine = "nccl"
	RCCL Engine = "rccl"
)

// Program is the name of the test of the all-reduce. One that was compiled with MPI beside
// one that was not has withMPI at its end.
const (
	Program = AllReduce + "_perf"
	withMPI = "_mpi"
)

// AllReduce is the operation that every test has; others are those of inventory.Operations.
const AllReduce = "all_reduce"

// ProgramOf is the name of the test of an operation; "" is the all-reduce.
func ProgramOf(operation string) string { return cmp.Or(operation, AllReduce) + "_perf" }

// Places returns the folders in which an engine's tests are looked for.
func (e Engine) Places() []string {
	if e == RCCL {
		return []string{"/usr/local/bin", "/usr/bin", "/opt/rocm/bin", "/opt/rccl-tests/build"}
	}
	return []string{"/usr/local/bin", "/usr/bin", "/opt/nccl-tests/build"}
}

// Transport is what results between nodes, or within one, say they ran over.
func (e Engine) Transport(nodes int, domain bool) string {
	switch {
	case domain:
		return string(e) + " over NVLink between nodes"
	case nodes > 1:
		return string(e) + " over RDMA"
	}
	return string(e) + " within the node"
}

// Test is one collective of one size.
type Test struct {
	Engine   Engine
	Does     string   // the operation; empty: the all-reduce
	Nodes    []string // names, as each node calls itself
	GPUs     int      // of each node
	Size     int64    // bytes
	Ring     bool     // force a ring over the wire, without NVLink SHARP: its bandwidth says what the wire carries
	Domain   bool     // over the NVLink of a domain that spans nodes, as the library takes by itself
	Rails    bool     // the nodes are of such domains, and the rails are tested: without that NVLink
	Devices  []string // RDMA devices of the rails, in their order; empty within one node
	GIDIndex int      // of RoCE; 0: InfiniBand, or that which the library chooses
}

// Iterations and Warmups of a test. The tools' own counts differ, so they are
// always given.
const (
	Iterations = 20
	warmups    = 5
)

// Argv is the command line of one rank. The options mean the same in nccl-tests
// and rccl-tests; -u, -y and -s do not and are not used. -g 1: with more, -J and
// the list of devices name the first GPU of a process alone.
func (t Test) Argv(program string) []string {
	size := strconv.FormatInt(t.Size, 10)
	return []string{program, "-b", size, "-e", size, "-g", "1", "-t", "1", "-n", strconv.Itoa(Iterations), "-w", strconv.Itoa(warmups), "-c", "1"}
}

// Env is what every rank is given: the rails by exact name, no change between
// rails, and a log that says which network and algorithm were taken.
func (t Test) Env() []string {
	env := []string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET,TUNING"}
	if t.Engine == RCCL {
		env = append(env, "HSA_NO_SCRATCH_RECLAIM=1")
	}
	if len(t.Nodes) < 2 {
		return env
	}
	if len(t.Devices) > 0 {
		env = append(env, "NCCL_IB_HCA=="+strings.Join(t.Devices, ",")) // = before the names: exactly these
	}
	if t.GIDIndex > 0 {
		env = append(env, "NCCL_IB_GID_INDEX="+strconv.Itoa(t.GIDIndex))
	}
	env = append(env, "NCCL_CROSS_NIC=0")
	if t.Ring {
		env = append(env, "NCCL_ALGO=Ring")
		if t.Engine == NCCL {
			env = append(env, "NCCL_NVLS_ENABLE=0", "NCCL_MNNVL_ENABLE=0")
		}
	} else if t.Rails {
		env = append(env, "NCCL_MNNVL_ENABLE=0")
	}
	return env
}

// Measured is what a test measured.
type Measured struct {
	BusBW     float64 // bytes per second, of the slower placement
	Wrong     int64   // elements
	Library   string  // version
	Algorithm string  // that the log names; empty when it names none
	// Indirect are the nodes whose connections over the rails all go through host
	// memory, and what the log says of each.
	Indirect map[string]string
	// Outside are the nodes whose GPUs do not use the NVLink between nodes that the test
	// is about, and what the log says of each.
	Outside map[string]string
}

// ranks asks for one program over every GPU of every node, and nothing else.
func (t Test) ranks(got nccltests.Test) error {
	want := len(t.Nodes) * t.GPUs
	gpus := map[string][]int{}
	for _, r := range got.Ranks {
		gpus[r.Host] = append(gpus[r.Host], r.Device)
	}
	if len(got.Ranks) != want || len(gpus) != len(t.Nodes) || got.RankCount() != want {
		return t.refuse("%d ranks ran on %d nodes, in communicators of %d, where %d ranks on %d nodes were asked for", len(got.Ranks), len(gpus), got.RankCount(), want, len(t.Nodes)).
			Do("Build the tests with MPI=1: without it each rank runs alone and no network is tested.")
	}
	for _, n := range t.Nodes {
		devices := gpus[n]
		slices.Sort(devices)
		if len(slices.Compact(devices)) != t.GPUs {
			return t.refuse("node %s ran on GPUs %v, where it has %d", n, devices, t.GPUs).Do("Look at which GPUs its driver shows.")
		}
	}
	return nil
}

// algorithm is the one that the log says was taken for the size. Within a test
// of the wire, one that reduces within NVSwitches is refused.
func (t Test) algorithm(log nccllog.Content) (string, error) {
	for _, c := range log.Tuning {
		if ProgramOf(t.Does) != Program || c.Collective != "AllReduce" || c.Bytes != t.Size {
			continue
		}
		if t.Ring && c.Algorithm != "Ring" {
			return "", t.refuse("the library took %s, which sends less over the wire than a ring: its bandwidth says nothing about the rails", c.Algorithm).
				Do("Look at what sets NCCL_ALGO on the nodes, such as /etc/nccl.conf.")
		}
		return c.Algorithm, nil
	}
	return "", nil
}

// indirect are the nodes of the test whose rails do not reach the memory of GPUs.
func (t Test) indirect(log nccllog.Content) map[string]string {
	if len(t.Nodes) < 2 {
		return nil
	}
	members := map[string]bool{}
	for _, n := range t.Nodes {
		members[n] = true
	}
	found := map[string]string{}
	for _, host := range log.ThroughHost() {
		if !members[host] {
			continue
		}
		found[host] = fmt.Sprintf("log of the library: %d connections of %s via NET/IB, none via GDRDMA", log.Of[host]["NET/IB"], host)
		if n := log.NoGDR[host]; n > 0 {
			found[host] += fmt.Sprintf("; \"GPU Direct RDMA Disabled\" %d times", n)
		}
	}
	return found
}

// outside are the nodes of a test of a domain whose ranks say of no NVLink between nodes,
// or of less of it than others: a library that cannot use it takes the network instead and
// goes on. It says "MNNVL 1 cliqueId 7ffe cliqueSize 72 cliqueRank 0" where it does (NCCL,
// src/mnnvl.cc; public logs of GB200). All nodes are outside when none has as many GPUs
// as the test.
func (t Test) outside(log nccllog.Content) map[string]string {
	if !t.Domain {
		return nil
	}
	all, most := len(t.Nodes)*t.GPUs, 0
	for _, n := range t.Nodes {
		most = max(most, log.MNNVL[n])
	}
	found := map[string]string{}
	for _, n := range t.Nodes {
		size := log.MNNVL[n]
		if size >= all || size == most && slices.ContainsFunc(t.Nodes, func(o string) bool { return log.MNNVL[o] < most }) {
			continue // of several cliques the largest is where the others should be
		}
		net := 0
		for way, times := range log.Of[n] {
			if strings.HasPrefix(way, "NET/") {
				net += times
			}
		}
		text := `no line "MNNVL 1"`
		if size > 0 {
			text = fmt.Sprintf("NVLink between nodes (MNNVL) with %d of %d GPUs", size, all)
		}
		found[n] = fmt.Sprintf("log of the library: %s of %s, and %d of its connections via NET", text, n, net)
	}
	return found
}

// BandwidthCeiling returns the most that an all-reduce over k nodes can show in bytes per second
// of bus bandwidth, when every GPU has so much wire: a ring sends each byte once
// over each rail, and an algorithm that reduces within the nodes first sends
// (k-1)/(n-1) of that, n being all ranks.
func BandwidthCeiling(nodes, gpus int, wire float64, ring bool) float64 {
	if nodes < 2 || gpus < 1 {
		return 0
	}
	flat := wire * float64(gpus)
	if ring {
		return flat
	}
	return max(flat, wire*float64(nodes*gpus-1)/float64(nodes-1))
}

// Find is a shell command that prints where an engine's program of an operation is, and
// ends with 1 where it is not.
func (e Engine) Find(operation string) []string {
	script := ""
	for _, name := range []string{ProgramOf(operation) + withMPI, ProgramOf(operation)} {
		for _, p := range e.Places() {
			script += fmt.Sprintf("if [ -x %[1]s/%[2]s ]; then echo %[1]s/%[2]s; exit 0; fi\n", p, name)
		}
	}
	return []string{"sh", "-c", script + "exit 1\n"}
}

func (t Test) refuse(format string, args ...any) *errkind.Error {
	return errkind.New(errkind.Invalid, "output of "+ProgramOf(t.Does)+": "+format, args...).Do("Read the attached output.")
}
