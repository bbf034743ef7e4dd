// SPDX-License-Identifier: Apache-2.0

package amdsmi

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// address is a PCI address as amd-smi heads its columns with; old versions leave
// the domain out.
var address = lazyregexp.New(`^(?:[0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$`)

// tables reads the tables of topology and xgmi.
func (r *Report) tables(b []byte, p *tool.Problems) {
	t := tableReader{r: r, p: p, number: map[string]int{}, links: map[[2]int]int{}}
	for raw := range bytes.Lines(b) {
		t.line++
		t.read(strings.TrimRight(string(raw), " \r\n"))
	}
	t.end()
	for i := range r.Links { // their GPUs may have been named below
		l := &r.Links[i]
		l.FromBDF, l.ToBDF = firstText(l.FromBDF, r.gpu(l.From).BDF), firstText(l.ToBDF, r.gpu(l.To).BDF)
	}
}

// tableReader goes through the lines of tables.
type tableReader struct {
	r       *Report
	p       *tool.Problems
	line    int
	title   string
	began   int   // line of the title
	columns []int // GPUs
	rows    int
	number  map[string]int // of a GPU, by address
	links   map[[2]int]int // index into r.Links
	last    int            // GPU of the row above, in a link metric table
}

func (t *tableReader) read(line string) {
	if m := table.FindStringSubmatch(line); m != nil {
		t.end()
		t.title, t.began, t.columns, t.rows = m[1], t.line, nil, 0
		return
	}
	words := strings.Fields(line)
	if t.title == "" || len(words) == 0 || words[0] == "*" {
		return
	}
	switch {
	case t.columns == nil && isHeading(words):
		t.heading(words)
	case strings.HasPrefix(words[0], "GPU") && len(words) > 2 && address.MatchString(words[1]):
		t.gpu(line, words)
	case (words[0] == "Read" || words[0] == "Write") && len(words) > 1 && words[1] != "/": // of the legend
		t.bytes(line)
	case address.MatchString(words[0]):
		t.cells(words)
	}
}

// isHeading reports whether a line of a table names its columns: GPUs by their
// addresses alone, or what stands behind a first column "bdf".
func isHeading(words []string) bool {
	return strings.EqualFold(words[0], "bdf") || address.MatchString(words[0]) && (len(words) == 1 || address.MatchString(words[1]))
}

// heading notes the GPU of each column.
func (t *tableReader) heading(words []string) {
	t.columns = []int{}
	for _, w := range words {
		t.column(w)
	}
}

// numberedGPU is a GPU as amd-smi of ROCm 7 heads the columns of xgmi with.
var numberedGPU = lazyregexp.New(`^GPU(\d+)$`)

// column notes the GPU of a column, by its number or by its address; the order of
// addresses is that of numbers. Any other word heads what is no GPU's.
func (t *tableReader) column(w string) {
	if m := numberedGPU.FindStringSubmatch(w); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n < mostGPUs {
			t.columns = append(t.columns, n)
		}
		return
	}
	bdf := strings.ToLower(w)
	n, known := t.number[bdf]
	if !address.MatchString(w) || !known && len(t.number) == mostGPUs {
		return
	}
	if !known {
		n = len(t.number)
		t.number[bdf] = n
		t.r.gpu(n).BDF = bdf
	}
	t.columns = append(t.columns, n)
}

// link returns the link between two GPUs, made if it is new.
func (t *tableReader) link(from, to int) *Link {
	key := [2]int{from, to}
	i, ok := t.links[key]
	if !ok {
		i = len(t.r.Links)
		t.links[key] = i
		t.r.Links = append(t.r.Links, Link{From: from, To: to, FromBDF: t.r.gpu(from).BDF, ToBDF: t.r.gpu(to).BDF})
	}
	return &t.r.Links[i]
}

// cells reads a row of a table of topology.
func (t *tableReader) cells(words []string) {
	from, known := t.number[strings.ToLower(words[0])]
	t.rows++
	switch {
	case !known:
		t.p.Add(tool.Inconsistent, t.line, "%s has a row and no column", words[0])
		return
	case len(words)-1 < len(t.columns):
		t.p.Add(tool.Truncated, t.line, "%s: the row of %s has %d of %d columns", t.title, words[0], len(words)-1, len(t.columns))
	}
	for i, w := range words[1:] {
		if i >= len(t.columns) || t.columns[i] == from {
			continue
		}
		v, ok := readValue(w)
		if !ok {
			continue
		}
		l := t.link(from, t.columns[i])
		n, isNumber := parseNumber(v)
		whole := int64(n)
		switch {
		case t.title == "ACCESS":
			l.Access = v
		case t.title == "LINK TYPE":
			l.Type = v
		case t.title == "NUMA BW":
			l.Bandwidth = v
		case t.title == "WEIGHT" && isNumber:
			l.Weight = &whole
		case t.title == "HOPS" && isNumber:
			l.Hops = &whole
		}
	}
}

// metricRow is the rest of a row of the link metric table. Its columns run
// together where their values are those of GPUs without links.
var metricRow = lazyregexp.New(`^(N/A|[\d.]+)(?: Gb/s)?\s*(?:(N/A|[\d.]+)(?: Gb/s)?\s*(\S*))?`)

// noRate is the bit rate of a GPU without links, 16 bits of ones.
const noRate = 1<<16 - 1

// gpu reads a row "GPU0 0000:0c:00.0 32 Gb/s 512 Gb/s XGMI", or one with the
// state of each link.
func (t *tableReader) gpu(line string, words []string) {
	n, ok := parseNumber(strings.TrimPrefix(words[0], "GPU"))
	if !ok || n < 0 || n >= mostGPUs {
		return
	}
	t.rows++
	t.last = int(n)
	g := t.r.gpu(t.last)
	if bdf := strings.ToLower(words[1]); g.BDF == "" {
		g.BDF = bdf
	} else if bdf != g.BDF {
		t.p.Add(tool.Inconsistent, t.line, "GPU %d is at %s and at %s", g.GPU, g.BDF, bdf)
	}
	if g.XGMI == nil {
		g.XGMI = &XGMI{}
	}
	switch {
	case t.title == "XGMI LINK STATUS" && len(t.columns) > 0:
		t.states(words[2:])
	case strings.HasSuffix(t.title, "STATUS"):
		g.XGMI.Status = nil
		if slices.ContainsFunc(words[2:], func(w string) bool { _, ok := readValue(w); return ok }) {
			g.XGMI.Status = words[2:]
		}
	default:
		g.XGMI.metric(strings.TrimSpace(line[strings.Index(line, words[1])+len(words[1]):]))
	}
}

// metric reads the rest of a row of the link metric table.
func (x *XGMI) metric(rest string) {
	m := metricRow.FindStringSubmatch(rest)
	if m == nil {
		return
	}
	if v, ok := parseNumber(m[1]); ok && v != noRate {
		x.BitRate = &v
	}
	if v, ok := parseNumber(m[2]); ok {
		x.MaxBandwidth = &v
	}
	x.Type, _ = readValue(m[3])
}

// states reads how the links to each GPU are: U, D or X, of ROCm 7.
func (t *tableReader) states(words []string) {
	if len(words) < len(t.columns) {
		t.p.Add(tool.Truncated, t.line, "%s: the row of GPU%d has %d of %d columns", t.title, t.last, len(words), len(t.columns))
	}
	for i, w := range words {
		if v, ok := readValue(w); ok && i < len(t.columns) && t.columns[i] != t.last && v != "SELF" {
			t.link(t.last, t.columns[i]).Status = v
		}
	}
}

// amount is a number with its unit or nothing, of a row of the link metric table.
var amount = lazyregexp.New(`^\s*(N/A|[\d.]+(?: [KMGTPE]?B)?)(?:\s|$)`)

// bytes reads a row "Read N/A 2 KB 2 KB" of a link metric table.
func (t *tableReader) bytes(line string) {
	name, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	column := 0
	for column < len(t.columns) {
		m := amount.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		rest = rest[len(m[0]):]
		if to, v := t.columns[column], parseKilobytes(m[1]); v != nil && to != t.last {
			if l := t.link(t.last, to); name == "Read" {
				l.Read = v
			} else {
				l.Written = v
			}
		}
		column++
	}
	if column < len(t.columns) {
		t.p.Add(tool.Truncated, t.line, "the row has %d of %d columns", column, len(t.columns))
	}
}

// end checks the table that was read last.
func (t *tableReader) end() {
	if t.title == "" {
		return
	}
	if t.rows < len(t.columns) {
		t.p.Add(tool.Truncated, t.began, "%s: %d of %d rows", t.title, t.rows, len(t.columns))
	}
	if t.rows == 0 && len(t.columns) == 0 {
		t.p.Add(tool.Truncated, t.began, "%s: nothing below it", t.title)
	}
}
