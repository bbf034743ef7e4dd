package amdsmi

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// address is a PCI address as amd-smi heads its columns with; old versions leave
// the domain out.
var address = regexp.MustCompile(`^(?:[0-9A-Fa-f]{4}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$`)

// tables reads the tables of topology and xgmi.
func (r *Report) tables(b []byte, p *tool.Problems) {
	t := tableReader{r: r, p: p, number: map[string]int{}, links: map[[2]int]int{}}
	for raw := range bytes.Lines(b) {
		t.line++
		t.read(strings.TrimRight(string(raw), " \r\n"))
	}
	t.end()
}

// tableReader goes through the lines of tables.
type tableReader struct {
	r       *Report
	p       *tool.Problems
	line    int
	title   string
	began   int      // line of the title
	columns []string // addresses
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
	case t.columns == nil && strings.EqualFold(words[0], "bdf"):
		t.columns = []string{}
		for _, w := range words {
			if address.MatchString(w) {
				t.column(w)
			}
		}
	case t.columns == nil && address.MatchString(words[0]) && (len(words) == 1 || address.MatchString(words[1])):
		t.columns = []string{}
		for _, w := range words {
			t.column(w)
		}
	case strings.HasPrefix(words[0], "GPU") && len(words) > 2 && address.MatchString(words[1]):
		t.gpu(line, words)
	case words[0] == "Read" || words[0] == "Write":
		t.bytes(words)
	case address.MatchString(words[0]):
		t.cells(words)
	}
}

// column notes the GPU of a column; the order of columns is that of numbers.
func (t *tableReader) column(bdf string) {
	bdf = strings.ToLower(bdf)
	if _, known := t.number[bdf]; !known && len(t.number) == mostGPUs {
		return
	}
	t.columns = append(t.columns, bdf)
	if _, known := t.number[bdf]; !known {
		n := len(t.number)
		t.number[bdf] = n
		t.r.gpu(n).BDF = bdf
	}
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
		if i >= len(t.columns) || t.number[t.columns[i]] == from {
			continue
		}
		v, ok := said(w)
		if !ok {
			continue
		}
		l := t.link(from, t.number[t.columns[i]])
		n, isNumber := number(v)
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

// gpu reads a row "GPU0 0000:0c:00.0 32 Gb/s 512 Gb/s XGMI", or one with the
// state of each link.
func (t *tableReader) gpu(line string, words []string) {
	n, ok := number(strings.TrimPrefix(words[0], "GPU"))
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
	if t.title == "XGMI LINK STATUS" {
		g.XGMI.Status = words[2:]
		return
	}
	row := &branch{sub: []*branch{{name: "rate", value: words[2]}}}
	g.XGMI.BitRate = row.float("rate")
	if len(words) >= 7 {
		row.sub = append(row.sub, &branch{name: "most", value: words[4]})
		g.XGMI.MaxBandwidth = row.float("most")
		g.XGMI.Type, _ = said(words[6])
	}
}

// bytes reads a row "Read N/A 2 KB 2 KB" of a link metric table.
func (t *tableReader) bytes(words []string) {
	column := 0
	for i := 1; i < len(words) && column < len(t.columns); i++ {
		v, ok := number(words[i])
		if ok && i+1 < len(words) && words[i+1] == "KB" {
			i++
		}
		if to := t.number[t.columns[column]]; ok && to != t.last {
			if l := t.link(t.last, to); words[0] == "Read" {
				l.Read = &v
			} else {
				l.Written = &v
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
