// SPDX-License-Identifier: Apache-2.0

// Package chassis holds what tests ask of a node's BMC, and the values that it answers
// with.
package chassis

import (
	"context"
	"time"
)

// LogMark is the entry that a BMC's event log ended with. The zero value is the end of
// an empty log.
type LogMark struct {
	ID      string    `json:"id,omitempty"`
	Created time.Time `json:"created,omitzero"`
	Message string    `json:"message,omitempty"`
}

// Diagnostics is a BMC that collects what it knows for its maker's support. An error of kind
// unsupported says that it has no way to.
type Diagnostics interface {
	// Diagnostics returns the file, of at most so many bytes, in the maker's format. It
	// takes minutes.
	Diagnostics(ctx context.Context, most int64) ([]byte, error)
}

// BMC is what the tests ask of a node's BMC. An error of kind unsupported says
// that it has no way to tell.
type BMC interface {
	// Parts returns what the BMC watches of power supplies, fans and the air that
	// comes in; none where it watches nothing.
	Parts(context.Context) ([]Part, error)
	// Log returns where the event log ends now, and the entries after since, the oldest
	// first; nil: none are wanted.
	Log(ctx context.Context, since *LogMark) (LogMark, []LogEntry, error)
}
