// SPDX-License-Identifier: Apache-2.0

// Package nvbandwidth reads what nvbandwidth prints, as text and with -j: the
// matrix of bandwidths, or latencies, of each test. It is pure.
//
// Source: output.cpp and json_output.cpp of github.com/NVIDIA/nvbandwidth.
package nvbandwidth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// Content is what one output says.
type Content struct {
	Version     string   `json:"version"`
	CUDARuntime string   `json:"cuda_runtime"` // as printed: 12040 is 12.4
	CUDADriver  string   `json:"cuda_driver"`
	Driver      string   `json:"driver"` // of the kernel
	Devices     []Device `json:"devices"`
	Tests       []Test   `json:"tests"`
}

// Device is a GPU that was measured.
type Device struct {
	Index int    `json:"index"` // in its process
	Name  string `json:"name"`
	BusID string `json:"bus_id"` // PCI address; empty before version 0.5
	Host  string `json:"host"`   // of runs over several nodes
}

// Test is one test case.
type Test struct {
	Name        string       `json:"name"`
	Status      Status       `json:"status"`
	Description string       `json:"description"`
	Unit        string       `json:"unit"`   // GB/s, 10^9 bytes, or ns
	Matrix      [][]*float64 `json:"matrix"` // null where nothing is measured, such as of a GPU with itself
	Sum         *float64     `json:"sum"`
	Error       string       `json:"error,omitempty"`

	line     int
	wide     int  // columns of its header
	unsummed bool // its form has no sum
}

// Status is how a test ended.
type Status string

// How tests end.
const (
	Passed Status = "passed"
	Waived Status = "waived" // the hardware cannot do it
	Error  Status = "error"
)

// Range returns the smallest and the largest figure of a test; false when it has none.
func (t Test) Range() (least, most float64, ok bool) {
	for _, row := range t.Matrix {
		for _, v := range row {
			if v == nil || *v == 0 { // older versions print 0 for a GPU with itself
				continue
			}
			if !ok {
				least, most = *v, *v
			}
			least, most, ok = min(least, *v), max(most, *v), true
		}
	}
	return least, most, ok
}

// Format is the format of nvbandwidth.
func Format() tool.Format {
	return tool.Format{Name: "nvbandwidth", Is: matchFormat, Parse: func(b []byte) (any, tool.Problems, error) { return Parse(b) }, Merged: true}
}

// Parse reads an output. An error means that it is not of nvbandwidth.
func Parse(data []byte) (Content, tool.Problems, error) {
	var problems tool.Problems
	c, err := parseText(data, &problems)
	if isJSON(data) {
		c, err = parseJSON(data, &problems)
	}
	if err != nil {
		return Content{}, nil, err
	}
	for _, t := range c.Tests {
		checkTest(t, &problems)
	}
	if len(c.Tests) == 0 {
		problems.Add(tool.Missing, 0, "there is no test")
	}
	return c, problems, nil
}

// checkTest holds the matrix of a test against its header and its sum.
func checkTest(t Test, problems *tool.Problems) {
	if t.Name == "" {
		t.Name = "a test that is not named"
	}
	switch {
	case t.Status == Error:
		problems.Add(tool.Failed, t.line, "%s: %s", t.Name, cmp.Or(t.Error, "it ended with an error"))
		return
	case t.Status == Waived:
		return
	case len(t.Matrix) == 0:
		problems.Add(tool.Truncated, t.line, "%s has no figures", t.Name)
		return
	}
	sum, cells := 0.0, 0
	for i, row := range t.Matrix {
		if len(row) != t.wide {
			problems.Add(tool.Truncated, t.line, "%s: row %d has %d figures of %d", t.Name, i, len(row), t.wide)
			return
		}
		for _, v := range row {
			if v != nil {
				sum, cells = sum+*v, cells+1
			}
		}
	}
	switch {
	case t.unsummed:
	case t.Sum == nil:
		problems.Add(tool.Truncated, t.line, "%s ends before its sum", t.Name)
	case math.Abs(sum-*t.Sum) > 0.006*float64(cells)+0.001*math.Abs(sum):
		problems.Add(tool.Inconsistent, t.line, "%s: the sum %.2f is not that of the figures, which is %.2f", t.Name, *t.Sum, sum)
	}
}

// parseNumber returns a figure; nil for N/A and what is none.
func parseNumber(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// unitOf returns what a description says that figures are in.
func unitOf(description string) string {
	for _, u := range []string{"GB/s", "ns", "us"} {
		if strings.Contains(description, "("+u+")") {
			return u
		}
	}
	if strings.HasPrefix(description, "Bisect benchmarking") { // which says none; the source divides by 10^9
		return "GB/s"
	}
	return ""
}

// Summary says what each test measured.
func (c Content) Summary() []string {
	var names []string
	for _, d := range c.Devices {
		if !slices.Contains(names, d.Name) {
			names = append(names, d.Name)
		}
	}
	lines := []string{fmt.Sprintf("nvbandwidth %s, %d GPUs (%s), driver %s", c.Version, len(c.Devices), strings.Join(names, ", "), c.Driver)}
	for _, t := range c.Tests {
		least, most, ok := t.Range()
		switch {
		case !ok:
			lines = append(lines, fmt.Sprintf("%s: %s", t.Name, t.Status))
		case least == most:
			lines = append(lines, fmt.Sprintf("%s: %.2f %s", t.Name, most, t.Unit))
		default:
			lines = append(lines, fmt.Sprintf("%s: %.2f to %.2f %s", t.Name, least, most, t.Unit))
		}
	}
	return lines
}
