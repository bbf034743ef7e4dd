// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// The words and formats are those of the ROCm Validation Suite of ROCm 7.0
// (rvs_stress.cpp of babel.so, action.cpp of pebb.so and pbqt.so).

const (
	rvsStart = 3 * time.Second
	babelGPU = 2500 * time.Millisecond // of a GPU, 200 copies. Belief
)

// rvsAction is one action of a configuration file.
type rvsAction map[string]string

// rvsActions reads the actions of a file: a list of flat objects.
func rvsActions(text string) (list []rvsAction) {
	for line := range strings.Lines(text) {
		line, begins := strings.CutPrefix(strings.TrimSpace(line), "- ")
		name, value, ok := strings.Cut(line, ":")
		if begins {
			list = append(list, rvsAction{})
		}
		if ok && len(list) > 0 {
			value, _, _ = strings.Cut(value, "#")
			list[len(list)-1][strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return list
}

// runRvs is rvs -c FILE with actions of babel, pebb and pbqt.
func runRvs(ctx context.Context, c call) int {
	if len(c.Argv) != 3 || c.Argv[1] != "-c" {
		return c.fail("this virtual node knows -c FILE")
	}
	text, err := c.n.tree.ReadFile(c.path(c.Argv[2]))
	if err != nil {
		c.print("[ERROR ] [     0.000000] CLI   error opening configuration file " + c.Argv[2] + "\n")
		return 1
	}
	if !c.n.loaded("amdgpu") || len(c.n.amdAddresses()) == 0 {
		c.print("[ERROR ] [     0.000000] [rvs] No AMD GPU found\n")
		return 1
	}
	r := &rvsRun{call: c, model: strings.TrimSpace("AMD Instinct " + c.n.amdModel())}
	took := rvsStart
	for _, a := range rvsActions(string(text)) {
		switch a["module"] {
		case "gst":
			return rvsStress(ctx, c, a)
		case "babel":
			took += r.babel(a)
		case "pebb":
			took += r.pebb(a)
		case "pbqt":
			took += r.pbqt(a)
		}
	}
	if c.n.cfg.Clock.Sleep(ctx, took) != nil {
		return 137
	}
	c.print(r.b.String())
	return 0
}

// rvsRun is one run of rvs.
type rvsRun struct {
	call
	model string
	b     strings.Builder
}

// line writes a line of a result.
func (r *rvsRun) line(format string, args ...any) {
	fmt.Fprintf(&r.b, "[RESULT] [%6d.%-6d] %s\n", int(r.n.cfg.Kernel.Uptime().Seconds()), 0, fmt.Sprintf(format, args...))
}

// gpuID is what the compute driver calls the GPU of that index.
func gpuID(i int) int { return 10000 + i }

// gpuNode is a GPU as rvs writes it: the CPUs are nodes 0 and 1.
func gpuNode(i int, at string) string { return fmt.Sprintf("[GPU:: %d - %5d - %s]", 2+i, gpuID(i), at) }

// length is how long an action says that it lasts.
func (a rvsAction) length() time.Duration {
	d, err := parseDuration(a["duration"])
	if err != nil {
		return 0
	}
	return d / 1000 // it is given in milliseconds
}

// babel is the bandwidth of memory: read and written bytes together.
func (r *rvsRun) babel(a rvsAction) time.Duration {
	const rule = "------------------------------------------------------------------------\n"
	list := r.n.amdAddresses()
	for i, at := range list {
		r.line("[%s] Running kernels %s times, Precision: float", a["name"], a["num_iter"])
		r.line("Array size: 1024.0 MiB (=1.0 GiB), Total size: 3072.0 MiB (=3.0 GiB)\n")
		rate := r.n.memoryRate(at, r.model)
		seconds := 2 * float64(1<<30) / rate
		r.line("\n%[1]s%-12[2]s%-12[3]s%-12[4]s%-12[5]s%-12[6]s%-12[7]s\n%[1]s%-12[8]d%-12[9]s%-12.3[10]f%-12.5[11]f%-12.5[12]f%-12.5[13]f\n%[1]s", rule, "GPU Id", "Function", "MiBytes/sec", "Min (sec)", "Max", "Average",
			gpuID(i), "Copy", rate/(1<<20), seconds, seconds*1.02, seconds*1.005)
	}
	return time.Duration(len(list)) * babelGPU
}

// pebb is the bandwidth between the memory of each CPU and each GPU.
func (r *rvsRun) pebb(a rvsAction) time.Duration {
	list := r.n.amdAddresses()
	const cpus = 2
	far := func(cpu, gpu int) bool { return (gpu >= len(list)/2) != (cpu == 1) }
	for i, at := range list {
		for cpu := range cpus {
			distance := map[bool]int{false: 20, true: 52}[far(cpu, i)]
			r.line("[%s] pcie-bandwidth [CPU:: %d] %s distance:%d PCIe:%d", a["name"], cpu, gpuNode(i, at), distance, distance)
		}
	}
	k := 0
	for i, at := range list {
		for cpu := range cpus {
			k++
			rate := r.n.hostRate(at, r.model, a["host_to_device"] == "true")
			if far(cpu, i) {
				rate *= 0.985
			}
			r.line("[%s] pcie-bandwidth [%2d/%d] [CPU:: %d] %s h2d::%s d2h::%s %s GBps duration: %.6f secs", a["name"], k, len(list)*cpus, cpu, gpuNode(i, at), a["host_to_device"], a["device_to_host"], formatGBps(rate, 3), a.length().Seconds()/float64(len(list)*cpus))
		}
	}
	return a.length()
}

// pbqt is the bandwidth from each GPU to each other.
func (r *rvsRun) pbqt(a rvsAction) time.Duration {
	list := r.n.amdAddresses()
	if len(list) < 2 {
		return 0
	}
	pairs := len(list) * (len(list) - 1)
	k := 0
	for i, at := range list {
		for j, to := range list {
			if i == j {
				continue
			}
			k++
			r.line("[%s] p2p-bandwidth[%2d/%d] %s %s bidirectional: %s %s GBps duration: %.6f secs", a["name"], k, pairs, gpuNode(i, at), gpuNode(j, to), a["bidirectional"], formatGBps(r.n.peerRate(at, to, r.model, "amd"), 3), a.length().Seconds()/float64(pairs))
		}
	}
	return a.length() + time.Duration(pairs)*time.Second
}
