// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// weak is how sure a format is at most of which the marks may stand in any log:
// times before lines, or lines of NCCL. Then what stands before the lines is taken
// off, and where some format is surer of the rest, it is that.
const weak = 50

// claimsWithin returns the formats of a text without what a log puts before its lines,
// where one is surer of it than those are that are given. Of a large text, a look
// says whether it is worth the work.
func claimsWithin(known []tool.Format, v variant, best []claim) []claim {
	sure := 0
	if len(best) > 0 {
		sure = best[0].sure
		if best[0].Name == "nccl-log" && !bytes.Contains(v.data, []byte("busbw")) {
			return best // a log of NCCL alone, which may be large, and which bears any label
		}
	}
	more := mostLike(known, unwrapVariants(variant{data: sampleText(v.data)}))
	if len(more) == 0 || more[0].sure <= sure {
		return best
	}
	if len(v.data) > 4*looked {
		more = mostLike(known, unwrapVariants(v))
	}
	for i := range more {
		more[i].text.wrapped = true
	}
	return more
}

// wrappers are what logs put before every line, beside the labels of launchers.
// Other texts may look like some of them, so they are looked for only where no
// format is sure of the text with them.
var wrappers = []label{
	// CRI, in the files of a node's /var/log/pods, behind the time.
	{lazyregexp.New(`^(?:stdout|stderr) [FP](?: |$)`), false},
	// times of any log: with a date, of the day only, of syslog.
	{lazyregexp.New(`^[\[(]?\d{4}[-/]\d\d[-/]\d\d[T_ ]\d\d:\d\d:\d\d(?:[.,:]\d{1,9})?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?[\])]?:?(?:[ \t]|$)`), false},
	{lazyregexp.New(`^[\[(]?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?[\])]?:?(?:[ \t]|$)`), false},
	{lazyregexp.New(`^(?:\pL{2,5}\.?|\d{1,2}月) [ \d]\d \d\d:\d\d:\d\d `), false},
	// syslog and journalctl, behind the time.
	{lazyregexp.New(`^([A-Za-z0-9][\w.-]*) [\w./@-]+\[\d+\]:(?: |$)`), false},
	// levels of logging libraries, with what divides them from the rest.
	{lazyregexp.New(`^(?:[-|:] ?)?[\[(]?(?:INFO|DEBUG|NOTICE|WARN|WARNING|ERROR|info|debug|stdout|stderr)[\])]?:? *(?:[-|:](?: |$)|$| )`), false},
	{lazyregexp.New(`^[|:-](?: |$)`), false},
	// Ray, and programs that name the node in brackets.
	{lazyregexp.New(`^\(([A-Za-z]\w*(?:\([^)]*\))? pid=\d+(?:, ip=[\d.]+)?)\)(?: |$)`), false},
	{lazyregexp.New(`^\[([A-Za-z][\w.-]*)\](?: |$)`), false},
	// stern: pod and container.
	{lazyregexp.New(`^([a-z0-9][a-z0-9.]*-[a-z0-9.-]* [a-z][a-z0-9-]*)(?: |$)`), false},
	// numbers of lines, of grep -n, cat -n and nl.
	{lazyregexp.New(`^\d+[:-]`), false},
	{lazyregexp.New(`^ *\d+(?:\t|  |$)`), false},
}

// mostWraps is how many of them may stand one behind another.
const mostWraps = 5

// unwrapVariants returns a text without what a log puts before its lines, layer by
// layer, and without a beginning that most lines have in common.
func unwrapVariants(v variant) []variant {
	first, inner := stripPrefixes(v), []variant(nil)
	for range mostWraps {
		next, ok := peelVariant(v)
		if !ok {
			break
		}
		if len(next.labels) < len(v.labels) {
			next.labels = v.labels
		}
		next.data = stripIndent(next.data)
		v = next
		inner = append(inner, v)
	}
	if len(inner) == 0 {
		return first
	}
	return slices.Concat(first, stripPrefixes(v), inner)
}

// peelVariant takes one layer off; false when there is none.
func peelVariant(v variant) (variant, bool) {
	if data, ok := extractMessages(v.data); ok {
		return variant{data: data}, true
	}
	if next, ok := stripLabels(v.data); ok {
		return next, true
	}
	for _, w := range wrappers {
		if next, ok := w.off(v.data); ok {
			return next, true
		}
	}
	return variant{}, false
}

// extractMessages takes the lines of a program out of a log that has each as JSON, as
// Docker's json-file and journalctl -o json write them.
func extractMessages(data []byte) ([]byte, bool) {
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, false
	}
	lines, found := 0, 0
	out := eachLine(data, func(line []byte) []byte {
		if len(bytes.TrimSpace(line)) == 0 {
			return line
		}
		lines++
		var m struct {
			Log     *string `json:"log"`
			Message *string `json:"MESSAGE"`
		}
		if json.Unmarshal(line, &m) != nil || m.Log == nil && m.Message == nil {
			return line
		}
		found++
		text := m.Message
		if m.Log != nil {
			text = m.Log
		}
		return []byte(strings.ReplaceAll(strings.TrimRight(*text, "\r\n"), "\n", " "))
	})
	return out, found > 0 && found*5 >= lines*4
}

// fewest is how many lines must have a beginning in common.
const fewest = 4

// stripPrefixes returns a text without the beginning that nine lines of ten have in
// common, such as a name and a colon, or the mark of a comment: of several places
// at which it may end, with the shortest last.
func stripPrefixes(v variant) (all []variant) {
	lines := bytes.Split(v.data, []byte("\n"))
	lines = slices.DeleteFunc(lines, func(l []byte) bool { return len(bytes.TrimSpace(l)) == 0 })
	if len(lines) < fewest {
		return nil
	}
	slices.SortFunc(lines, bytes.Compare)
	prefix := commonPrefix(lines[len(lines)/20], lines[len(lines)-1-len(lines)/20])
	for _, end := range prefixEnds(prefix) {
		mark := bytes.TrimRight(prefix[:end], " \t")
		data := eachLine(v.data, func(line []byte) []byte {
			if rest, ok := bytes.CutPrefix(line, mark); ok {
				return bytes.TrimPrefix(rest, []byte(" "))
			}
			return line
		})
		all = append(all, variant{data: stripIndent(data), labels: v.labels})
	}
	return all
}

// commonPrefix returns the beginning that two lines have in common, no longer than any label.
func commonPrefix(a, b []byte) []byte {
	n := 0
	for n < min(len(a), len(b), 200) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

// mostEnds is how many places are tried.
const mostEnds = 6

// prefixEnds returns where a common beginning may end, from its end on: behind itself,
// and behind every word of it.
func prefixEnds(prefix []byte) (at []int) {
	for i := len(prefix); i > 0 && len(at) < mostEnds; i-- {
		inside := i < len(prefix) && prefix[i-1] != ' ' && prefix[i-1] != ':' && prefix[i-1] != '\t'
		if len(bytes.TrimSpace(prefix[:i])) > 0 && !inside {
			at = append(at, i)
		}
	}
	return at
}
