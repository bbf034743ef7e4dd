// SPDX-License-Identifier: Apache-2.0

// Package rocminfo reads what rocminfo of ROCm prints: the agents of the HSA
// runtime, which are the CPUs and the GPUs that programs can use.
//
// Source: rocminfo.cc of github.com/ROCm/rocm-systems.
package rocminfo

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// Format is the output of rocminfo.
var Format = tool.Format{
	Name: "rocminfo", Is: matchFormat,
	Parse: func(b []byte) (any, tool.Problems, error) {
		i, p, err := Parse(b)
		if err != nil {
			return nil, p, err
		}
		return i, p, nil
	},
}

// Info is what rocminfo says of a node.
type Info struct {
	Runtime string  `json:"runtime,omitempty"` // version of the HSA runtime
	Module  string  `json:"module,omitempty"`  // version of the driver's module, where it is said
	XNACK   *bool   `json:"xnack"`
	DMABuf  *bool   `json:"dmabuf"`
	Agents  []Agent `json:"agents"`
}

// Agent is a CPU or a GPU. Pointers are nil and strings empty where nothing is said.
type Agent struct {
	Agent    int      `json:"agent"` // from 1
	Type     string   `json:"type"`  // CPU, GPU
	Name     string   `json:"name"`  // gfx942
	Market   string   `json:"marketing_name,omitempty"`
	UUID     string   `json:"uuid,omitempty"`
	Node     *int64   `json:"node"`
	Units    *int64   `json:"compute_units"`
	Clock    *int64   `json:"max_clock_mhz"`
	ChipID   string   `json:"chip_id,omitempty"` // hexadecimal, without 0x
	BDFID    *int64   `json:"bdf_id"`
	Bus      string   `json:"bus,omitempty"` // that the number above means, without a domain
	Memory   *int64   `json:"memory_kb"`     // its largest pool
	ISAs     []string `json:"isas,omitempty"`
	nameSaid bool
}

// mostAgents is how many agents are read; a node has at most 64 parts of GPUs.
const mostAgents = 512

// errNone says that there is no output of rocminfo.
var errNone = errors.New("no agent of rocminfo in it")

var (
	begin  = lazyregexp.New(`(?m)^\s*HSA (?:System Attributes|Agents)\s*$`)
	agent  = lazyregexp.New(`^Agent (\d+)$`)
	pair   = lazyregexp.New(`^([A-Z][\w .()/]*?):{1,2}\s*(\S.*)?$`)
	inner  = lazyregexp.New(`^(?:Pool|ISA|Cache|L\d)\b`)
	module = lazyregexp.New(`ROCk module(?: version (\S+))? is loaded`)
	failed = lazyregexp.New(`^(?:ROCk module is NOT |Unable to open /dev/kfd|hsa api call failure|Failed to get |Call returned |.* is not (?:a )?member of )`)
)

func matchFormat(b []byte) int {
	looked := b[:min(len(b), 64<<10)]
	switch {
	case begin.Match(looked):
		return 92
	case bytes.Contains(looked, []byte("ROCk module is ")):
		return 70
	}
	return 0
}

// Parse reads one output of rocminfo.
func Parse(b []byte) (Info, tool.Problems, error) {
	r := reader{info: Info{Agents: []Agent{}}}
	for line := range bytes.Lines(b) {
		r.n++
		text := strings.TrimSpace(string(line))
		r.read(len(line)-len(bytes.TrimLeft(line, " \t")), strings.TrimRight(text, `\ `)) // documents break lines with one
	}
	if len(r.info.Agents) == 0 && !r.begun && len(r.p) == 0 && r.info.Module == "" {
		return Info{}, nil, errNone
	}
	if r.begun && !r.done {
		r.p.Add(tool.Truncated, r.n, "it ends before its last line, Done")
	}
	if r.done && len(r.info.Agents) == 0 {
		r.p.Add(tool.Missing, 0, "no agent in it")
	}
	for _, a := range r.info.Agents {
		if a.Type == "" || !a.nameSaid {
			r.p.Add(tool.Truncated, 0, "agent %d has no name or no type", a.Agent)
		}
	}
	return r.info, r.p, nil
}

// reader goes through the lines.
type reader struct {
	info        Info
	p           tool.Problems
	n           int
	begun, done bool
	indent      int             // of the values of an agent
	part        string          // of an agent: Pool, ISA
	seen        map[string]bool // values of the agent; nil: what follows is of no agent that is known
}

// dots stand where somebody left lines out.
var dots = lazyregexp.New(`^\[?\.\.\.\]?$`)

// read takes a line without its indentation, which tells the values of an agent
// from those of its parts.
func (r *reader) read(indent int, line string) {
	m := pair.FindStringSubmatch(line)
	number := agent.FindStringSubmatch(line)
	switch {
	case line == "HSA System Attributes" || line == "HSA Agents":
		r.begun = true
	case strings.HasPrefix(line, "*** Done ***"):
		r.done = true
	case module.MatchString(line):
		r.info.Module = module.FindStringSubmatch(line)[1]
	case failed.MatchString(line):
		r.p.Add(tool.Failed, r.n, "rocminfo says: %s", line)
	case number != nil && len(r.info.Agents) < mostAgents:
		r.begin(number[1])
	case dots.MatchString(line) && r.begun:
		r.p.Add(tool.Missing, r.n, "lines are left out here")
		r.seen = nil
	case inner.MatchString(line):
		r.part, _, _ = strings.Cut(line, " ")
	case m != nil && len(r.info.Agents) == 0:
		r.system(m[1], m[2])
	case m != nil && r.seen != nil:
		r.agent(indent, m[1], m[2])
	}
}

// begin begins the agent of a number.
func (r *reader) begin(number string) {
	i, _ := strconv.Atoi(number)
	if i != len(r.info.Agents)+1 {
		r.p.Add(tool.Missing, r.n, "agent %d follows %d agents", i, len(r.info.Agents))
	}
	r.info.Agents, r.part, r.seen = append(r.info.Agents, Agent{Agent: i}), "", map[string]bool{}
}

func (r *reader) system(name, value string) {
	switch name {
	case "Runtime Version":
		r.info.Runtime = value
	case "XNACK enabled":
		r.info.XNACK = parseYes(value)
	case "DMAbuf Support":
		r.info.DMABuf = parseYes(value)
	}
}

func parseYes(s string) *bool {
	if s != "YES" && s != "NO" {
		return nil
	}
	v := s == "YES"
	return &v
}

// known are the values that an agent has once.
var known = map[string]bool{"Name": true, "Marketing Name": true, "Uuid": true, "Device Type": true, "Node": true, "Compute Unit": true, "Chip ID": true, "BDFID": true}

// agent takes a value of the last agent, or of a part of it.
func (r *reader) agent(indent int, name, value string) {
	if len(r.seen) == 0 {
		r.indent = indent
	} else if indent <= r.indent {
		r.part = ""
	}
	a := &r.info.Agents[len(r.info.Agents)-1]
	switch {
	case r.part == "Pool" || r.part == "ISA":
		a.ofPart(r.part, name, value)
	case r.seen[name] && known[name]:
		r.p.Add(tool.Missing, r.n, "%s of agent %d is there twice: the heading of another agent is left out", name, a.Agent)
		r.seen = nil
	default:
		r.seen[name] = true
		a.set(name, value)
	}
}

// ofPart takes a value of a pool of memory, or of an instruction set.
func (a *Agent) ofPart(part, name, value string) {
	switch {
	case part == "Pool" && name == "Size":
		if v := parseWhole(value); v != nil && (a.Memory == nil || *v > *a.Memory) {
			a.Memory = v
		}
	case part == "ISA" && name == "Name" && len(a.ISAs) < 16:
		a.ISAs = append(a.ISAs, value)
	}
}

// set takes a value of the agent itself.
func (a *Agent) set(name, value string) {
	switch name {
	case "Name":
		a.Name, a.nameSaid = value, true
	case "Marketing Name":
		a.Market = value
	case "Uuid":
		a.UUID = value
	case "Device Type":
		a.Type = value
	case "Node":
		a.Node = parseWhole(value)
	case "Compute Unit":
		a.Units = parseWhole(value)
	case "Max Clock Freq. (MHz)":
		a.Clock = parseWhole(value)
	case "Chip ID":
		if _, hex, ok := strings.Cut(value, "(0x"); ok {
			a.ChipID = strings.TrimRight(hex, ")")
		}
	case "BDFID":
		if a.BDFID = parseWhole(value); a.BDFID != nil && *a.BDFID > 0 && *a.BDFID < 1<<16 {
			a.Bus = fmt.Sprintf("%02x:%02x.%x", *a.BDFID>>8, *a.BDFID>>3&31, *a.BDFID&7)
		}
	}
}

// parseWhole returns the number that a value begins with: "65111316(0x3e18514) KB".
func parseWhole(s string) *int64 {
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	v, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return nil
	}
	return &v
}

// Summary is a line for the whole and one for each agent.
func (i Info) Summary() []string {
	gpus := 0
	var lines []string
	for _, a := range i.Agents {
		if a.Type == "GPU" {
			gpus++
		}
		words := []string{fmt.Sprintf("agent %d: %s %s", a.Agent, a.Type, a.Name)}
		for _, w := range []string{a.Market, a.Bus, a.UUID} {
			if w != "" && w != a.Name {
				words = append(words, w)
			}
		}
		lines = append(lines, strings.Join(words, ", "))
	}
	return append([]string{fmt.Sprintf("%d agents, %d of them GPUs", len(i.Agents), gpus)}, lines...)
}
