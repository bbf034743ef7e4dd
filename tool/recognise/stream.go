// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/ironrail/ironrail/tool"
)

// Bounds of a log that is read line by line, in bytes.
const (
	wholeSize   = 4*looked + 1 // what is shorter is read whole
	mostKept    = 4 << 20      // of the lines of other outputs that stand in it
	longestLine = 256 << 10    // of which the beginning is read
)

// ReadFrom is Read of an output of any length. A log (see tool.Format.Stream) of more than
// 4 MiB is recognised by its beginning, and then read line by line. One that is found to
// hold more than its own lines, and is no longer than MaxSize, is read again, whole; of a
// longer one, what stands in it of other programs is kept, up to 4 MiB, and read beside
// it. Of other outputs that are longer than MaxSize it returns an error. What is no
// io.Seeker is held up to MaxSize, in case that it is read again.
func ReadFrom(name string, in io.Reader) (Reading, error) {
	return readFrom(name, in, wholeSize, MaxSize)
}

// readFrom is ReadFrom: what is shorter than whole is not read line by line, and what is
// longer than most is not read whole where it can be read so.
func readFrom(name string, in io.Reader, whole, most int) (Reading, error) {
	begin, err := readUpTo(in, whole)
	if err != nil {
		return Reading{}, err
	}
	known := knownFormats()
	if len(begin) < whole {
		return readAs(known, name, begin, origin{})
	}
	l, ok := beginLog(known, begin[:min(looked, whole/2)])
	if !ok {
		rest, err := readUpTo(in, MaxSize+1-len(begin))
		if err != nil {
			return Reading{}, err
		}
		return readAs(known, name, append(begin, rest...), origin{})
	}
	r := newReplay(in, begin, most)
	if err := l.read(io.MultiReader(bytes.NewReader(begin), r)); err != nil {
		return Reading{}, err
	}
	if r.size > most || !l.isMixed(known) {
		return l.end(known, name)
	}
	data, err := r.again()
	if err != nil {
		return Reading{}, err
	}
	return readAs(known, name, data, origin{})
}

// replay reads an input that may have to be read again.
type replay struct {
	in    io.Reader
	begin []byte // which was read before
	from  int64  // where it goes on
	seek  io.Seeker
	kept  [][]byte // what was read, of what is no Seeker, as long as size is at most most
	size  int      // of the beginning and what was read since
	most  int
}

func newReplay(in io.Reader, begin []byte, most int) *replay {
	r := &replay{in: in, begin: begin, size: len(begin), most: most}
	if s, ok := in.(io.Seeker); ok {
		if from, err := s.Seek(0, io.SeekCurrent); err == nil { // a pipe has the method, and refuses
			r.seek, r.from = s, from
		}
	}
	return r
}

// Read reads on.
func (r *replay) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.size += n
	switch {
	case r.size > r.most:
		r.kept = nil
	case r.seek == nil:
		r.kept = append(r.kept, bytes.Clone(p[:n]))
	}
	return n, err
}

// again returns all that was read.
func (r *replay) again() ([]byte, error) {
	if r.seek == nil {
		return slices.Concat(append([][]byte{r.begin}, r.kept...)...), nil
	}
	if _, err := r.seek.Seek(r.from, io.SeekStart); err != nil {
		return nil, err
	}
	rest, err := readUpTo(r.in, r.size-len(r.begin))
	return append(r.begin, rest...), err
}

// readUpTo reads so many bytes, or what there is.
func readUpTo(in io.Reader, most int) ([]byte, error) {
	return io.ReadAll(io.LimitReader(in, int64(most)))
}

// origin is where the lines of a text stand in its file, of which it is a part. The zero
// value is that of a file.
type origin struct {
	lines  []int           // by index, the number of a line in the file; nil: the same
	placed map[string]bool // the kinds whose problems name lines of the file already
}

// lineOf returns the number in the file of a line from 1 on.
func (o origin) lineOf(line int) int {
	if o.lines == nil || line < 1 {
		return line
	}
	return o.lines[min(line, len(o.lines))-1]
}

// place gives the problems of an output, which begins at a line of the text, the lines of
// the file.
func (o origin) place(kind string, problems tool.Problems, from int) {
	for i, p := range problems {
		if p.Line > 0 && !o.placed[kind] {
			problems[i].Line = o.lineOf(p.Line + from - 1)
		}
	}
}

// log reads a log line by line. It keeps the beginning, by which the log is recognised,
// and the lines that are not the log's, which are the text of other outputs.
type log struct {
	format tool.Format
	lines  tool.Stream
	rows   tool.Stream // of the tests within whose output a log of NCCL may stand; its Line is nil where none may
	layers []layer
	labels []string
	own    []head // of its kind
	heads  []head // of other kinds

	kept   bytes.Buffer
	at     []int // by line of kept, its number in the file
	begin  int   // bytes of the beginning that are still to be kept
	line   int
	other  bool              // the line above is of another output
	recent [mostAbove][]byte // the last lines that were not kept, by number
	above  int               // how many of them there are
	lost   int               // the first line of another output that was not kept; 0: none
	cut    int               // the first line of which only the beginning was read; 0: none

	mixed                 bool   // something was met that is read otherwise in the whole text
	filled, bare, foreign int    // lines that are not blank, and of these, those without a label and those that are not surely the log's
	tail                  []byte // the end of what was read, at least look bytes of it
	look                  int
}

// mostAbove is how many lines may stand above the head of an output: see linesAbove.
const mostAbove = 4

// beginLog recognises a log by its beginning; false where it is of no format that can be
// read line by line, or where more than labels stand around its lines.
func beginLog(known []tool.Format, begin []byte) (*log, bool) {
	begin = begin[:bytes.LastIndexByte(begin, '\n')+1]
	if len(begin) == 0 || checkReadable(begin) != nil || utf16Marked(begin) || isQuoted(begin) {
		return nil, false
	}
	c, err := chooseClaim(known, listVariants(begin))
	if err != nil || c.Stream == nil || c.text.wrapped {
		return nil, false
	}
	l := &log{format: c.Format, layers: c.text.layers, begin: len(begin), look: len(begin)}
	ok := false
	if l.lines, ok = c.Stream(c.text.data); !ok {
		return nil, false
	}
	if c.Name == "nccl-log" {
		at := slices.IndexFunc(known, func(f tool.Format) bool { return f.Name == "nccl-tests" })
		l.rows, _ = known[at].Stream(nil)
	}
	for _, h := range heads {
		switch {
		case h.kind == c.Name, tests[c.Name] && h.kind == "nccl-tests":
			l.own = append(l.own, h)
		case !tests[c.Name] || h.kind != "nccl-log":
			l.heads = append(l.heads, h)
		}
	}
	return l, true
}

// isQuoted reports whether a text stands in a quotation or between Markdown's fences.
func isQuoted(text []byte) bool {
	plain := stripColours(text)
	_, fenced := cutFence(plain)
	return fenced || !bytes.Equal(stripQuotes(plain), plain)
}

// read reads all lines.
func (l *log) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, longestLine)
	for {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // a longer line: its beginning is read
			if l.mixed = true; l.cut == 0 {
				l.cut = l.line + 1
			}
			line = bytes.Clone(line)
			_, err = lines.ReadSlice('\n')
		}
		if len(line) > 0 {
			l.add(bytes.TrimSuffix(line, []byte("\n")))
		}
		if errors.Is(err, io.EOF) {
			l.keepTail()
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// add takes a line of the file.
func (l *log) add(line []byte) {
	l.line++
	if l.line == 1 || bytes.IndexByte(line, 0x1b) >= 0 || bytes.IndexByte(line, '\r') >= 0 {
		line = stripColours(line)
	}
	whole := line
	line = l.strip(whole)
	own := l.take(line)
	ended := l.other && own && headOf(l.own, line) != nil
	l.other = !ended && (l.other || !own && headOf(l.heads, line) != nil)
	l.mixed = l.mixed || l.other
	l.noteTail(whole)
	switch {
	case l.begin > 0:
		l.begin -= len(whole) + 1
		l.keep(l.line, whole)
	case l.other:
		l.keepAbove(l.line)
		l.keep(l.line, whole)
	case ended: // it is kept as what divides two outputs
		l.keep(l.line, whole)
	default:
		l.recent[l.line%mostAbove] = append(l.recent[l.line%mostAbove][:0], whole...)
		l.above = min(l.above+1, mostAbove)
	}
}

// take gives a line to the format, and reports whether it is surely one of its own.
func (l *log) take(line []byte) (own bool) {
	text := string(line)
	own = l.lines.Line(text)
	if l.rows.Line != nil {
		l.rows.Line(text)
	}
	if !own && len(bytes.TrimSpace(line)) > 0 {
		l.foreign++
	}
	return own
}

// keepAbove keeps the last lines above one, which may belong to it.
func (l *log) keepAbove(line int) {
	for n := l.above; n > 0; n-- {
		l.keep(line-n, l.recent[(line-n)%mostAbove])
	}
	l.above = 0
}

// keep keeps a line of the file, as long as there is room.
func (l *log) keep(number int, line []byte) {
	if l.kept.Len()+len(line)+8*len(l.at) > mostKept {
		if l.lost == 0 {
			l.lost = number
		}
		return
	}
	l.kept.Write(line)
	l.kept.WriteByte('\n')
	l.at = append(l.at, number)
}

// noteTail holds the last lines.
func (l *log) noteTail(line []byte) {
	l.tail = append(append(l.tail, line...), '\n')
	if len(l.tail) > 2*l.look+longestLine {
		rest := l.tail[len(l.tail)-l.look:]
		l.tail = append(l.tail[:0], rest[bytes.IndexByte(rest, '\n')+1:]...)
	}
}

// keepTail keeps the end of the log, by which it is recognised as by its beginning.
func (l *log) keepTail() {
	last, lost := 0, l.lost
	if len(l.at) > 0 {
		last = l.at[len(l.at)-1]
	}
	number := l.line - bytes.Count(l.tail, []byte("\n"))
	for line := range bytes.Lines(l.tail) {
		if number++; number > last {
			l.keep(number, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	l.lost = lost // it was read
}

// strip takes labels and indentation off a line, and notes whether these, and fences, are
// as in the beginning.
func (l *log) strip(whole []byte) []byte {
	if len(bytes.TrimSpace(whole)) == 0 {
		return whole
	}
	l.filled++
	if begin := bytes.TrimLeft(whole, " \t"); bytes.HasPrefix(begin, []byte("```")) || bytes.HasPrefix(begin, []byte("~~~")) {
		l.mixed = true
	}
	line, bare := whole, false
	for _, layer := range l.layers {
		if layer.label != nil {
			l.note(layer.label, line)
		}
		rest := layer.off(line)
		switch {
		case len(rest) < len(line):
		case layer.label == nil:
			l.mixed = l.mixed || len(layer.indent) > 0
		default:
			bare = bare || !layer.label.sure
		}
		line = rest
	}
	if bare {
		l.bare++
	}
	if !l.mixed && (bytes.Contains(line, []byte("]<std")) || bytes.HasPrefix(line, []byte("[pod/"))) {
		l.mixed = slices.ContainsFunc(launchers, func(of label) bool { return of.sure && of.pattern.Match(line) })
	}
	return line
}

// isMixed reports whether the whole text would not be read as its lines were: it has
// other outputs, or lines of several nodes, too few lines with the labels of its
// beginning, a line that was cut, or an end that is of another format.
func (l *log) isMixed(known []tool.Format) bool {
	if l.mixed || l.bare*5 >= l.filled || l.foreign*5 >= l.filled*4 || !l.format.Merged && len(l.labels) > 1 {
		return true
	}
	c, err := chooseClaim(known, listVariants(l.kept.Bytes()))
	return err != nil || c.Name != l.format.Name || c.text.wrapped || !slices.EqualFunc(c.text.layers, l.layers, func(a, b layer) bool {
		return a.label == b.label && bytes.Equal(a.indent, b.indent)
	})
}

// note notes the label of a line, if it is one of a node or rank. Two are enough.
func (l *log) note(of *label, line []byte) {
	if m := of.pattern.FindSubmatchIndex(line); len(m) >= 4 && len(l.labels) < 2 && !slices.Contains(l.labels, string(line[m[2]:m[3]])) {
		l.labels = append(l.labels, string(line[m[2]:m[3]]))
	}
}

// end returns the reading of what was kept, with all of the log in the place of its part.
func (l *log) end(known []tool.Format, name string) (Reading, error) {
	if err := checkSeparate(claim{Format: l.format, text: variant{labels: l.labels}}); err != nil {
		return Reading{}, err
	}
	content, problems, err := l.lines.End()
	if err != nil {
		return Reading{}, err
	}
	if l.lost > 0 {
		problems.Add(tool.Truncated, l.lost, "more than %d MiB of other lines stand within it: those from here on were not kept", mostKept>>20)
	}
	if l.cut > 0 {
		problems.Add(tool.Truncated, l.cut, "it is longer than %d KiB: of such lines the beginning was read", longestLine>>10)
	}
	known = slices.Clone(known)
	o := origin{lines: l.at, placed: map[string]bool{}}
	put := func(name string, content any, problems tool.Problems) {
		o.placed[name] = true
		at := slices.IndexFunc(known, func(f tool.Format) bool { return f.Name == name })
		known[at].Parse = func([]byte) (any, tool.Problems, error) { return content, problems, nil }
	}
	put(l.format.Name, content, problems)
	if l.rows.Line != nil {
		if content, problems, err := l.rows.End(); err == nil {
			put("nccl-tests", content, problems)
			put("rccl-tests", content, problems)
		}
	}
	return readAs(known, name, l.kept.Bytes(), o)
}
