// SPDX-License-Identifier: Apache-2.0

// Package ibdiags is what the parsers of the programs of infiniband-diags share:
// how these programs say that they failed, and how a line of theirs is read from
// left to right. Its functions are pure.
package ibdiags

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/tool"
)

// failures are words of lines that these programs and their libraries write when
// something failed. Source: rdma-core, infiniband-diags/ibdiag_common.c,
// libibnetdisc/ibnetdisc.c and query_smp.c, libibmad/mad.c, ibdiag_sa.c.
var failures = []string{
	"ibpanic: [", "iberror: ", "discover failed", "Query SA failed", "SA_ERR_", "bad status ", "can't open UMAD port", "can't open MAD port",
	"perfquery failed", "Failed to bind to the SA",
}

// IsFailure reports whether a line says that something failed.
func IsFailure(line string) bool {
	for _, f := range failures {
		if strings.Contains(line, f) {
			return true
		}
	}
	return false
}

// IsWarning reports whether a line is one of the libraries' warnings, which stand
// among the output where both go to the same file.
func IsWarning(line string) bool {
	return strings.HasPrefix(line, "ibwarn: [") || strings.HasPrefix(line, "ibdebug: [")
}

// differs is a line of a port or a node with the mark of --diff. A prompt may look
// like one.
var differs = lazyregexp.New(`^[<>] +(?:.*==\(|\[\d+\]|(?:Switch|Ca|Rt)\t|[a-z]+(?:id|guid)=0x|numports = )`)

// IsDifference reports whether a line is one of --diff, which compares a subnet with
// what it was at another time: each line that only one of both has is marked.
func IsDifference(line string) bool {
	return (strings.HasPrefix(line, "< ") || strings.HasPrefix(line, "> ")) && differs.MatchString(line)
}

// FailureOf reports how sure it is that an output is nothing but the failure of a
// program: the program's name stands before its own words, as in
// "/usr/sbin/ibnetdiscover: iberror: failed: discover failed".
func FailureOf(program string, data []byte) int {
	const head = 4 << 10
	text := string(data[:min(len(data), head)])
	for line := range strings.SplitSeq(text, "\n") {
		before, _, found := strings.Cut(line, ": iberror: ")
		if found && before[strings.LastIndexByte(before, '/')+1:] == program {
			return 95
		}
	}
	return 0
}

// Few notes problems of one sort and counts those past a limit, so that a damaged
// output of a large fabric has no report that is longer than itself.
type Few struct {
	Limit int // of problems that are written out

	seen map[string]int
	over []more // sorts past the limit, in the order in which they were met
}

// more is a sort of problem past the limit.
type more struct {
	sort string
	kind tool.ProblemKind
}

// Add notes a problem of a sort, unless there were enough of it.
func (f *Few) Add(to *tool.Problems, sort string, kind tool.ProblemKind, line int, format string, args ...any) {
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	if f.seen[sort]++; f.seen[sort] <= f.Limit {
		to.Add(kind, line, format, args...)
	} else if f.seen[sort] == f.Limit+1 {
		f.over = append(f.over, more{sort, kind})
	}
}

// Rest says how many more there were of each sort.
func (f *Few) Rest(to *tool.Problems) {
	for _, m := range f.over {
		to.Add(m.kind, 0, "There are %d more %s.", f.seen[m.sort]-f.Limit, m.sort)
	}
}

// Scanner reads a line from left to right. Every method skips blanks first, and
// moves only when it finds what it looks for.
type Scanner struct{ rest string }

// Scan starts to read a line.
func Scan(line string) *Scanner { return &Scanner{line} }

// Rest returns what was not read yet, without blanks around it.
func (s *Scanner) Rest() string { return strings.TrimSpace(s.rest) }

// Take skips a text and reports whether it is there.
func (s *Scanner) Take(text string) bool {
	rest, found := strings.CutPrefix(strings.TrimLeft(s.rest, " \t"), text)
	if found {
		s.rest = rest
	}
	return found
}

// Word reads up to the next blank.
func (s *Scanner) Word() string {
	rest := strings.TrimLeft(s.rest, " \t")
	end := strings.IndexAny(rest, " \t")
	if end < 0 {
		end = len(rest)
	}
	s.rest = rest[end:]
	return rest[:end]
}

// Int reads a decimal number that is not negative.
func (s *Scanner) Int() (int, bool) {
	rest := strings.TrimLeft(s.rest, " \t")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(rest[:end], 10, 32)
	if err != nil {
		return 0, false
	}
	s.rest = rest[end:]
	return int(n), true
}

// Between reads what stands between two texts, such as brackets.
func (s *Scanner) Between(open, closing string) (string, bool) {
	rest, found := strings.CutPrefix(strings.TrimLeft(s.rest, " \t"), open)
	if !found {
		return "", false
	}
	inner, after, found := strings.Cut(rest, closing)
	if !found {
		return "", false
	}
	s.rest = after
	return inner, true
}

// ParseGUID reads a GUID with or without 0x, of up to sixteen digits: these
// programs leave out leading zeros in some places.
func ParseGUID(s string) (addr.GUID, error) {
	digits := strings.TrimPrefix(strings.TrimSpace(s), "0x")
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a GUID such as 0x506b4b03005c2740", s)
	}
	return addr.GUID(n), nil
}

// CutQuoted cuts a text at its first and its last double quote: descriptions of
// nodes are free text, and may hold quotes themselves.
func CutQuoted(s string) (before, name, after string, ok bool) {
	first, last := strings.IndexByte(s, '"'), strings.LastIndexByte(s, '"')
	if first < 0 || last == first {
		return "", "", "", false
	}
	return s[:first], s[first+1 : last], s[last+1:], true
}
