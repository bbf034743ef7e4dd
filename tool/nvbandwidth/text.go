// SPDX-License-Identifier: Apache-2.0

package nvbandwidth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
	"github.com/ironrail/ironrail/tool/jsontext"
)

var (
	first   = lazyregexp.New(`(?m)^\s*nvbandwidth Version: \S`)
	running = lazyregexp.New(`^\s*Running (\w+)\.\s*$`)
	device  = lazyregexp.New(`^\s*(?:Process +\d+ \((\S+)\): )?[Dd]evice (\d+): (.*?)(?: \(([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+)\))?\s*$`)
	listed  = lazyregexp.New(`^(\d+): (.*?)(?: \((?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]+)\))?(?:: ?\((\S+)\))?$`)
	fact    = lazyregexp.New(`^\s*(nvbandwidth Version|CUDA Runtime Version|CUDA Driver Version|Driver Version): (\S+)\s*$`)
	// total is the line below a matrix; the second form is of --perfFormatter.
	total  = lazyregexp.New(`^\s*(?:SUM|&&&& PERF) (\w+) (\S+)(?: [+-](?:GB/s|ns))?\s*$`)
	failed = lazyregexp.New(`^\s*(?:\[?ERROR\]?:?|CUDA_ERROR|Error:|\[CU\w*_ERROR|Failed|NVML_ERROR|Invalid value when checking the pattern|ASSERT in expression|terminate called).*`)
	// part is what the sums of a test with several matrices have behind its name.
	part = lazyregexp.New(`^_(?:read[12]|write[12]|total)$`)
	// peers is the number of a row of a bisection: which process writes to which.
	peers = lazyregexp.New(`^\s*(\d+) *-> *\d+\s`)
	// heading is the line above a matrix.
	heading = lazyregexp.New(`(?m)^\s*(?:memcpy|memory latency|Multinode) .*\b(?:CPU|GPU)\(row\).*\((?:GB/s|ns|us)\)\s*$`)
)

func matchFormat(data []byte) int {
	switch {
	case first.Match(data), isJSON(data):
		return 95
	case bytes.Contains(data, []byte("(row)")) && heading.Match(data):
		return 80
	case bytes.Contains(data, []byte("\nSUM ")) && bytes.Contains(data, []byte("Running ")) && bytes.Contains(data, []byte("_memcpy_")):
		return 80
	}
	return 0
}

func isJSON(data []byte) bool {
	start := data[:min(len(data), 4096)]
	return bytes.Contains(start, []byte(`"nvbandwidth"`)) && bytes.Contains(start, []byte("{"))
}

// text reads lines.
type text struct {
	c    Content
	rows bool // a header was there, so rows of the matrix come
}

func parseText(data []byte, problems *tool.Problems) (Content, error) {
	t := text{c: Content{Devices: []Device{}, Tests: []Test{}}}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		t.read(strings.TrimRight(line, " \t\r\n"), n, problems)
	}
	if t.c.Version == "" && len(t.c.Tests) == 0 {
		return Content{}, errors.New("there is nothing of nvbandwidth in it")
	}
	return t.c, nil
}

// last is the test that lines belong to; nil before the first one.
func (t *text) last() *Test {
	if len(t.c.Tests) == 0 {
		return nil
	}
	return &t.c.Tests[len(t.c.Tests)-1]
}

func (t *text) read(line string, n int, problems *tool.Problems) {
	test := t.last()
	switch {
	case fact.MatchString(line):
		t.fact(fact.FindStringSubmatch(line))
	case running.MatchString(line):
		t.begin(running.FindStringSubmatch(line)[1], n)
	case device.MatchString(line):
		m := device.FindStringSubmatch(line)
		i, _ := strconv.Atoi(m[2])
		t.c.Devices = append(t.c.Devices, Device{Index: i, Name: m[3], BusID: m[4], Host: m[1]})
	case failed.MatchString(line):
		t.failure(strings.TrimSpace(line), n, problems)
	case heading.MatchString(line) && (test == nil || test.Description != ""):
		// The line that says what runs was left out: the sum has the name.
		t.begin("", n)
		t.table(t.last(), line)
	case test == nil:
	case total.MatchString(line):
		test.total(total.FindStringSubmatch(line))
		t.rows = false
	case strings.HasPrefix(strings.TrimSpace(line), "Waived") && len(test.Matrix) == 0 && test.Description == "":
		test.Status = Waived
	default:
		t.table(test, line)
	}
}

// begin begins a test; its name may come with its sum only.
func (t *text) begin(name string, n int) {
	t.c.Tests = append(t.c.Tests, Test{Name: name, Status: Passed, Matrix: [][]*float64{}, line: n})
	t.rows = false
}

// failure notes what went wrong: of the test that runs, or of none.
func (t *text) failure(line string, n int, problems *tool.Problems) {
	switch test := t.last(); {
	case test == nil || test.Sum != nil:
		problems.Add(tool.Failed, n, "%s", line)
	case test.Status == Error:
		test.Error += "; " + line
	default:
		test.Status, test.Error = Error, line
	}
}

// total reads the line below a matrix. Of a test with several matrices, and of one
// whose first line was left out, it has the name.
func (t *Test) total(m []string) {
	if t.Sum == nil && (t.Name == "" || part.MatchString(strings.TrimPrefix(m[1], t.Name))) {
		t.Name = m[1]
	}
	if m[1] == t.Name {
		t.Sum = parseNumber(m[2])
	}
}

func (t *text) fact(m []string) {
	switch m[1] {
	case "nvbandwidth Version":
		t.c.Version = m[2]
	case "CUDA Runtime Version":
		t.c.CUDARuntime = m[2]
	case "CUDA Driver Version":
		t.c.CUDADriver = m[2]
	default:
		t.c.Driver = m[2]
	}
}

// table reads the lines of a matrix: its description, the numbers of its columns,
// and its rows, each with its number first.
func (t *text) table(test *Test, line string) {
	fields := strings.Fields(peers.ReplaceAllString(line, "$1 "))
	switch {
	case strings.Contains(line, "(row)") || (unitOf(line) != "" || strings.HasPrefix(line, "Bisect benchmarking")) && test.Description == "":
		test.Description, test.Unit = strings.TrimSpace(line), unitOf(line)
	case len(fields) == 0:
		t.rows = t.rows && len(test.Matrix) == 0
	case test.Description != "" && test.Sum == nil && !t.rows && len(test.Matrix) == 0 && isCounted(fields):
		t.rows, test.wide = true, len(fields)
	case t.rows && fields[0] == strconv.Itoa(len(test.Matrix)):
		row := []*float64{}
		for _, f := range fields[1:] {
			row = append(row, parseNumber(f))
		}
		test.Matrix = append(test.Matrix, row)
	}
}

// isCounted reports whether fields are 0, 1, 2 and so on.
func isCounted(fields []string) bool {
	for i, f := range fields {
		if f != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// document is what -j prints.
type document struct {
	Inner struct {
		Version     string   `json:"version"`
		CUDARuntime any      `json:"CUDA Runtime Version"`
		CUDADriver  any      `json:"CUDA Driver Version"`
		Driver      any      `json:"Driver Version"`
		Devices     []string `json:"GPU Device list"`
		Error       string   `json:"error"`
		Tests       []struct {
			Name        string  `json:"name"`
			Status      string  `json:"status"`
			Error       string  `json:"error"`
			Description string  `json:"bandwidth_description"`
			Latency     string  `json:"latency_description"`
			Matrix      [][]any `json:"bandwidth_matrix"`
			Latencies   [][]any `json:"latency_matrix"`
			Sum         any     `json:"sum"`
		} `json:"testcases"`
	} `json:"nvbandwidth"`
}

func parseJSON(data []byte, problems *tool.Problems) (Content, error) {
	found, ok := jsontext.Find(data)
	if !ok {
		return Content{}, errors.New("there is no JSON in it")
	}
	if found.Cut {
		problems.Add(tool.Truncated, 0, "the file ends before its end: what it has so far was read")
	}
	var d document
	if err := json.Unmarshal(found.Data, &d); err != nil {
		return Content{}, fmt.Errorf("JSON of nvbandwidth: %w", err)
	}
	in := d.Inner
	c := Content{Version: in.Version, CUDARuntime: formatValue(in.CUDARuntime), CUDADriver: formatValue(in.CUDADriver), Driver: formatValue(in.Driver), Devices: []Device{}, Tests: []Test{}}
	if in.Error != "" {
		problems.Add(tool.Failed, 0, "%s", in.Error)
	}
	for i, text := range in.Devices {
		dev := Device{Index: i, Name: text}
		if m := listed.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
			dev = Device{Index: n, Name: m[2], BusID: m[3], Host: m[4]}
		}
		c.Devices = append(c.Devices, dev)
	}
	for _, x := range in.Tests {
		t := Test{Name: x.Name, Status: parseStatus(x.Status), Description: x.Description + x.Latency, Error: x.Error, Matrix: [][]*float64{}, Sum: parseNumber(formatValue(x.Sum))}
		t.Unit = unitOf(t.Description)
		for _, row := range append(x.Matrix, x.Latencies...) {
			values := []*float64{}
			for _, v := range row {
				values = append(values, parseNumber(formatValue(v)))
			}
			t.Matrix, t.wide = append(t.Matrix, values), max(t.wide, len(values))
		}
		c.Tests = append(c.Tests, t.parts()...)
	}
	return c, nil
}

// directions is what the description of a test in both directions ends with; in
// JSON its three matrices, one way, the other way and both together, stand in one
// list, and the sum is that of the last.
var directions = lazyregexp.New(`^(.*<->.*) Total bandwidth \(GB/s\)$`)

// parts returns the three tests that a test in both directions is in text; any
// other is returned as it is.
func (t Test) parts() []Test {
	m := directions.FindStringSubmatch(t.Description)
	way, n := "read", len(t.Matrix)/3
	if m == nil || n == 0 || len(t.Matrix)%3 != 0 {
		return []Test{t}
	}
	if strings.Contains(t.Name, "write") {
		way = "write"
	}
	all := []Test{t, t, t}
	for i, name := range []string{way + "1", way + "2", "total"} {
		all[i].Name, all[i].Matrix = t.Name+"_"+name, t.Matrix[i*n:(i+1)*n]
		if i < 2 {
			all[i].Sum, all[i].unsummed = nil, true
			all[i].Description = m[1] + " " + strings.ToUpper(way[:1]) + way[1:] + strconv.Itoa(i+1) + " bandwidth (GB/s)"
		}
	}
	return all
}

// parseStatus returns how a test of a JSON file ended; one that is not known is an error.
func parseStatus(s string) Status {
	switch strings.ToLower(s) {
	case "passed", "pass", "":
		return Passed
	case "waived":
		return Waived
	}
	return Error
}

// formatValue returns a value as text; empty when there is none.
func formatValue(v any) string {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return ""
}
