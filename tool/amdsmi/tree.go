// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// deepest is how deep a tree may be; amd-smi uses five levels.
const deepest = 32

// branch is a name with a value or with branches. Names are in lower case.
// Several branches may have one name.
type branch struct {
	name, value string
	line        int
	sub         []*branch
}

// at returns the branch that a path such as bus/max_pcie_width leads to. In CSV,
// where there are no sections, the last name alone is enough.
func (b *branch) at(paths ...string) *branch {
	for _, path := range paths {
		here := b
		for name := range strings.SplitSeq(path, "/") {
			i := slices.IndexFunc(here.sub, func(s *branch) bool { return s.name == name })
			if i < 0 {
				here = nil
				break
			}
			here = here.sub[i]
		}
		if here != nil {
			return here
		}
	}
	return nil
}

func (b *branch) text(paths ...string) string {
	at := b.at(paths...)
	if at == nil {
		return ""
	}
	s, _ := readValue(at.value)
	return s
}

func (b *branch) float(paths ...string) *float64 {
	if v, ok := parseNumber(b.text(paths...)); ok {
		return &v
	}
	return nil
}

func (b *branch) int(paths ...string) *int64 {
	f := b.float(paths...)
	if f == nil {
		return nil
	}
	v := int64(*f)
	return &v
}

// leaves calls f with every value below.
func (b *branch) leaves(f func(*branch)) {
	if len(b.sub) == 0 {
		f(b)
	}
	for _, s := range b.sub {
		s.leaves(f)
	}
}

// document is the begin of a JSON document on a line: warnings may stand above it.
var document = lazyregexp.New(`(?m)^\s*(?:\[\s*[{\]]|\{\s*["}])`)

// fromJSON returns every object that has a GPU's number, of all lists of all
// documents, in their order.
func fromJSON(b []byte, p *tool.Problems) []*branch {
	at := document.FindIndex(b)
	if at == nil {
		return nil
	}
	from := at[0]
	d := json.NewDecoder(bytes.NewReader(b[from:]))
	d.UseNumber()
	var all []*branch
	for {
		var v any
		err := d.Decode(&v)
		if err != nil {
			line := 1 + bytes.Count(b[:min(len(b), from+int(d.InputOffset()))], []byte("\n"))
			switch {
			case errors.Is(err, io.EOF):
			case errors.Is(err, io.ErrUnexpectedEOF):
				p.Add(tool.Truncated, line, "the JSON ends before its end")
			case len(all) == 0:
				p.Add(tool.Inconsistent, line, "not JSON: %v", err)
			}
			return all
		}
		all = append(all, numberedBranches(buildTree("", v, 0))...)
	}
}

// buildTree makes a tree of a JSON value. A value with its unit is one text, a list
// of texts is them with blanks between.
func buildTree(name string, v any, depth int) *branch {
	b := &branch{name: strings.ToLower(name)}
	if depth > deepest {
		return b
	}
	switch v := v.(type) {
	case map[string]any:
		if val, ok := v["value"]; ok && v["unit"] != nil && len(v) == 2 {
			b.value = strings.TrimSpace(buildTree("", val, depth+1).value + " " + buildTree("", v["unit"], depth+1).value)
			return b
		}
		for _, k := range sortedKeys(v) {
			b.sub = append(b.sub, buildTree(k, v[k], depth+1))
		}
	case []any:
		var words []string
		for _, e := range v {
			s := buildTree(name, e, depth+1)
			if len(s.sub) > 0 {
				b.sub = append(b.sub, s)
			} else {
				words = append(words, s.value)
			}
		}
		b.value = strings.Join(words, " ")
	case string:
		b.value = v
	case json.Number:
		b.value = v.String()
	case bool:
		b.value = strconv.FormatBool(v)
	}
	return b
}

func sortedKeys(m map[string]any) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// numberedBranches returns the outermost branches that have a GPU's number.
func numberedBranches(b *branch) []*branch {
	if at := b.at("gpu"); at != nil && len(at.sub) == 0 {
		if _, ok := parseNumber(at.value); ok {
			return []*branch{b}
		}
	}
	var all []*branch
	for _, s := range b.sub {
		all = append(all, numberedBranches(s)...)
	}
	return all
}

// fromText returns the section of each "GPU: n".
func fromText(b []byte, p *tool.Problems) []*branch {
	type level struct {
		indent int
		*branch
	}
	root := &branch{}
	stack := []level{{-1, root}}
	n := 0
	for raw := range bytes.Lines(b) {
		n++
		line := strings.TrimRight(string(raw), " \r\n")
		text := strings.TrimSpace(line)
		key, value, ok := strings.Cut(text, ":")
		if !ok || text == "" {
			continue
		}
		indent := len(line) - len(strings.TrimLeft(line, " \t"))
		for len(stack) > 1 && (stack[len(stack)-1].indent >= indent || len(stack) > deepest) {
			stack = stack[:len(stack)-1]
		}
		e := &branch{name: strings.ToLower(strings.TrimSpace(key)), value: strings.TrimSpace(value), line: n}
		top := stack[len(stack)-1]
		top.sub = append(top.sub, e)
		stack = append(stack, level{indent, e})
	}
	var all []*branch
	for _, s := range root.sub {
		if s.name == "gpu" {
			s.sub = append([]*branch{{name: "gpu", value: s.value, line: s.line}}, s.sub...)
			all = append(all, s)
		}
	}
	return all
}

// fromCSV returns a branch for each row, its columns directly below.
func fromCSV(b []byte, p *tool.Problems) []*branch {
	from := csvHead.FindIndex(b)[0]
	skipped := bytes.Count(b[:from], []byte("\n"))
	r := csv.NewReader(bytes.NewReader(b[from:]))
	r.FieldsPerRecord, r.LazyQuotes, r.TrimLeadingSpace = -1, true, true
	var head []string
	var all []*branch
	for {
		row, err := r.Read()
		if err != nil {
			return all
		}
		line, _ := r.FieldPos(0)
		line += skipped
		switch {
		case row[0] == "gpu" || row[0] == "timestamp": // a watch repeats it
			head = row
			continue
		case strings.HasPrefix(row[0], "'CTRL'"): // what a watch says above
			continue
		case len(row) < len(head):
			p.Add(tool.Truncated, line, "a row has %d of %d columns", len(row), len(head))
		case len(row) > len(head):
			p.Add(tool.Inconsistent, line, "a row has %d columns, the heading %d", len(row), len(head))
			continue
		}
		e := &branch{line: line}
		for i, v := range row {
			name := strings.TrimPrefix(strings.ToLower(strings.TrimSpace(head[i])), "gpu_")
			e.sub = append(e.sub, &branch{name: name, value: v, line: line})
		}
		all = append(all, e)
	}
}
