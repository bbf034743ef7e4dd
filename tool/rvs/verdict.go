// SPDX-License-Identifier: Apache-2.0

package rvs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Compute is how fast one GPU multiplied matrices in one action.
type Compute struct {
	Action string  `json:"action"`
	GPU    int     `json:"gpu"` // id
	GFLOPS float64 `json:"gflops"`
	Target float64 `json:"target_gflops"`
	Met    bool    `json:"met"` // as rvs says
}

// Verdict is what rvs says that passed or failed: an action, or a part of one.
type Verdict struct {
	Action string `json:"action"`
	Module string `json:"module"`         // in lower case, such as "peqt"
	GPU    *int   `json:"gpu,omitempty"`  // id, where the verdict is of one GPU
	Test   string `json:"test,omitempty"` // of module mem, its number
	Passed bool   `json:"passed"`
}

// How modules and the summary say what passed. A line may have no head, as the
// documents of rvs show them.
var (
	compute   = lazyregexp.New(`\[([^\]\s]+)\] \[GPU::\s*(\d+)\] GFLOPS ([\d.]+) Target GFLOPS: ([\d.]+) met: (TRUE|FALSE)$`)
	endurance = lazyregexp.New(`\[([^\]\s]+)\] \[GPU::\s*(\d+)\] pass: (TRUE|FALSE)$`)
	qualified = lazyregexp.New(`\[([^\]\s]+)\] (peqt) (true|false)$`)
	tested    = lazyregexp.New(`\[([^\]\s]+)\] mem Test (\d+) ?: (PASS|FAIL)\w*$`)
	summed    = lazyregexp.New(`^\s*\| (\S.*?) +\| ([A-Z]+) +\| (PASS|FAIL) +\|$`)
	doubtful  = lazyregexp.New(`(?i)\] \[GPU::\s*\d+\] self[- _]?check error `)
	overview  = lazyregexp.New(`^\s*\| RVS version +\| (\S+) +\|$`)
	gpuName   = lazyregexp.New(`^\S.* - (\d+)$`)
	gpuPlace  = lazyregexp.New(`^\d+ - \d+ - ([0-9A-Fa-f]{4}:[0-9A-Fa-f:.]+)$`)
)

// verdict reads a line that says what passed or failed, or one of the summary.
func (r *reading) verdict(line string, n int) {
	if m := compute.FindStringSubmatch(line); m != nil {
		r.computed(m, n)
		return
	}
	if m := endurance.FindStringSubmatch(line); m != nil {
		id := parseNumber(m[2])
		r.addVerdict(Verdict{Action: m[1], Module: "iet", GPU: &id, Passed: m[3] == "TRUE"}, line, n)
	} else if m := qualified.FindStringSubmatch(line); m != nil {
		r.addVerdict(Verdict{Action: m[1], Module: m[2], Passed: m[3] == "true"}, line, n)
	} else if m := tested.FindStringSubmatch(line); m != nil {
		r.addVerdict(Verdict{Action: m[1], Module: "mem", Test: m[2], Passed: m[3] == "PASS"}, line, n)
	} else if m := summed.FindStringSubmatch(line); m != nil {
		r.addVerdict(Verdict{Action: m[1], Module: strings.ToLower(m[2]), Passed: m[3] == "PASS"}, line, n)
	} else if doubtful.MatchString(line) {
		r.problems.Add(tool.Failed, n, "%s", strings.Join(strings.Fields(line), " "))
	} else if m := overview.FindStringSubmatch(line); m != nil {
		r.c.Version = m[1]
	} else if strings.Contains(line, " - ") && strings.HasPrefix(strings.TrimSpace(line), "|") {
		r.placed(line)
	}
}

func (r *reading) addVerdict(v Verdict, line string, n int) {
	r.c.Verdicts = append(r.c.Verdicts, v)
	if !v.Passed {
		r.problems.Add(tool.Failed, n, "%s", strings.Join(strings.Fields(line), " "))
	}
}

func (r *reading) computed(m []string, n int) {
	rate, err := strconv.ParseFloat(m[3], 64)
	target, wrong := strconv.ParseFloat(m[4], 64)
	if err != nil || wrong != nil || rate > 1e15 || target > 1e15 {
		r.problems.Add(tool.Failed, n, "nothing was measured")
		return
	}
	c := Compute{Action: m[1], GPU: parseNumber(m[2]), GFLOPS: rate, Target: target, Met: m[5] == "TRUE"}
	r.c.Compute = append(r.c.Compute, c)
	if !c.Met {
		r.problems.Add(tool.Failed, n, "%s: GPU %d reached %s GFLOPS of %s", c.Action, c.GPU, m[3], m[4])
	}
}

// placed reads the list of GPUs in the summary: a row of names with ids, and below
// it one of the same GPUs' addresses.
func (r *reading) placed(line string) {
	var ids []int
	for i, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
		cell = strings.TrimSpace(cell)
		if m := gpuPlace.FindStringSubmatch(cell); m != nil {
			if i < len(r.ids) {
				r.gpu(GPU{r.ids[i], strings.ToLower(m[1])})
			}
		} else if m := gpuName.FindStringSubmatch(cell); m != nil {
			ids = append(ids, parseNumber(m[1]))
		}
	}
	r.ids = ids
}

// gpu notes a GPU once.
func (r *reading) gpu(g GPU) {
	if !slices.Contains(r.c.GPUs, g) {
		r.c.GPUs = append(r.c.GPUs, g)
	}
}

// describeVerdicts are the lines of a summary of what was computed, by action, and of what
// passed.
func (c Content) describeVerdicts() (computed, verdicts []string) {
	var names []string
	for _, x := range c.Compute {
		if !slices.Contains(names, x.Action) {
			names = append(names, x.Action)
		}
	}
	for _, name := range names[:min(len(names), 64)] {
		var rates []float64
		for _, x := range c.Compute {
			if x.Action == name {
				rates = append(rates, x.GFLOPS)
			}
		}
		computed = append(computed, fmt.Sprintf("compute, %s: %.0f to %.0f GFLOPS", name, slices.Min(rates), slices.Max(rates)))
	}
	passed := 0
	for _, v := range c.Verdicts {
		if v.Passed {
			passed++
		}
	}
	if len(c.Verdicts) > 0 {
		verdicts = append(verdicts, fmt.Sprintf("%d verdicts, %d passed", len(c.Verdicts), passed))
	}
	return computed, verdicts
}
