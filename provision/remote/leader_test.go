// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"fmt"
	"strings"
	"testing"
)

func TestLeader(t *testing.T) {
	t.Parallel()
	const mark = "ironrail-0123"
	long := strings.Repeat("x", maxPreface+1)
	tests := []struct {
		name   string
		writes []string
		out    string
		pid    int
	}{
		{"whole", []string{mark + " 42\nout\n"}, "out\n", 42},
		{"in pieces", []string{"ironr", "ail-0123", " 4", "2\no", "ut"}, "out", 42},
		{"after a preface", []string{"welcome\n", mark + " 7\nout"}, "out", 7},
		{"no mark", []string{"sh: not found\n"}, "sh: not found\n", 0},
		{"mark without end", []string{mark + " 42"}, mark + " 42", 0},
		{"no number", []string{mark + " x\nout"}, "out", 0},
		{"the group of init", []string{mark + " 1\nout"}, "out", 0},
		{"too long a preface", []string{long, mark + " 42\n"}, long + mark + " 42\n", 0},
		{"mark again", []string{mark + " 42\n" + mark + " 43\n"}, mark + " 43\n", 42},
		{"nothing", nil, "", 0},
	}
	for _, tt := range tests {
		out := &ends{most: 1 << 20}
		l := newLeader(mark, out)
		for _, w := range tt.writes {
			if n, err := l.Write([]byte(w)); n != len(w) || err != nil {
				t.Errorf("%s: Write = %d, %v", tt.name, n, err)
			}
		}
		l.finish()
		if string(out.bytes()) != tt.out || l.pid != tt.pid {
			t.Errorf("%s: out %.40q pid %d, want %.40q pid %d", tt.name, out.bytes(), l.pid, tt.out, tt.pid)
		}
	}
}

// Pieces of all sizes that a stream is read by come out whole and in order.
func TestLeaderReads(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 1, firstRead - 1, firstRead, firstRead + 1, readSize, 3*readSize + 1} {
		var all strings.Builder
		for i := 0; all.Len() < length; i++ {
			fmt.Fprintf(&all, "%d ", i)
		}
		out := &ends{most: 1 << 20}
		l := newLeader("ironrail-0123", out)
		in := "ironrail-0123 42\n" + all.String()
		if n, err := l.ReadFrom(strings.NewReader(in)); n != int64(len(in)) || err != nil {
			t.Errorf("%d bytes: ReadFrom = %d, %v", length, n, err)
		}
		if l.finish(); string(out.bytes()) != all.String() || l.pid != 42 {
			t.Errorf("%d bytes: %d came out, pid %d", length, len(out.bytes()), l.pid)
		}
	}
}

func FuzzLeader(f *testing.F) {
	f.Add([]byte("hello\nironrail-0123 42\nout"), 3)
	f.Add([]byte("ironrail-0123 -1\n"), 1)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		out := &ends{most: 1 << 20}
		l := newLeader("ironrail-0123", out)
		for rest := b; len(rest) > 0; {
			n := min(max(step, 1), len(rest))
			_, _ = l.Write(rest[:n])
			rest = rest[n:]
		}
		l.finish()
		if !strings.HasSuffix(string(b), string(out.bytes())) {
			t.Errorf("%q came out of %q", out.bytes(), b)
		}
		if l.pid == 1 || l.pid < 0 {
			t.Errorf("process group %d", l.pid)
		}
	})
}

func FuzzQuote(f *testing.F) {
	f.Add("it's", "$x")
	f.Fuzz(func(t *testing.T, a, b string) {
		line, err := quoteArgs([]string{"x", a, b})
		if strings.ContainsRune(a+b, 0) != (err != nil) {
			t.Fatalf("err = %v", err)
		}
		if err == nil && strings.Join(unquote(line), "\x00") != "x\x00"+a+"\x00"+b {
			t.Errorf("%q %q became %q", a, b, line)
		}
	})
}

// unquote reads a line as a POSIX shell does, for quoted words only.
func unquote(line string) []string {
	var words []string
	var word strings.Builder
	inside := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			inside = !inside
		case !inside && c == '\\':
			i++
			word.WriteByte(line[i])
		case !inside && c == ' ':
			words = append(words, word.String())
			word.Reset()
		default:
			word.WriteByte(c)
		}
	}
	return append(words, word.String())
}
