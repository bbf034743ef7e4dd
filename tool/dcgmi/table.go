// SPDX-License-Identifier: Apache-2.0

package dcgmi

import (
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	// section is the row that names a category, such as "|-----  Hardware  ---+---|".
	section = lazyregexp.New(`^\s*[|+]-+\s+([A-Za-z][\w /]*?)\s+-+\+`)
	// cells is a row of two columns.
	cells = lazyregexp.New(`^\s*\| ?(.*?)\s*\|\s*(.*?)\s*\|?\s*$`)
	// onOne is the result of one entity, as DCGM 4 prints it below that of a test.
	onOne = lazyregexp.New(`^((?:GPU|CPU|NIC|NVSwitch|Switch)s? ?[\d,: ]*\d)\s*: ?(Pass|Fail|Warn|Skip|Not Run)\w*\s*(?:- (.*))?$`)
	// ofOne is the name of a note of one entity, of DCGM 4: "Warning: GPU0".
	ofOne = lazyregexp.New(`^(Error|Warning|Info): ([A-Za-z_]+ ?\d+)$`)
	// result is what a test ended with, and on what: "Fail - GPUs: 1, 3".
	result = lazyregexp.New(`^(Pass|Fail|Warn|Skip)\w*(?:\s*-\s*(.*))?$`)
	// closing ends a table.
	closing = lazyregexp.New(`^\s*\+-+\+-+\+\s*$`)
)

// table reads the rows of a diagnosis.
type table struct {
	c        Content
	category string
	into     *[]string // what a row without a name continues
	started  bool
	closed   bool
	full     bool // the row was
	within   bool // the row begins within a word
}

func parseTable(data []byte, problems *tool.Problems) Content {
	t := table{c: Content{Command: "diag", Tests: []Test{}}}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimRight(line, " \t\r\n")
		switch {
		case diagFailed.MatchString(line):
			problems.Add(tool.Failed, n, "%s", strings.TrimSpace(line))
		case section.MatchString(line):
			t.category, t.into = section.FindStringSubmatch(line)[1], nil
		case closing.MatchString(line):
			t.closed = t.started
		case cells.MatchString(line):
			m := cells.FindStringSubmatch(line)
			t.within = t.torn(line)
			t.row(m[1], m[2], n)
		}
	}
	switch {
	case t.started && len(t.c.Tests) == 0:
		problems.Add(tool.Missing, 0, "there is no test")
	case t.started && !t.closed:
		problems.Add(tool.Truncated, 0, "the table ends before its end")
	}
	return t.c
}

func (t *table) row(name, value string, line int) {
	last := t.last()
	switch {
	case name == "Diagnostic" && strings.HasPrefix(value, "Result"):
		t.started, t.closed = true, false
	case !t.started:
	case name == "":
		t.more(value)
	case t.category == "Metadata":
		t.metadata(name, value)
	case ofOne.MatchString(name):
		m := ofOne.FindStringSubmatch(name)
		t.noteOf(m[2], m[1], value)
	case name == "Error" || name == "Warning" || name == "Info" || strings.HasPrefix(name, "Error") && last != nil:
		if last == nil { // a diagnosis that failed as a whole
			t.c.Tests = append(t.c.Tests, Test{Category: t.category, Name: t.category, Results: []Result{{Status: Fail}}, line: line})
			last = t.last()
		}
		t.note(last, name, value)
	default:
		r := Result{Status: parseStatus(value)}
		if m := result.FindStringSubmatch(value); m != nil && m[2] != "All" {
			r.Entities = m[2]
		}
		t.c.Tests = append(t.c.Tests, Test{Category: t.category, Name: name, Results: []Result{r}, line: line})
		t.into = nil
	}
}

// last is the result that notes belong to; nil before the first test.
func (t *table) last() *Result {
	if len(t.c.Tests) == 0 || t.c.Tests[len(t.c.Tests)-1].Category != t.category {
		return nil
	}
	results := t.c.Tests[len(t.c.Tests)-1].Results
	return &results[len(results)-1]
}

// noteOf adds a note to the result of one entity of the last test.
func (t *table) noteOf(entity, name, value string) {
	if t.last() == nil {
		return
	}
	test := &t.c.Tests[len(t.c.Tests)-1]
	for i := range test.Results {
		if r := &test.Results[i]; strings.ReplaceAll(r.Entities, " ", "") == strings.ReplaceAll(entity, " ", "") {
			t.note(r, name, value)
			return
		}
	}
	test.Results = append(test.Results, Result{Entities: entity, Status: Unknown})
	t.note(t.last(), name, value)
}

func (t *table) note(r *Result, name, value string) {
	list := &r.Warnings
	if name == "Info" {
		list = &r.Info
	}
	*list = append(*list, value)
	t.into = list
}

// more continues a cell that was too long for its column, or gives the result of
// one entity.
func (t *table) more(value string) {
	if m := onOne.FindStringSubmatch(value); m != nil && len(t.c.Tests) > 0 {
		test := &t.c.Tests[len(t.c.Tests)-1]
		r := Result{Entities: m[1], Status: parseStatus(m[2])}
		if m[3] != "" {
			r.Warnings = []string{m[3]}
		}
		test.Results = append(test.Results, r)
		t.into = nil
		return
	}
	if t.into != nil && len(*t.into) > 0 && value != "" {
		text := &(*t.into)[len(*t.into)-1]
		if !t.within {
			*text += " "
		}
		*text += value
	}
}

// chunk is how many characters of a note stand on a row: dcgmi cuts within words
// (DATA_INFO_TAG_LEN of Diag.cpp).
const chunk = 45

// torn reports whether a row continues with the word at the end of the one above:
// that one is full, and no blank begins this one. It notes whether this one is full.
func (t *table) torn(row string) bool {
	_, row, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	row = strings.TrimSuffix(row, "|")
	above := t.full
	t.full = len(strings.TrimRight(row, " ")) > chunk // with the blank of the border
	return above && !strings.HasPrefix(row, "  ")
}

func (t *table) metadata(name, value string) {
	switch name {
	case "DCGM Version":
		t.c.Version = value
	case "Driver Version Detected":
		t.c.Driver = value
	}
}

// Lines of dcgmi nvlink -s and dcgmi discovery -l.
var (
	gpuLinks    = lazyregexp.New(`^\s*gpuId (\d+):\s*$`)
	switchLinks = lazyregexp.New(`^\s*(?:physicalId|switchId|nvswitchId) (\w+):\s*$`)
	letters     = lazyregexp.New(`^\s*(?:[UDX_] ?)+\s*$`)
	numbered    = lazyregexp.New(`^(\d+)$`)
	heading     = lazyregexp.New(`^\s*\| (GPU|Switch|CPU|NvSwitch)\w* ?(?:ID)?\s+\|`)
)

// states are the letters of links, as the key below the table gives them.
var states = map[rune]NVLink{'U': Up, 'D': Down, 'X': Disabled, '_': NotSupported}

func parseLinks(data []byte, problems *tool.Problems) Content {
	c := Content{Command: "nvlink", GPUs: []GPU{}}
	var into *[]NVLink
	key := false
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, " \t\r\n")
		switch m, s := gpuLinks.FindStringSubmatch(line), switchLinks.FindStringSubmatch(line); {
		case strings.HasPrefix(strings.TrimSpace(line), "Key:"):
			key = true
		case m != nil:
			id, _ := strconv.Atoi(m[1])
			c.GPUs = append(c.GPUs, GPU{ID: id})
			into = &c.GPUs[len(c.GPUs)-1].Links
		case s != nil:
			c.Switch = append(c.Switch, Switch{ID: s[1]})
			into = &c.Switch[len(c.Switch)-1].Links
		case into != nil && letters.MatchString(line):
			for _, r := range line {
				if state, ok := states[r]; ok {
					*into = append(*into, state)
				}
			}
		}
	}
	if !key {
		problems.Add(tool.Truncated, 0, "the key below the table is not there: it may be cut")
	}
	for _, g := range c.GPUs {
		if len(g.Links) == 0 {
			problems.Add(tool.Truncated, 0, "GPU %d has no states of links", g.ID)
		}
	}
	return c
}

// announced is how many of something follow: "8 GPUs found.", and of DCGM 4.5
// "8 GPUs found (Active)."
var announced = lazyregexp.New(`^\s*(\d+) (GPU|NvSwitch)\w* found(?: \(\w+\))?\.`)

func parseDiscovery(data []byte, problems *tool.Problems) Content {
	c := Content{Command: "discovery", GPUs: []GPU{}}
	kind, want := "", -1
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, " \t\r\n")
		if m := announced.FindStringSubmatch(line); m != nil && m[2] == "GPU" {
			want, _ = strconv.Atoi(m[1])
		}
		if m := heading.FindStringSubmatch(line); m != nil {
			kind = m[1]
			continue
		}
		if m := cells.FindStringSubmatch(line); m != nil {
			addDiscovered(&c, kind, m[1], m[2])
		}
	}
	if want >= 0 && want != len(c.GPUs) {
		problems.Add(tool.Truncated, 0, "%d GPUs are announced and %d are listed", want, len(c.GPUs))
	}
	return c
}

// addDiscovered reads a row of the list of GPUs or of NVSwitches.
func addDiscovered(c *Content, kind, id, value string) {
	if m := numbered.FindStringSubmatch(id); m != nil {
		n, _ := strconv.Atoi(m[1])
		switch kind {
		case "GPU":
			c.GPUs = append(c.GPUs, GPU{ID: n})
		case "Switch", "NvSwitch":
			c.Switch = append(c.Switch, Switch{ID: m[1]})
		}
	}
	if kind != "GPU" || len(c.GPUs) == 0 {
		return
	}
	g := &c.GPUs[len(c.GPUs)-1]
	name, text, _ := strings.Cut(value, ": ")
	text = strings.TrimSuffix(text, " (last known)") // the status says why
	switch name {
	case "Name":
		g.Name = text
	case "PCI Bus ID":
		g.BusID = text
	case "Device UUID":
		g.UUID = text
	case "Status":
		g.Status = text
	}
}
