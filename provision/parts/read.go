// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"context"
	"fmt"
	"time"

	"github.com/ironrail/ironrail/engine/state"
)

// ReadAll returns every part with a history, by kind and serial number.
func ReadAll(ctx context.Context, r state.Reader) ([]History, error) {
	out := []History{}
	err := state.Each(ctx, r, partObject, func(_ state.Key, h History) { out = append(out, h) })
	return out, err
}

// In returns the parts of a node, as it was inspected last.
func In(ctx context.Context, r state.Reader, node string) (Fitted, error) {
	f, _, err := state.Get[Fitted](ctx, r, state.Key{Kind: fittedObject, Name: node})
	f.Node = node
	return f, err
}

// ReadHistory returns the history of a part; false when it has none.
func ReadHistory(ctx context.Context, r state.Reader, p Part) (History, bool, error) {
	h, version, err := state.Get[History](ctx, r, p.Key())
	return h, version != state.Absent, err
}

// Suspect is a part with a history in the place where it is now.
type Suspect struct {
	Fit
	History History
}

// Suspects returns those of some parts that were found bad before.
func Suspects(ctx context.Context, r state.Reader, fits []Fit) (out []Suspect, err error) {
	for _, f := range fits {
		h, ok, err := ReadHistory(ctx, r, f.Part)
		if err != nil {
			return nil, err
		}
		if ok && len(h.Findings) > 0 {
			out = append(out, Suspect{f, h})
		}
	}
	return out, nil
}

// Sentence says what was found of a part before, the last of it: "disk serial
// S4EV (nvme0n1) was found bad on n3 (nvme0n1) on 2026-11-20: the disk does not
// take what is written". Its texts come from outside.
func (s Suspect) Sentence() string {
	last := s.History.Findings[len(s.History.Findings)-1]
	text := s.Noun()
	if s.Slot != "" {
		text += " (" + s.Slot + ")"
	}
	text += " was found bad on " + last.Node
	if last.Slot != "" && last.Slot != s.Slot {
		text += " (" + last.Slot + ")"
	}
	text += " on " + last.At.UTC().Format(time.DateOnly) + ": " + last.Cause
	if n := len(s.History.Findings); n > 1 {
		text += fmt.Sprintf(" (%d times in all)", n)
	}
	return text
}

// Elsewhere reports whether something was found of the part on another node, or in
// another chassis' place, than this one.
func (s Suspect) Elsewhere(node string) bool {
	for _, f := range s.History.Findings {
		if f.Node != node {
			return true
		}
	}
	return false
}
