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
)

var opTexts = [...]string{"", ">= ", "<= ", "", ">= "}

// Limit is a comparison with a value, such as ">= 900GB". The zero Limit allows
// everything.
type Limit[T cmp.Ordered] struct {
	Op    Op
	Value T
	Upper T // of Between: from Value to Upper, both allowed
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

// Within reports whether every value that l allows is allowed by m.
func (l Limit[T]) Within(m Limit[T]) bool {
	switch {
	case m.Op == NoLimit:
		return true
	case l.Op == Exactly:
		return m.Allows(l.Value)
	}
	from, to := l.Op == AtLeast || l.Op == Between, l.Op == AtMost || l.Op == Between
	top := l.Value
	if l.Op == Between {
		top = l.Upper
	}
	switch m.Op {
	case AtLeast:
		return from && l.Value >= m.Value
	case AtMost:
		return to && top <= m.Value
	case Between:
		return from && to && l.Value >= m.Value && top <= m.Upper
	}
	return from && to && l.Value == m.Value && top == m.Value
}

// Allows reports whether v keeps the limit.
func (l Limit[T]) Allows(v T) bool {
	switch l.Op {
	case AtLeast:
		return v >= l.Value
	case AtMost:
		return v <= l.Value
	case Exactly:
		return v == l.Value
	case Between:
		return v >= l.Value && v <= l.Upper
	}
	return true
}

// IsZero reports whether there is no limit.
func (l Limit[T]) IsZero() bool { return l.Op == NoLimit }

// String writes the limit as the language does.
func (l Limit[T]) String() string {
	if int(l.Op) >= len(opTexts) || l.Op == NoLimit {
		return ""
	}
	text := opTexts[l.Op] + fmt.Sprint(l.Value)
	if l.Op == Between {
		text += ", <= " + fmt.Sprint(l.Upper)
	}
	return text
}

// MarshalText writes String.
func (l Limit[T]) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
