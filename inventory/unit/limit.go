// SPDX-License-Identifier: Apache-2.0

package unit

import (
	"cmp"
	"fmt"
	"strings"
)

// Op is how a measured value is compared with a limit.
type Op uint8

// The comparisons. None means that there is no limit.
const (
	NoLimit Op = iota
	AtLeast
	AtMost
	Exactly
	Between
	Printed // as on a label: see ParseDriveSize
)

var opTexts = [...]string{"", ">= ", "<= ", "", ">= ", ""}

// Limit is a comparison with a value, such as ">= 900GB". The zero Limit allows
// everything.
type Limit[T cmp.Ordered] struct {
	Op    Op
	Value T
	Lower T      // of Printed: from Lower to Upper, both allowed; Value is what is printed
	Upper T      // of Between: from Value to Upper, both allowed; and of Printed
	Text  string // as it was written, where the values do not say it
}

// ParseLimit reads ">= X", "<= X", "= X" or "X" (exactly X), with parse for the
// value.
func ParseLimit[T cmp.Ordered](s string, parse func(string) (T, error)) (Limit[T], error) {
	op, rest := Exactly, s
	switch {
	case strings.HasPrefix(s, ">="):
		op, rest = AtLeast, s[2:]
	case strings.HasPrefix(s, "<="):
		op, rest = AtMost, s[2:]
	case strings.HasPrefix(s, "=>"), strings.HasPrefix(s, "=<"), strings.HasPrefix(s, "=="):
		return Limit[T]{}, fmt.Errorf("%q: a limit is written with >=, <= or =", s)
	case strings.HasPrefix(s, "="):
		rest = s[1:]
	case strings.HasPrefix(s, ">"), strings.HasPrefix(s, "<"):
		return Limit[T]{}, fmt.Errorf("%q: a limit is written with >=, <= or =", s)
	}
	v, err := parse(strings.TrimLeft(rest, " "))
	if err != nil {
		return Limit[T]{}, err
	}
	return Limit[T]{Op: op, Value: v}, nil
}

// ParseRange reads what ParseLimit reads, and ">= X, <= Y": from X to Y, in either
// order.
func ParseRange[T cmp.Ordered](s string, parse func(string) (T, error)) (Limit[T], error) {
	one, other, two := strings.Cut(s, ",")
	l, err := ParseLimit(strings.TrimSpace(one), parse)
	if err != nil || !two {
		return l, err
	}
	m, err := ParseLimit(strings.TrimSpace(other), parse)
	if err != nil {
		return Limit[T]{}, err
	}
	if l.Op == AtMost {
		l, m = m, l
	}
	if l.Op != AtLeast || m.Op != AtMost {
		return Limit[T]{}, fmt.Errorf("%q: a range is written as \">= X, <= Y\"", s)
	}
	if l.Value > m.Value {
		return Limit[T]{}, fmt.Errorf("%q: nothing is at least %v and at most %v", s, l.Value, m.Value)
	}
	return Limit[T]{Op: Between, Value: l.Value, Upper: m.Value}, nil
}

// bounds returns the least and the greatest value that l allows, and whether there
// is a least and a greatest.
func (l Limit[T]) bounds() (from, to T, least, greatest bool) {
	switch l.Op {
	case AtLeast:
		return l.Value, to, true, false
	case AtMost:
		return from, l.Value, false, true
	case Exactly:
		return l.Value, l.Value, true, true
	case Between:
		return l.Value, l.Upper, true, true
	case Printed:
		return l.Lower, l.Upper, true, true
	}
	return from, to, false, false
}

// Within reports whether every value that l allows is allowed by m.
func (l Limit[T]) Within(m Limit[T]) bool {
	from, to, least, greatest := l.bounds()
	above, below, bottom, top := m.bounds()
	return (!bottom || least && from >= above) && (!top || greatest && to <= below)
}

// Allows reports whether v keeps the limit.
func (l Limit[T]) Allows(v T) bool {
	from, to, least, greatest := l.bounds()
	return (!least || v >= from) && (!greatest || v <= to)
}

// IsZero reports whether there is no limit.
func (l Limit[T]) IsZero() bool { return l.Op == NoLimit }

// String writes the limit as the language does.
func (l Limit[T]) String() string {
	if l.Text != "" || int(l.Op) >= len(opTexts) || l.Op == NoLimit {
		return l.Text
	}
	text := opTexts[l.Op] + fmt.Sprint(l.Value)
	if l.Op == Between {
		text += ", <= " + fmt.Sprint(l.Upper)
	}
	return text
}

// MarshalText writes String.
func (l Limit[T]) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
