// SPDX-License-Identifier: Apache-2.0

// Package errkind classifies errors about the world outside the process. The
// kind, never the text, decides retry, exit code and hint. It is a leaf: every
// package may import it.
package errkind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// Kind says what sort of thing went wrong. The zero Kind is Internal: an error
// that nobody classified is ours until shown otherwise.
type Kind uint8

// The kinds, from STYLE: each has one meaning for retry and for the operator.
const (
	Internal    Kind = iota // a defect or an unforeseen answer; not retried
	Unreachable             // nothing answers at the address; retried with back-off
	Auth                    // credentials refused; never retried, accounts lock out
	Timeout                 // an answer did not come within its deadline; retried if idempotent
	Refused                 // the other side, or a safety rule of ours, said no; not retried
	Unsupported             // the other side cannot do this; another way is needed
	Mismatch                // what is there is not what was expected (serial, hardware, identity); a person must look
	Interrupted             // the operator or the process stopped it; resumes
	NotFound                // what was named is not there; a person must look
	Invalid                 // input or output cannot be read, or does not fit its form; a person must look
	Corrupt                 // stored data has another digest, signature or structure than it must; a person must look
	Conflict                // two things contradict each other, or several stand where one belongs; a person must look
)

// names are the words of the kinds, by number. They are stored and read by other
// programs: a word is never changed, and a new one is put at the end.
var names = [...]string{"internal", "unreachable", "auth", "timeout", "refused", "unsupported", "mismatch", "interrupted",
	"not-found", "invalid", "corrupt", "conflict"}

// bases holds the kinds that were written as another one before they were divided from
// it, each with that one. What is stored under the older word keeps it.
var bases = map[Kind]Kind{NotFound: Mismatch, Invalid: Mismatch, Corrupt: Mismatch, Conflict: Mismatch}

// Base returns the kind that k was divided from, or k. Code that treats all kinds of one
// base alike asks for it, so that errors stored or sent by an older version are treated
// in the same way.
func (k Kind) Base() Kind {
	if b, ok := bases[k]; ok {
		return b
	}
	return k
}

// String returns the kind's name as it is written to journals and reports.
func (k Kind) String() string {
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// MarshalText writes the kind's name.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name; an unknown name is an error.
func (k *Kind) UnmarshalText(b []byte) error {
	for i, n := range names {
		if n == string(b) {
			*k = Kind(i)
			return nil
		}
	}
	return fmt.Errorf("error kind %q is not known", b)
}

// Named returns the kind of a name that a node or an older version gives; one that is not known is
// Internal.
func Named(name string) Kind {
	var k Kind
	if k.UnmarshalText([]byte(name)) != nil {
		return Internal
	}
	return k
}

// Error is an error with its kind and, where one is known, the next action for
// the operator.
type Error struct {
	Kind   Kind
	Err    error
	Action string // what to do about it, a full sentence; may be empty
}

// Error returns the text of the wrapped error alone; the action is shown apart.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of the given kind; format and args are as in fmt.Errorf
// (%w wraps).
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Err: fmt.Errorf(format, args...)}
}

// Do sets the next action and returns e, so that it reads
// errkind.New(...).Do("check the cable").
func (e *Error) Do(action string) *Error { e.Action = action; return e }

// Of returns the kind of the outermost classified error in err's tree. Context
// errors, os time-outs and what the network says of an address are classified without
// being wrapped. Of(nil) is
// Internal and has no meaning.
func Of(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTDOWN):
		return Unreachable
	}
	return Internal
}

// begun marks an error; see Begun.
type begun struct{ error }

// Unwrap returns the marked error.
func (b begun) Unwrap() error { return b.error }

// Begun marks err as the failure of a change to the world that had begun: whatever
// its kind, it is not so that nothing happened. Begun(nil) is nil.
func Begun(err error) error {
	if err == nil {
		return nil
	}
	return begun{err}
}

// HasBegun reports whether an error in err's tree was marked by Begun.
func HasBegun(err error) bool {
	_, ok := errors.AsType[begun](err)
	return ok
}

// Line returns err's text in one line: errors that were joined, and the lines of another
// program's output, stand one after another with a semicolon between them. Records,
// events and findings hold lines.
func Line(err error) string {
	if err == nil {
		return ""
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = strings.TrimRight(strings.TrimSpace(line), ";"); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// Action returns the next action carried by err, or "".
func Action(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Action
	}
	return ""
}
