// SPDX-License-Identifier: Apache-2.0

package rocmsmi

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

var (
	title     = lazyregexp.New(`^=+ +(.*?) +=+$`)
	opening   = lazyregexp.New(`=+ *ROCm System Management Interface *=+`)
	rule      = lazyregexp.New(`^[=\s]+$`)
	property  = lazyregexp.New(`^GPU\[(\d+)\]\s*: ?\s*(.*)$`)
	matrixRow = lazyregexp.New(`^GPU(\d+)\s+(\S.*)$`)
	matrixTop = lazyregexp.New(`^(?:GPU\d+\s*)+$`)
	tableTop  = lazyregexp.New(`^(?:GPU|Device) +.*\bSCLK\b.*\bGPU%$`)
	clocked   = lazyregexp.New(`^(?:\d+[Mm][Hh]z|auto|manual|high|low|profile_\S+|perf_\S+|stable_\S+)$`)
	concise   = lazyregexp.New(`^(\d+)\s+\S.*(?:Mhz|W|%).*$`)
	rasRow    = lazyregexp.New(`^([A-Z][A-Z0-9_]*)\s+(ENABLED|DISABLED|SINGLE_BIT|POISON|MULTI_BIT|NOT_SUPPORTED)\s*(\S+)?\s*(\S+)?$`)
	pageRow   = lazyregexp.New(`^(0x[0-9a-fA-F]+)\s+(0x[0-9a-fA-F]+)\s+(\w+)$`)
	wide      = lazyregexp.New(` {2,}`)
	celsius   = lazyregexp.New(`^\d+(?:\.\d+)?°?[cC]$`)
	watts     = lazyregexp.New(`^\d+(?:\.\d+)?W$`)
	percent   = lazyregexp.New(`^\d+(?:\.\d+)?%$`)
	memMode   = lazyregexp.New(`^(NPS\d)\b`)
	runMode   = lazyregexp.New(`^([SDTQC]PX)\b`)
)

// text reads sections, matrices and the concise table.
func (r *reader) text(b []byte) {
	s := section{reader: r, ras: -1}
	for raw := range bytes.Lines(b) {
		s.line++
		s.read(strings.TrimSpace(string(raw)))
	}
	s.matrixEnd()
	if opening.Match(b) && !bytes.Contains(b, []byte("End of ROCm SMI Log")) {
		r.p.Add(tool.Truncated, s.line, "it ends before its last line, End of ROCm SMI Log")
	}
}

// section goes through the lines below a title.
type section struct {
	*reader
	line    int
	title   string
	columns int // of a matrix
	rows    int
	began   int
	ras     int      // GPU whose blocks follow; -1: none
	head    []string // of the table of --showhw
	table   bool     // below the heading of the concise table, which has no title before ROCm 4
	vram    bool     // it has a column of memory in use, as from ROCm 3 on
}

func (s *section) read(line string) {
	if m := title.FindStringSubmatch(line); m != nil {
		s.matrixEnd()
		s.title, s.columns, s.rows, s.began, s.ras, s.head, s.table = m[1], 0, 0, s.line, -1, nil, strings.Contains(m[1], "Concise")
		s.vram = true
		return
	}
	if line == "" || rule.MatchString(line) {
		return
	}
	if driver, ok := strings.CutPrefix(line, "Driver version: "); ok {
		s.Driver, _ = readValue(driver)
		return
	}
	switch m := property.FindStringSubmatch(line); {
	case m != nil:
		s.property(m)
	case s.matrix(line), s.errors(line):
	case strings.HasPrefix(line, "GPU ") && strings.Contains(s.title, "Concise Hardware"):
		s.head = wide.Split(line, -1)
	case s.head != nil && strings.Contains(s.title, "Concise Hardware"):
		s.hardware(wide.Split(line, -1))
	case tableTop.MatchString(line):
		s.table, s.vram = true, strings.Contains(line, "VRAM%")
	case s.table && concise.MatchString(line) && !strings.Contains(s.title, "Hardware"):
		s.device(strings.Fields(line))
	}
}

// property reads "GPU[0] : VBIOS version: 113-X".
func (s *section) property(m []string) {
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return
	}
	g := s.gpu(n)
	if g == nil {
		return
	}
	if strings.Contains(m[2], "RAS INFO") || strings.Contains(m[2], "PAGES INFO") {
		s.ras = n
		return
	}
	if name, value, ok := strings.Cut(m[2], ": "); ok {
		g.set(name, value)
	}
}

// matrix reads a line of a matrix, its heading or a row; false when it is neither.
func (s *section) matrix(line string) bool {
	if matrixTop.MatchString(line) && strings.Contains(s.title, "between two GPUs") {
		s.columns = len(strings.Fields(line))
		return true
	}
	row := matrixRow.FindStringSubmatch(line)
	if row == nil || s.columns == 0 {
		return false
	}
	s.cells(row)
	return true
}

// cells reads a row of a matrix.
func (s *section) cells(row []string) {
	from, err := strconv.Atoi(row[1])
	cells := strings.Fields(row[2])
	s.rows++
	if err != nil || from >= mostGPUs {
		return
	}
	if len(cells) < s.columns {
		s.p.Add(tool.Truncated, s.line, "%s: the row of GPU%d has %d of %d columns", s.title, from, len(cells), s.columns)
	}
	s.gpu(from)
	for to, c := range cells {
		if to != from && to < mostGPUs {
			s.link(from, to).set(s.title, c)
		}
	}
}

func (s *section) matrixEnd() {
	if s.rows < s.columns {
		s.p.Add(tool.Truncated, s.began, "%s: %d of %d rows", s.title, s.rows, s.columns)
	}
}

// errors reads a row of what --showrasinfo and --showretiredpages say of a GPU; false
// when it is none.
func (s *section) errors(line string) bool {
	if s.ras < 0 {
		return false
	}
	if m := pageRow.FindStringSubmatch(line); m != nil {
		s.page(m)
		return true
	}
	m := rasRow.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	s.block(m)
	return true
}

// mostPages is how many pages of a GPU are kept; it is out of order long before.
const mostPages = 4096

// page reads a row of --showretiredpages and its like.
func (s *section) page(m []string) {
	if g := s.gpu(s.ras); g != nil && len(g.Pages) < mostPages {
		g.Pages = append(g.Pages, Page{Address: m[1], Size: m[2], Status: m[3]})
	}
}

// block reads a row of --showrasinfo.
func (s *section) block(m []string) {
	g := s.gpu(s.ras)
	if g == nil || len(g.RAS) > 64 {
		return
	}
	count := func(w string) *int64 {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return nil
		}
		return &n
	}
	g.RAS = append(g.RAS, RAS{Block: m[1], Status: m[2], Correctable: count(m[3]), Uncorrectable: count(m[4])})
}

// hardware reads a row of --showhw: a GPU, or a partition of one, whose columns
// have names of two words.
func (s *section) hardware(cells []string) {
	n, err := strconv.Atoi(cells[0])
	if err != nil {
		return
	}
	if len(cells) < len(s.head) {
		s.p.Add(tool.Truncated, s.line, "the row of GPU %d has %d of %d columns", n, len(cells), len(s.head))
		return
	}
	g := s.gpu(n)
	if g == nil {
		return
	}
	for i, name := range s.head {
		switch name {
		case "BUS":
			g.set("pci bus", cells[i])
		case "VBIOS":
			g.set("vbios version", cells[i])
		case "DID":
			g.set("device id", cells[i])
		case "PARTITION ID":
			g.set("partition id", cells[i])
		}
	}
}

// device reads a row of the concise table by the units of its words, as its
// columns differ from release to release.
func (s *section) device(words []string) {
	n, err := strconv.Atoi(words[0])
	if err != nil {
		return
	}
	g := s.gpu(n)
	if g == nil {
		return
	}
	later := false // behind the clocks the power is the cap
	for _, w := range words[1:] {
		switch w = strings.Trim(w, ",["); {
		case celsius.MatchString(w):
			g.set("temperature", w)
		case watts.MatchString(w) && later:
			g.set("power cap", w)
		case watts.MatchString(w):
			g.set("power", w)
		case clocked.MatchString(w):
			later = true
		case memMode.MatchString(w):
			g.set("memory partition", w)
		case runMode.MatchString(w):
			g.set("compute partition", w)
		case strings.HasPrefix(w, "0x"):
			g.set("device id", w)
		}
	}
	if use := words[len(words)-1]; percent.MatchString(use) {
		g.set("use", use)
	}
	if vram := words[len(words)-2]; s.vram && percent.MatchString(vram) {
		g.set("vram use", vram)
	}
}
