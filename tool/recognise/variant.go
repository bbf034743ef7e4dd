// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"bytes"
	"slices"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// variant is an output without what others put around it. Its lines are those of
// the file, one for one, so that a line number is right in each.
type variant struct {
	data    []byte
	labels  []string // that were taken off its lines, each once, in the order of the file
	layers  []layer  // what was taken off each line, where it is not wrapped
	wrapped bool     // more than labels and blanks was taken off
}

// layer is what was taken off the lines of a text that have it: blanks, or a label.
type layer struct {
	indent []byte
	label  *label // nil: the blanks
}

// off takes it off one line.
func (l layer) off(line []byte) []byte {
	if l.label == nil {
		return bytes.TrimPrefix(line, l.indent)
	}
	if m := l.label.pattern.FindIndex(line); m != nil {
		return line[m[1]:]
	}
	return line
}

// listVariants returns a text as it is, then without the labels of launchers and
// common indentation, then, where it has Markdown fences, what stands in these
// alone. A byte order mark, colours, carriage returns and the marks of a
// quotation are off in each.
func listVariants(data []byte) []variant {
	plain := variant{data: stripQuotes(stripColours(data))}
	all := []variant{plain}
	if v := stripVariant(plain.data); !bytes.Equal(v.data, plain.data) {
		all = append(all, v)
	}
	if d, ok := cutFence(plain.data); ok {
		all = append(all, stripVariant(d))
	}
	return all
}

// mostLayers is how many launchers may stand one around another: srun within a
// pod whose log has times.
const mostLayers = 3

// stripVariant takes off indentation and the labels of launchers, layer by layer. Only
// one layer can be that of nodes or ranks.
func stripVariant(data []byte) variant {
	v := variant{data: stripIndent(data), layers: []layer{{indent: indentOf(data)}}}
	for range mostLayers {
		next, ok := stripLabels(v.data)
		if !ok {
			break
		}
		v.data = stripIndent(next.data)
		v.layers = append(append(v.layers, next.layers...), layer{indent: indentOf(next.data)})
		if len(next.labels) > len(v.labels) {
			v.labels = next.labels
		}
	}
	return v
}

// quoted is the mark before a line of a quotation in mail and in Markdown.
var quoted = lazyregexp.New(`^ {0,3}(?:> ?)+`)

// stripQuotes takes the marks of a quotation off, where every line that is not
// blank has one. A prompt of a shell is on single lines only.
func stripQuotes(data []byte) []byte {
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) > 0 && !quoted.Match(line) {
			return data
		}
	}
	return eachLine(data, func(line []byte) []byte { return line[len(quoted.Find(line)):] })
}

// colour is an escape sequence of a terminal: CSI and OSC of ECMA-48.
var colour = lazyregexp.New("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[@-Z\\\\^_])")

// stripColours takes off a byte order mark, colours, and carriage returns: of a
// line that was written over, what a terminal shows last remains.
func stripColours(data []byte) []byte {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(data, 0x1b) >= 0 {
		data = colour.ReplaceAll(data, nil)
	}
	if bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	return eachLine(data, func(line []byte) []byte {
		line = bytes.TrimRight(line, "\r")
		return line[bytes.LastIndexByte(line, '\r')+1:]
	})
}

// eachLine changes every line, without its end.
func eachLine(data []byte, change func([]byte) []byte) []byte {
	lines := bytes.Split(data, []byte("\n"))
	for i, line := range lines {
		lines[i] = change(line)
	}
	return bytes.Join(lines, []byte("\n"))
}

// label is a way in which launchers mark the lines of each rank or node.
type label struct {
	pattern *lazyregexp.Regexp // group 1, where there is one, is the label as it is shown
	sure    bool               // nothing else looks like it, so it is taken off wherever it stands
}

var launchers = []label{
	// mpirun --tag-output of Open MPI 4, and of PRRTE in Open MPI 5.
	{lazyregexp.New(`^(\[(?:[\w.-]+@)?\d+,\d+\]<std(?:out|err|diag)>):? ?`), true},
	// kubectl logs --prefix.
	{lazyregexp.New(`^(\[pod/[^\]\s]+\]) ?`), true},
	// kubectl logs --timestamps, docker logs -t, and what CI puts before lines. A
	// time names no node.
	{lazyregexp.New(`^\[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)\]?(?: |$)`), false},
	// docker compose logs.
	{lazyregexp.New(`^([A-Za-z0-9][\w.-]*) +\| ?`), false},
	// mpiexec -prepend-rank of MPICH's Hydra.
	{lazyregexp.New(`^(\[\d+\]) `), false},
	// srun --label.
	{lazyregexp.New(`^ *(\d+:)(?: |$)`), false},
	// pdsh, clush, dsh.
	{lazyregexp.New(`^([A-Za-z0-9][A-Za-z0-9._-]*:)(?: |$)`), false},
}

// stripLabels takes the labels of a launcher off; false when there are none.
func stripLabels(data []byte) (variant, bool) {
	for i, l := range launchers {
		if v, ok := l.off(data); ok {
			v.layers = []layer{{label: &launchers[i]}}
			return v, true
		}
	}
	return variant{data: data}, false
}

// off takes one kind of label off. One that other text may look like must stand
// on four lines of five, and each of several labels on three lines on average.
func (l label) off(data []byte) (variant, bool) {
	if !l.worth(data) {
		return variant{}, false
	}
	var v variant
	seen, lines, marked := map[string]bool{}, 0, 0
	v.data = eachLine(data, func(line []byte) []byte {
		if len(bytes.TrimSpace(line)) == 0 {
			return line
		}
		lines++
		m := l.pattern.FindSubmatchIndex(line)
		if m == nil {
			return line
		}
		marked++
		if len(m) < 4 {
			return line[m[1]:]
		}
		if name := string(line[m[2]:m[3]]); !seen[name] {
			seen[name] = true
			v.labels = append(v.labels, name)
		}
		return line[m[1]:]
	})
	if marked == 0 || !l.sure && (marked*5 < lines*4 || len(v.labels) > 1 && marked < 3*len(v.labels)) {
		return variant{}, false
	}
	return v, true
}

// worth reports whether the label may stand on enough lines: not where a fifth of all
// lines that a text can have lack it.
func (l label) worth(data []byte) bool {
	lines, unmarked := bytes.Count(data, []byte("\n"))+1, 0
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		switch {
		case len(bytes.TrimSpace(line)) == 0:
		case l.pattern.FindIndex(line) == nil:
			unmarked++
		case l.sure:
			return true
		}
		if !l.sure && unmarked*5 > lines {
			return false
		}
	}
	return !l.sure
}

// stripIndent takes off the blanks that every line that is not blank begins with.
func stripIndent(data []byte) []byte {
	common := indentOf(data)
	if len(common) == 0 {
		return data
	}
	return eachLine(data, func(line []byte) []byte { return bytes.TrimPrefix(line, common) })
}

// indentOf returns these blanks.
func indentOf(data []byte) []byte {
	var common []byte
	first := true
	for line := range bytes.Lines(data) {
		text := bytes.TrimLeft(line, " \t")
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		indent := line[:len(line)-len(text)]
		if first {
			common, first = indent, false
		}
		for !bytes.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
		if len(common) == 0 {
			return nil
		}
	}
	return common
}

// cutFence leaves what stands between the fences of Markdown, each block without
// its indentation, and blank lines elsewhere; false when there is no fence.
func cutFence(data []byte) ([]byte, bool) {
	lines := bytes.Split(data, []byte("\n"))
	out := make([][]byte, len(lines))
	inside, found, start := false, false, 0
	closeAt := func(end int) {
		block := stripIndent(bytes.Join(lines[start:end], []byte("\n")))
		copy(out[start:end], bytes.Split(block, []byte("\n")))
	}
	for i, line := range lines {
		if text := bytes.TrimLeft(line, " \t"); !bytes.HasPrefix(text, []byte("```")) && !bytes.HasPrefix(text, []byte("~~~")) {
			continue
		}
		if inside && i > start {
			closeAt(i)
		}
		inside, found, start = !inside, true, i+1
	}
	if inside && start < len(lines) {
		closeAt(len(lines))
	}
	return bytes.Join(out, []byte("\n")), found && slices.ContainsFunc(out, func(l []byte) bool { return len(l) > 0 })
}
