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
)

var opTexts = [...]string{"", ">= ", "<= ", ""}

// Limit is a comparison with a value, such as ">= 900GB". The zero Limit allows
// everything.
type Limit[T cmp.Ordered] struct {
	Op    Op
	Value T
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

// Allows reports whether v keeps the limit.
func (l Limit[T]) Allows(v T) bool {
	switch l.Op {
	case AtLeast:
		return v >= l.Value
	case AtMost:
		return v <= l.Value
	case Exactly:
		return v == l.Value
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
	return opTexts[l.Op] + fmt.Sprint(l.Value)
}

// MarshalText writes String.
func (l Limit[T]) MarshalText() ([]byte, error) { return []byte(l.String()), nil }
