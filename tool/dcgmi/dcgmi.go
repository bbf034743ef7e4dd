// SPDX-License-Identifier: Apache-2.0

// Package dcgmi reads what NVIDIA's dcgmi prints: `dcgmi diag` as a table and as
// JSON, of DCGM 2 to 4, `dcgmi nvlink -s` and `-e`, `dcgmi discovery -l` and `dcgmi
// dmon`.
// It is pure.
//
// Source: dcgmi/Diag.cpp, NvLink.cpp and Query.cpp of github.com/NVIDIA/DCGM.
package dcgmi

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Content is what one output says.
type Content struct {
	Command string   `json:"command"` // diag, health, nvlink, discovery or dmon
	Version string   `json:"version"` // of DCGM; empty when it is not said
	Driver  string   `json:"driver"`
	Health  Status   `json:"health,omitempty"`   // of health, over all
	Tests   []Test   `json:"tests,omitempty"`    // of diag; of health the systems with incidents
	GPUs    []GPU    `json:"gpus,omitempty"`     // of discovery and nvlink
	Switch  []Switch `json:"switches,omitempty"` // NVSwitches
	Samples *Samples `json:"samples,omitempty"`  // of dmon
}

// Test is one test of a diagnosis.
type Test struct {
	Category string   `json:"category"`
	Name     string   `json:"name"`
	Results  []Result `json:"results"`

	line int
}

// Result is how a test ended on some GPUs, or on all.
type Result struct {
	Entities string   `json:"entities"` // such as "0,1,2" or "CPU 0"; empty: all, or none in particular
	Status   Status   `json:"status"`
	Info     []string `json:"info,omitempty"`
	Warnings []string `json:"warnings,omitempty"` // and errors
}

// Status is how a test ended.
type Status string

// How tests end.
const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Warn    Status = "warn"
	Skip    Status = "skip"
	Unknown Status = "unknown"
)

// GPU is one GPU and its links.
type GPU struct {
	ID    int    `json:"id"`
	Name  string `json:"name,omitempty"`
	BusID string `json:"bus_id,omitempty"`
	UUID  string `json:"uuid,omitempty"`
	// Status is that of a GPU that is not active, of discovery -a: Lost, Detached.
	Status string   `json:"status,omitempty"`
	Links  []NVLink `json:"links,omitempty"`
	// Errors are the counts of nvlink -e, by link and then by name: "Link 0", "CRC FLIT
	// Error"; of Blackwell, which counts them together, "Error Detail" is the link.
	Errors map[string]map[string]float64 `json:"errors,omitempty"`
}

// Switch is one NVSwitch and its links.
type Switch struct {
	ID    string   `json:"id"`
	Links []NVLink `json:"links,omitempty"`
}

// NVLink is the state of one link.
type NVLink string

// The states of links, by the letters that dcgmi prints.
const (
	Up           NVLink = "up"
	Down         NVLink = "down"
	Disabled     NVLink = "disabled"
	NotSupported NVLink = "not supported"
)

// Format is the format of dcgmi.
func Format() tool.Format {
	return tool.Format{Name: "dcgmi", Is: matchFormat, Parse: func(b []byte) (any, tool.Problems, error) { return Parse(b) }}
}

var (
	diagTable  = lazyregexp.New(`(?m)^\s*\| Diagnostic\s+\| Result\s+\|?`)
	diagJSON   = lazyregexp.New(`"DCGM (?:GPU )?Diagnostic"\s*:`)
	linkTable  = lazyregexp.New(`(?m)^\s*\|\s*NvLink Link Status\s*\|`)
	found      = lazyregexp.New(`(?m)^\s*(?:\d+ GPUs? found(?: \(\w+\))?\.|\| GPU ID\s+\| Device Information)`)
	diagFailed = lazyregexp.New(`(?m)^\s*(?:Error: .*(?:diagnostic|host engine|nv-hostengine|[hH]ealth watches|connection to the specified host|from remote node|link status from DCGM|GPU info|group information).*|The requested operation could not be completed because the affected resource is in use.*)`)
)

func matchFormat(data []byte) int {
	switch {
	case healthIn.Match(data), monitorBegin.Match(data):
		return 95
	case diagJSON.Match(data), diagTable.Match(data), linkTable.Match(data), errorTable.Match(data):
		return 95
	case found.Match(data) && bytes.Contains(data, []byte("Device Information")):
		return 95
	case diagFailed.Match(data):
		return 50
	}
	return 0
}

// Parse reads an output. An error means that it is of none of these commands.
func Parse(data []byte) (Content, tool.Problems, error) {
	var (
		c        Content
		problems tool.Problems
		err      error
	)
	switch {
	case healthIn.Match(data):
		c, err = parseHealth(data, &problems)
	case diagJSON.Match(data):
		c, err = parseJSON(data, &problems)
	case diagTable.Match(data), diagFailed.Match(data):
		c = parseTable(data, &problems)
	case linkTable.Match(data):
		c = parseLinks(data, &problems)
	case errorTable.Match(data):
		c = parseErrors(data, &problems)
	case monitorBegin.Match(data):
		c = parseMonitor(data, &problems)
	case found.Match(data):
		c = parseDiscovery(data, &problems)
	default:
		err = errors.New("there is nothing of dcgmi in it")
	}
	if err != nil {
		return Content{}, nil, err
	}
	checkContent(c, &problems)
	return c, problems, nil
}

// checkContent says which tests failed and which links are down.
func checkContent(c Content, problems *tool.Problems) {
	for _, t := range c.Tests {
		for _, r := range t.Results {
			if r.Status == Fail || r.Status == Warn {
				problems.Add(tool.Failed, t.line, "%s", t.complaint(r))
			}
		}
	}
	if c.Health == Fail && !slices.ContainsFunc(*problems, func(p tool.Problem) bool { return p.Kind == tool.Failed }) {
		problems.Add(tool.Failed, 0, "the overall health is failure")
	}
	for _, g := range c.GPUs {
		if g.Status != "" && !strings.EqualFold(g.Status, "ok") {
			problems.Add(tool.Failed, 0, "GPU %d is not active: %s", g.ID, g.Status)
		}
		if n := countLinks(g.Links, Down); n > 0 {
			problems.Add(tool.Failed, 0, "%d NVLinks of GPU %d are down", n, g.ID)
		}
	}
	for _, s := range c.Switch {
		if n := countLinks(s.Links, Down); n > 0 {
			problems.Add(tool.Failed, 0, "%d NVLinks of NVSwitch %s are down", n, s.ID)
		}
	}
}

// complaint says that a test failed or warns, on what, and why.
func (t Test) complaint(r Result) string {
	text := t.Name + " failed"
	if r.Status == Warn {
		text = t.Name + " warns"
	}
	if on := r.Entities; on != "" && on[0] >= '0' && on[0] <= '9' {
		text += " on GPU " + on
	} else if on != "" {
		text += " on " + on
	}
	return strings.Join(append([]string{text}, r.Warnings...), ": ")
}

func countLinks(links []NVLink, state NVLink) (n int) {
	for _, l := range links {
		if l == state {
			n++
		}
	}
	return n
}

// parseStatus reads a word, whatever its case and what follows it.
func parseStatus(s string) Status {
	word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(s)), " ")
	switch strings.Trim(word, ".:,-") {
	case "pass", "passed", "healthy":
		return Pass
	case "fail", "failed", "failure":
		return Fail
	case "warn", "warning":
		return Warn
	case "skip", "skipped", "not": // Not Run
		return Skip
	}
	return Unknown
}

// Summary says how many tests passed and which did not, or how GPUs are linked.
func (c Content) Summary() []string {
	switch c.Command {
	case "diag":
		return c.tests()
	case "dmon":
		return c.Samples.summary()
	case "health":
		return append([]string{fmt.Sprintf("dcgmi health: %s", c.Health)}, c.tests()[1:]...)
	case "nvlink":
		var lines []string
		for _, g := range c.GPUs {
			if g.Errors != nil {
				lines = append(lines, fmt.Sprintf("GPU %d: %g NVLink errors", g.ID, g.errors()))
				continue
			}
			lines = append(lines, fmt.Sprintf("GPU %d: %d links up, %d down, %d disabled", g.ID, countLinks(g.Links, Up), countLinks(g.Links, Down), countLinks(g.Links, Disabled)))
		}
		return append(lines, fmt.Sprintf("%d GPUs, %d NVSwitches", len(c.GPUs), len(c.Switch)))
	}
	lines := []string{fmt.Sprintf("%d GPUs, %d NVSwitches", len(c.GPUs), len(c.Switch))}
	for _, g := range c.GPUs {
		lines = append(lines, fmt.Sprintf("GPU %d: %s %s", g.ID, g.Name, g.BusID))
	}
	return lines
}

func (c Content) tests() []string {
	counts := map[Status]int{}
	var notable []string
	for _, t := range c.Tests {
		for _, r := range t.Results {
			counts[r.Status]++
			if r.Status == Warn || r.Status == Fail {
				notable = append(notable, strings.TrimSpace(fmt.Sprintf("%s: %s %s", t.Name, r.Status, r.Entities)))
			}
		}
	}
	var parts []string
	for _, s := range []Status{Pass, Warn, Fail, Skip, Unknown} {
		if counts[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[s], s))
		}
	}
	head := "dcgmi diag"
	if c.Version != "" {
		head += " " + c.Version
	}
	slices.Sort(notable)
	return append([]string{head + ": " + strings.Join(parts, ", ")}, slices.Compact(notable)...)
}
