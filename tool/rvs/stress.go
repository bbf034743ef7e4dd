// SPDX-License-Identifier: Apache-2.0

package rvs

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// Stress is what module gst says: matrices multiplied for a time.
type Stress struct {
	GPUs   []StressGPU `json:"gpus"`             // in the order of their first line
	Errors []string    `json:"errors,omitempty"` // lines that begin with [ERROR ]
}

// StressGPU is one GPU under load.
type StressGPU struct {
	ID     int     `json:"id"`     // that the kernel's compute driver gave it
	GFLOPS float64 `json:"gflops"` // the most of any interval
	Mean   float64 `json:"mean"`   // of the intervals, GFLOPS; 0: none ended
	Done   bool    `json:"done"`   // its last line is there
	Met    bool    `json:"met"`    // the target
	Wrong  int     `json:"wrong"`  // checks whose result was not the one before
}

// Lines of gst_worker.cpp of github.com/ROCm/ROCmValidationSuite.
var (
	stressLine = lazyregexp.New(`^\s*\[(?:RESULT|INFO  |INFO|TRACE |TRACE)\] \[[^\]]*\] \[[^\]\s]+\] \[GPU::\s*(\d+)\] (.*)$`)
	stressRate = lazyregexp.New(`^GFLOPS (\d+)(?: Target GFLOPS: \d+ met: (TRUE|FALSE))?$`)
	selfCheck  = lazyregexp.New(`(?i)^self[- _]?check error`)
)

// ParseStress reads the output of an action of module gst. An error means that it
// is of none.
func ParseStress(data []byte) (Stress, error) {
	s, intervals := Stress{GPUs: []StressGPU{}}, map[int]float64{}
	at := func(id int) *StressGPU {
		i := slices.IndexFunc(s.GPUs, func(g StressGPU) bool { return g.ID == id })
		if i < 0 {
			i, s.GPUs = len(s.GPUs), append(s.GPUs, StressGPU{ID: id})
		}
		return &s.GPUs[i]
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, " \t\r\n")
		if broken.MatchString(line) && len(s.Errors) < 16 {
			s.Errors = append(s.Errors, strings.TrimSpace(line))
		}
		m := stressLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		id, err := strconv.Atoi(m[1])
		if err != nil || len(s.GPUs) > 1024 {
			continue
		}
		g := at(id)
		if selfCheck.MatchString(m[2]) {
			g.Wrong++
		}
		if r := stressRate.FindStringSubmatch(m[2]); r != nil {
			rate, _ := strconv.ParseFloat(r[1], 64)
			g.GFLOPS = max(g.GFLOPS, rate)
			if r[2] != "" {
				g.Done, g.Met = true, r[2] == "TRUE"
				continue
			}
			intervals[id]++
			g.Mean += (rate - g.Mean) / intervals[id]
		}
	}
	if len(s.GPUs) == 0 && len(s.Errors) == 0 {
		return Stress{}, errors.New("there is no load of rvs in it")
	}
	return s, nil
}
