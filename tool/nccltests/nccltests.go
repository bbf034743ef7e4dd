// SPDX-License-Identifier: Apache-2.0

// Package nccltests reads what nccl-tests and rccl-tests print: the table of
// all_reduce_perf and its sisters in every layout of their versions, the file that
// -J of nccl-tests writes, and the records of rccl-tests' -Z json and -Z csv. It
// recomputes every bandwidth from size and time, and counts ranks. It is pure.
//
// Sources: src/util.cu, src/common.cu and the *_GetBw functions of
// github.com/NVIDIA/nccl-tests, and the same of github.com/ROCm/rccl-tests.
package nccltests

import (
	"bytes"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Content is what one output says: its first test, and those behind it.
type Content struct {
	Test
	More []Test `json:"more,omitempty"` // further tests of the same output
}

// Tests returns all tests in their order.
func (c Content) Tests() []Test { return append([]Test{c.Test}, c.More...) }

// Test is one run of one collective. What the output does not say is empty or
// null.
type Test struct {
	Collective  string   `json:"collective"` // such as "all_reduce"; empty when it is not said
	Version     string   `json:"version"`    // of the tests
	Library     string   `json:"library"`    // version of NCCL or RCCL
	Config      Config   `json:"config"`
	Ranks       []Rank   `json:"ranks"` // in the order of the output
	Rows        []Row    `json:"rows"`
	AvgBusBW    *float64 `json:"avg_busbw"`     // GB/s over all sizes and both placements: no measure of a sweep
	OutOfBounds *int64   `json:"out_of_bounds"` // elements that were wrong
	JSONFile    string   `json:"json_file,omitempty"`

	ended   bool // its footer was there
	copies  int  // how many more programs began before this one had a row
	elided  bool // rows were left out by hand
	cpuTime bool // the time is the processor's, and bandwidths do not follow from it
	partial bool // the list of devices does not have all
	counted int  // how many ranks the output says there are, without a list
}

// Config is what was asked for; null where the output does not say it.
type Config struct {
	Threads      *int64 `json:"nthreads"`      // of each process
	GPUs         *int64 `json:"ngpus"`         // of each thread
	MinimumBytes *int64 `json:"minimum_bytes"` //
	MaximumBytes *int64 `json:"maximum_bytes"` //
	StepBytes    *int64 `json:"step_bytes"`    // or
	StepFactor   *int64 `json:"step_factor"`   // between two sizes
	Warmups      *int64 `json:"warmup_iters"`
	Iterations   *int64 `json:"iterations"`
	Aggregated   *int64 `json:"aggregated_iterations"`
	Validation   *int64 `json:"validation"` // 0: results are not checked
	Graph        *int64 `json:"graph"`
	ReducedTo    *int64 `json:"reduced_to_bytes,omitempty"` // the largest size that memory had room for, when that was less
}

// Rank is one line of the list of devices.
type Rank struct {
	Rank   int    `json:"rank"`
	Group  *int   `json:"group"` // communicator; null in old versions
	PID    int    `json:"pid"`
	Host   string `json:"host"`
	Device int    `json:"device"`
	BusID  string `json:"bus_id"` // PCI address, or its bus alone as "0x1b"
	Name   string `json:"name"`
}

// Row is the measurement of one size.
type Row struct {
	Size       int64      `json:"size"`  // bytes
	Count      int64      `json:"count"` // elements
	Type       string     `json:"type"`
	Op         string     `json:"op"`   // of the reduction; "none" or empty when there is none
	Root       *int64     `json:"root"` // -1: none; null when there is no such column
	OutOfPlace *Placement `json:"out_of_place"`
	InPlace    *Placement `json:"in_place"`

	line int
}

// Placement is one half of a row. A figure that the output does not give, or gives
// as N/A, inf or nan, is null.
type Placement struct {
	Time   *float64 `json:"time_us"`
	Event  *float64 `json:"event_time_us,omitempty"` // by events of HIP; since 2.18 of rccl-tests
	AlgBW  *float64 `json:"algbw"`                   // GB/s, 10^9 bytes
	BusBW  *float64 `json:"busbw"`                   // GB/s
	Wrong  *int64   `json:"wrong"`
	Error  *float64 `json:"error,omitempty"`         // the largest one, which versions before 2.13 print in place of a count
	Spread *Spread  `json:"per_iteration,omitempty"` // with -I

	shown [3]string // time, algbw and busbw as they were printed, for their precision
}

// Spread is how single iterations differ.
type Spread struct {
	Min *float64 `json:"min_us"`
	Max *float64 `json:"max_us"`
	P99 *float64 `json:"p99_us"`
	CV  *float64 `json:"cv_percent"` // standard deviation in percent of the mean
}

// NCCL is the format of nccl-tests.
func NCCL() tool.Format {
	return tool.Format{Name: "nccl-tests", Is: func(b []byte) int { return matchFormat(b, false) }, Parse: parseAny, Merged: true, Stream: stream}
}

// RCCL is the format of rccl-tests.
func RCCL() tool.Format {
	return tool.Format{Name: "rccl-tests", Is: func(b []byte) int { return matchFormat(b, true) }, Parse: parseAny, Merged: true, Stream: stream}
}

var (
	// amd is what only rccl-tests prints.
	amd = lazyregexp.New(`(?m)^\s*(?:#? ?rccl-tests:? [Vv]ersion|RCCL version|HIP version|numCycle,)|\] AMD |"device_info":\s*"AMD |NCCL_RCCL|\[ERROR\] The number of requested GPUs|"inPlace":`)
	// table is a line that only these tests print.
	table = lazyregexp.New(`(?m)^\s*#\s*(?:size\s+count\s+type\b.*\bbusbw|bytes\s+N\s+type\b.*\bbusbw|nThread \d+ nGpus \d+|[nr]ccl-tests version |Collective test starting:|Avg bus bandwidth +:)`)
	// files are the keys of -J and of -Z json.
	files = lazyregexp.New(`"average_bus_bandwidth"|"out_of_place":\s*\{|"maximum_bytes":|"inPlace":\s*\d+.{0,200}"busBw":|"busBw":.{0,200}"inPlace":\s*\d`)
	// early is a run that ended before it printed anything of its own.
	early = lazyregexp.New(`(?s)not enough slots available.{0,400}_perf\b|_perf\b.{0,900}not enough slots available|Test (?:NCCL|CUDA) failure \w+\.c|\[ERROR\] The number of requested GPUs \(\d+\) is greater|_perf: error while loading shared libraries`)
)

// matchFormat returns how sure it is that a text is of nccl-tests or of rccl-tests.
func matchFormat(data []byte, rccl bool) int {
	sure := 0
	switch {
	case containsText(data, "#") && table.Match(data), containsText(data, "us") && isJSON(data), csvHead.Match(data):
		sure = 95
	case (containsText(data, "_perf") || containsText(data, "failure")) && early.Match(data):
		sure = 70
	case bareRow.Match(data[:min(len(data), 1<<20)]):
		sure = 60
	}
	if sure == 0 || amd.Match(data) != rccl {
		return 0
	}
	return sure
}

func containsText(data []byte, text string) bool { return bytes.Contains(data, []byte(text)) }

// opening is a line that a file of -J or -Z json can begin with.
var opening = lazyregexp.New(`(?m)^[ \t]*(?:\{|\[[ \t]*(?:\{|\r?$))`)

// isJSON reports whether a text is a file of -J or -Z json, also below the
// command that showed it. Where a table stands above it, the table is read.
func isJSON(data []byte) bool {
	at := opening.FindIndex(data[:min(len(data), 1<<16)])
	if at == nil || !files.Match(data) {
		return false
	}
	above := table.FindIndex(data[:at[0]])
	return above == nil
}

// Parse reads an output of nccl-tests or rccl-tests, text or JSON. An error means
// that it holds no sign of such a test.
func Parse(data []byte) (Content, tool.Problems, error) {
	var (
		tests    []Test
		problems tool.Problems
	)
	switch {
	case isJSON(data):
		tests = parseJSON(data, &problems)
	case csvHead.Match(data):
		tests = parseCSV(data, &problems)
	default:
		tests = parseText(data, &problems)
	}
	return concludeTests(tests, &problems)
}

// problemOrder puts problems of the whole behind those of a line.
func problemOrder(p tool.Problem) int {
	if p.Line == 0 {
		return 1 << 30
	}
	return p.Line
}

func parseAny(data []byte) (any, tool.Problems, error) {
	c, problems, err := Parse(data)
	return c, problems, err
}
