// SPDX-License-Identifier: Apache-2.0

package nvidiasmi

import (
	"strings"

	"github.com/ironrail/ironrail/tool"
)

// deepest is how deep the tree may be; nvidia-smi uses seven levels.
const deepest = 32

// widest is how many branches a branch has; nvidia-smi writes less than two
// hundred, and one for each process.
const widest = 4096

// longest is the length from which on a value does not grow, bytes.
const longest = 4096

// branch is a section or a value of -q: an element of the XML, a line of the
// text. Names are in lower case with underscores, so that "CliqueId" of the
// text and <cliqueId> are one.
type branch struct {
	name  string
	value string
	line  int
	sub   []*branch
}

// normalizeLabel returns a name of the output as the name of a branch.
func normalizeLabel(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(strings.TrimSpace(s)) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
		} else {
			gap = true
		}
	}
	return b.String()
}

// grow adds a branch, unless there are too many.
func (b *branch) grow(s *branch) {
	if len(b.sub) < widest {
		b.sub = append(b.sub, s)
	}
}

// at returns the first branch that one of the paths leads to, such as
// pci/pci_bus_id, or nil.
func (b *branch) at(paths ...string) *branch {
	for _, path := range paths {
		here := b
		for name := range strings.SplitSeq(path, "/") {
			if here = here.first(name); here == nil {
				break
			}
		}
		if here != nil {
			return here
		}
	}
	return nil
}

func (b *branch) first(name string) *branch {
	for _, s := range b.sub {
		if s.name == name {
			return s
		}
	}
	return nil
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

// reader takes values out of a tree and notes what cannot be read.
type reader struct {
	*branch
	problems *tool.Problems
}

func (r reader) text(paths ...string) string {
	at := r.at(paths...)
	if at == nil {
		return ""
	}
	if s, ok := readValue(at.value); ok {
		return s
	}
	return ""
}

func (r reader) float(paths ...string) *float64 {
	return takeValue(r, parseNumber, paths)
}

func (r reader) bool(paths ...string) *bool {
	return takeValue(r, parseYes, paths)
}

func (r reader) int(paths ...string) *int64 {
	f := r.float(paths...)
	if f == nil {
		return nil
	}
	v := int64(*f)
	return &v
}

// takeValue reads a value with a function, noting its error.
func takeValue[T any](r reader, read func(string) (*T, error), paths []string) *T {
	at := r.at(paths...)
	if at == nil || len(at.sub) > 0 {
		return nil
	}
	v, err := read(at.value)
	if err != nil {
		r.problems.Add(tool.Inconsistent, at.line, "%s: %v", at.name, err)
	}
	return v
}
