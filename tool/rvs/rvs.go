// SPDX-License-Identifier: Apache-2.0

// Package rvs reads what AMD's ROCm Validation Suite prints: the figures of its
// modules babel (memory of a GPU), pebb (between host and GPU), pbqt (between GPUs)
// and gst (matrices multiplied), and what any module says that passed or failed.
// It is pure.
//
// Source: print_final_average of pebb.so and pbqt.so, run_stress of babel.so,
// check_target_stress of gst.so, and do_yaml of rvsexec.cpp, of
// github.com/ROCm/ROCmValidationSuite, ROCm 6.0 to 7.2.
package rvs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Content is what one output says.
type Content struct {
	Version  string    `json:"version"`  // of rvs; only its summary, since ROCm 7, says it
	GPUs     []GPU     `json:"gpus"`     // those that a line names with their address
	Memory   []Memory  `json:"memory"`   // babel
	Host     []Host    `json:"host"`     // pebb
	Peers    []Peer    `json:"peers"`    // pbqt
	Compute  []Compute `json:"compute"`  // gst
	Verdicts []Verdict `json:"verdicts"` // what passed and what failed, in the order of the output
}

// GPU is one GPU by the number that the kernel's compute driver gave it.
type GPU struct {
	ID  int    `json:"id"`
	BDF string `json:"bdf"` // PCI address
}

// Memory is what one kernel moved within the memory of a GPU, read and written
// bytes together.
type Memory struct {
	GPU      int     `json:"gpu"` // id
	Function string  `json:"function"`
	Rate     float64 `json:"bytes_per_second"` // of the fastest run
}

// Host is what was copied between the memory of one CPU and a GPU.
type Host struct {
	Action string  `json:"action"`
	CPU    int     `json:"cpu"` // NUMA node
	GPU    int     `json:"gpu"` // id
	BDF    string  `json:"bdf"`
	To     bool    `json:"to_gpu"`
	From   bool    `json:"from_gpu"`         // both: in both directions at once, and the rate is their sum
	Rate   float64 `json:"bytes_per_second"` // 0: not measured
}

// Peer is what was copied from one GPU to another.
type Peer struct {
	Action   string `json:"action"`
	From     GPU    `json:"from"`
	To       GPU    `json:"to"`
	BothWays bool   `json:"bidirectional"`
	// AllAtOnce says that all pairs copied at the same time, and that Rate is this
	// pair's part.
	AllAtOnce bool    `json:"all_at_once,omitempty"`
	Rate      float64 `json:"bytes_per_second"` // 0: not measured
}

const (
	gpuNode = `\[GPU::\s*\d+ -\s*(\d+) - ([0-9A-Fa-f:.]+)\]`
	figure  = `(?:([\d.]+) GBps|\(not measured\))`
	ended   = ` duration: [\d.]+ secs`
)

var (
	host = lazyregexp.New(`\[([^\]\s]+)\] pcie-bandwidth \[\s*(\d+)/(\d+)\] \[CPU::\s*(\d+)\] ` + gpuNode + ` h2d::(true|false) d2h::(true|false) ` + figure + ended)
	peer = lazyregexp.New(`\[([^\]\s]+)\] p2p-bandwidth\[\s*(\d+)/(\d+)\] ` + gpuNode + ` ` + gpuNode + ` bidirectional: (true|false) ` + figure + ended)
	// all is a pair while every pair copies at once.
	all    = lazyregexp.New(`\[([^\]\s]+)\] a2a-p2p-bandwidth\[\s*(\d+)/(\d+)\] ` + gpuNode + ` ` + gpuNode + ` ([\d.]+) GBps$`)
	known  = lazyregexp.New(gpuNode)
	head   = lazyregexp.New(`^\s*GPU Id\s+Function\s+(Mi?)Bytes/sec\s`)
	row    = lazyregexp.New(`^\s*(\d+)\s+(Read|Write|Copy|Mul|Add|Triad|Dot)\s+([\d.]+)(?:\s+[\d.]+){3}\s*$`)
	broken = lazyregexp.New(`^\s*(?:\[ERROR ?\]|RVS-ERROR )`)
	first  = lazyregexp.New(`(?m)(?:\] pcie-bandwidth +\[|\] (?:a2a-)?p2p-bandwidth\[|^\s*GPU Id\s+Function\s+Mi?Bytes/sec\s|\] GFLOPS [\d.]+ Target GFLOPS: |\] peqt (?:true|false)\s*$|^\s*\| +ROCm Validation Suite \(RVS\) Summary +\|)`)
	// named is how rvs announces an action of any module.
	named = lazyregexp.New(`(?m)^\s*\[RESULT\] \[[ \d.]+\] Module name :\w+\s*$`)
)

// Format is the format of rvs.
func Format() tool.Format {
	return tool.Format{Name: "rvs", Is: matchFormat, Parse: func(b []byte) (any, tool.Problems, error) { return Parse(b) }}
}

func matchFormat(data []byte) int {
	switch {
	case first.Match(data):
		return 95
	case named.Match(data):
		return 85
	}
	return 0
}

// reading is the work on one output.
type reading struct {
	c        Content
	unit     float64 // bytes of a unit of the table that rows belong to; 0: no table
	rows     int     // of that table
	asked    map[string]int
	have     map[string]int
	ids      []int // of the GPUs in the row of the summary above
	problems tool.Problems
}

// Parse reads an output. An error means that it is not of rvs.
func Parse(data []byte) (Content, tool.Problems, error) {
	r := &reading{c: Content{GPUs: []GPU{}, Memory: []Memory{}, Host: []Host{}, Peers: []Peer{}, Compute: []Compute{}, Verdicts: []Verdict{}}, asked: map[string]int{}, have: map[string]int{}}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		r.line(strings.TrimRight(line, " \t\r\n"), n)
	}
	r.endTable(n)
	if len(r.c.GPUs) == 0 && r.c.empty() && len(r.problems) == 0 && !named.Match(data) {
		return Content{}, nil, errors.New("there is nothing of rvs in it")
	}
	for _, action := range slices.Sorted(maps.Keys(r.asked)) {
		if have, want := r.have[action], r.asked[action]; have != want {
			r.problems.Add(tool.Truncated, 0, "%s has %d figures of %d", action, have, want)
		}
	}
	if r.c.empty() {
		r.problems.Add(tool.Missing, 0, "there is no figure")
	}
	return r.c, r.problems, nil
}

// empty reports whether there is no result in it.
func (c Content) empty() bool {
	return len(c.Memory) == 0 && len(c.Host) == 0 && len(c.Peers) == 0 && len(c.Compute) == 0 && len(c.Verdicts) == 0
}

func (r *reading) line(line string, n int) {
	for _, m := range known.FindAllStringSubmatch(line, -1) {
		r.gpu(GPU{parseNumber(m[1]), strings.ToLower(m[2])})
	}
	switch {
	case broken.MatchString(line):
		r.problems.Add(tool.Failed, n, "%s", strings.TrimSpace(line))
	case host.MatchString(line):
		m := host.FindStringSubmatch(line)
		r.count(m[1], m[3])
		r.c.Host = append(r.c.Host, Host{Action: m[1], CPU: parseNumber(m[4]), GPU: parseNumber(m[5]), BDF: strings.ToLower(m[6]), To: m[7] == "true", From: m[8] == "true", Rate: r.rate(m[9], 1e9, n)})
	case peer.MatchString(line):
		m := peer.FindStringSubmatch(line)
		r.count(m[1], m[3])
		r.c.Peers = append(r.c.Peers, Peer{Action: m[1], From: GPU{parseNumber(m[4]), strings.ToLower(m[5])}, To: GPU{parseNumber(m[6]), strings.ToLower(m[7])}, BothWays: m[8] == "true", Rate: r.rate(m[9], 1e9, n)})
	case all.MatchString(line):
		m := all.FindStringSubmatch(line)
		r.count(m[1], m[3])
		r.c.Peers = append(r.c.Peers, Peer{Action: m[1], From: GPU{parseNumber(m[4]), strings.ToLower(m[5])}, To: GPU{parseNumber(m[6]), strings.ToLower(m[7])}, AllAtOnce: true, Rate: r.rate(m[8], 1e9, n)})
	case head.MatchString(line):
		r.endTable(n)
		r.unit, r.rows = 1e6, 0
		if head.FindStringSubmatch(line)[1] == "Mi" {
			r.unit = 1 << 20
		}
	case r.unit > 0 && row.MatchString(line):
		m := row.FindStringSubmatch(line)
		r.rows++
		r.c.Memory = append(r.c.Memory, Memory{GPU: parseNumber(m[1]), Function: m[2], Rate: r.rate(m[3], r.unit, n)})
	default:
		r.verdict(line, n)
	}
}

// endTable notes a table of babel that has no rows.
func (r *reading) endTable(n int) {
	if r.unit > 0 && r.rows == 0 {
		r.problems.Add(tool.Truncated, n, "a table of babel has no rows")
	}
	r.unit = 0
}

// count notes that an action has one figure more, of so many.
func (r *reading) count(action, of string) {
	r.asked[action] = parseNumber(of)
	r.have[action]++
}

// rate is a figure in bytes a second; 0 where nothing was measured, or what no
// memory reaches, which is a problem.
func (r *reading) rate(text string, unit float64, n int) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v <= 0 || v > 1e12 {
		r.problems.Add(tool.Failed, n, "nothing was measured")
		return 0
	}
	return v * unit
}

// parseNumber returns a number of digits alone, as the patterns have it.
func parseNumber(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0 // longer than any number of a GPU
	}
	return n
}

// Summary says what each module measured, from the least to the most.
func (c Content) Summary() []string {
	ranges := map[string][]float64{}
	add := func(what string, v float64) {
		if v > 0 {
			ranges[what] = append(ranges[what], v/1e9)
		}
	}
	for _, m := range c.Memory {
		add("memory, "+m.Function, m.Rate)
	}
	for _, h := range c.Host {
		add("host, "+h.Action, h.Rate)
	}
	for _, p := range c.Peers {
		add("peers, "+p.Action, p.Rate)
	}
	compute, verdicts := c.describeVerdicts()
	lines := []string{fmt.Sprintf("ROCm Validation Suite, %d GPUs", max(len(c.GPUs), c.measured()))}
	for what, v := range ranges {
		lines = append(lines, fmt.Sprintf("%s: %.2f to %.2f GB/s", what, slices.Min(v), slices.Max(v)))
	}
	slices.SortFunc(lines[1:], cmp.Compare[string])
	return append(append(lines, compute...), verdicts...)
}

// measured counts the GPUs of which something was measured.
func (c Content) measured() int {
	seen := map[int]bool{}
	for _, m := range c.Memory {
		seen[m.GPU] = true
	}
	for _, x := range c.Compute {
		seen[x.GPU] = true
	}
	return len(seen)
}
