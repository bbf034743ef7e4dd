// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

func runCat(ctx context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	if len(names) == 0 {
		names = []string{"-"}
	}
	status := 0
	for _, name := range names {
		b, err := []byte(nil), error(nil)
		if name == "-" {
			b, err = c.all(ctx)
		} else {
			b, err = c.n.tree.ReadFile(c.path(name))
		}
		if err != nil {
			status = c.fail(name + ": " + describeErrno(err))
			continue
		}
		_, _ = c.Out.Write(b)
	}
	return status
}

// runLines runs head and tail.
func runLines(ctx context.Context, c call) int {
	options, names := splitOperands(c.Argv, "nc")
	n, err := 10, error(nil)
	if v, ok := options['n']; ok {
		if n, err = strconv.Atoi(strings.TrimPrefix(v, "-")); err != nil {
			return c.fail("invalid number of lines: '" + v + "'")
		}
	}
	var b []byte
	if len(names) > 0 {
		b, err = c.n.tree.ReadFile(c.path(names[0]))
	} else {
		b, err = c.all(ctx)
	}
	if err != nil {
		return c.fail("cannot open '" + strings.Join(names, "") + "' for reading: " + describeErrno(err))
	}
	all := strings.SplitAfter(string(b), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	if c.name() == "tail" {
		all = all[max(0, len(all)-n):]
	} else {
		all = all[:min(n, len(all))]
	}
	c.print(strings.Join(all, ""))
	return 0
}

// runGrep knows fixed strings and the pattern ".", with -q -x -F -H -s -v -c -i -n.
func runGrep(ctx context.Context, c call) int {
	o, names := splitOperands(c.Argv, "e")
	pattern, given := o['e']
	if !given {
		if len(names) == 0 {
			c.fail("no pattern")
			return 2
		}
		pattern, names = names[0], names[1:]
	}
	s := search{call: c, options: o, pattern: pattern, named: hasOption(o, 'H') || len(names) > 1}
	if len(names) == 0 {
		b, err := c.all(ctx)
		if err != nil {
			return 2
		}
		s.grep("(standard input)", b)
	}
	bad := false
	for _, name := range names {
		b, err := c.n.tree.ReadFile(c.path(name))
		if err != nil {
			if bad = true; !hasOption(o, 's') {
				c.fail(name + ": " + describeErrno(err))
			}
			continue
		}
		s.grep(name, b)
	}
	if hasOption(o, 'c') {
		c.print(itoa(s.found) + "\n")
	}
	switch {
	case s.found > 0 && (!bad || hasOption(o, 'q')):
		return 0
	case bad:
		return 2
	}
	return 1
}

// search is one run of grep.
type search struct {
	call
	options map[byte]string
	pattern string
	named   bool // each line is printed with the name of its file
	found   int  // lines
}

// grep prints the lines of a file that are looked for, as far as the options have it.
func (s *search) grep(name string, b []byte) {
	for i, line := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if len(b) == 0 || s.matches(line) == hasOption(s.options, 'v') {
			continue
		}
		s.found++
		if hasOption(s.options, 'q') || hasOption(s.options, 'c') {
			continue
		}
		if s.named {
			s.print(name + ":")
		}
		if hasOption(s.options, 'n') {
			s.print(itoa(i+1) + ":")
		}
		s.print(line + "\n")
	}
}

// matches reports whether the pattern is in a line.
func (s *search) matches(line string) bool {
	pattern := s.pattern
	if hasOption(s.options, 'i') {
		pattern, line = strings.ToLower(pattern), strings.ToLower(line)
	}
	switch {
	case hasOption(s.options, 'x'):
		return line == pattern
	case pattern == "." && !hasOption(s.options, 'F'):
		return line != ""
	}
	return strings.Contains(line, pattern)
}

func sha256sum(ctx context.Context, c call) int {
	_, names := splitOperands(c.Argv, "")
	if len(names) == 0 {
		names = []string{"-"}
	}
	for _, name := range names {
		b, err := []byte(nil), error(nil)
		if name == "-" {
			b, err = c.all(ctx)
		} else {
			b, err = c.n.tree.ReadFile(c.path(name))
		}
		if err != nil {
			return c.fail(name + ": " + describeErrno(err))
		}
		sum := sha256.Sum256(b)
		c.print(hex.EncodeToString(sum[:]) + "  " + name + "\n")
	}
	return 0
}
