// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/subject"
)

// directKind is the kind of the objects of direct work; see directKey.
const directKind = "direct"

// Direct is what an operator did last to one node outside of a plan, such as a power cycle. It is
// written before the effect, as intended, and again with its outcome.
type Direct struct {
	Node   string      `json:"node"`
	Verb   string      `json:"verb"` // power cycle
	Does   string      `json:"does"` // in words
	By     string      `json:"by"`
	Host   string      `json:"host,omitempty"` // where the command was typed
	Reason string      `json:"reason,omitempty"`
	At     time.Time   `json:"at"`
	State  EffectState `json:"state"`
	Ended  time.Time   `json:"ended,omitzero"`
	Detail string      `json:"detail,omitempty"` // what was read back, or the error; it may quote a BMC
	Doubt  *Direct     `json:"doubt,omitempty"`  // earlier work of its sort that is in doubt, unless this one is done
}

// directKey is the key of the last work of one sort on a node: n1/power. That of another sort leaves
// it alone, such as a doubt about a power cycle.
func directKey(node, verb string) Key {
	sort, _, _ := strings.Cut(verb, " ")
	return Key{directKind, node + "/" + sort}
}

// Doubtful returns this work, or the earlier one that it left in doubt; false when neither is. A node
// that was read on, or off, after a command has left nothing in doubt.
func (d Direct) Doubtful() (Direct, bool) {
	switch {
	case d.Doubt != nil && d.State != EffectIsDone:
		return *d.Doubt, true
	case d.InDoubt():
		return d, true
	}
	return Direct{}, false
}

// InDoubt reports whether nobody knows what became of it: the process that did it ended, or no
// answer came.
func (d Direct) InDoubt() bool { return d.State == EffectIntended || d.State == EffectInDoubt }

// ReadDirect reads the last direct work on a node of the sort of a verb; false when there was none.
func ReadDirect(ctx context.Context, r Reader, node, verb string) (Direct, bool, error) {
	d, version, err := Get[Direct](ctx, r, directKey(node, verb))
	return d, version != Absent, err
}

// RecordDirect makes direct work durable: its intent, or its outcome.
func RecordDirect(ctx context.Context, s Store, f Fence, d Direct) error {
	put, err := PutOf(directKey(d.Node, d.Verb), d)
	if err != nil {
		return err
	}
	r := Record{Kind: DirectOutcome, Time: d.Ended, Subject: subject.OfNode(d.Node)}
	if d.State == EffectIntended {
		r.Kind, r.Time = DirectIntent, d.At
	}
	if _, err := s.Append(ctx, f, Batch{Records: []Record{r.With(d)}, Puts: []Put{put}}); err != nil {
		return errkind.New(errkind.Of(err), "%s of %s: %w", d.Verb, d.Node, fmt.Errorf("record: %w", err))
	}
	return nil
}
