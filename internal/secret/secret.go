// SPDX-License-Identifier: Apache-2.0

// Package secret keeps passwords and keys out of plans, state, logs, argv and
// events. A Ref says where a secret lies and may be written anywhere; a Value
// holds the secret itself and prints as [secret] by every formatter. It is a
// leaf; only a Resolver turns a Ref into a Value, and only while apply runs.
package secret

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Ref is where a secret lies: "env:NAME", "file:PATH", "age:FILE#KEY",
// "csv:FILE#ROW/COLUMN", "vault:PATH#KEY" or "exec:NAME". The empty Ref is no
// secret at all.
type Ref string

// Value is a resolved secret. It never marshals, logs or prints its content.
type Value struct{ s string }

const hidden = "[secret]"

// NewValue wraps a secret.
func NewValue(s string) Value { return Value{s} }

// Reveal returns the secret. Call it only where the secret leaves for its one
// purpose: an authentication exchange.
func (v Value) Reveal() string { return v.s }

// IsZero reports whether there is no secret.
func (v Value) IsZero() bool { return v.s == "" }

// String hides the secret.
func (v Value) String() string { return hidden }

// GoString hides the secret.
func (v Value) GoString() string { return hidden }

// Format hides the secret for every verb.
func (v Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the secret.
func (v Value) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalJSON hides the secret.
func (v Value) MarshalJSON() ([]byte, error) { return json.Marshal(hidden) }

// MarshalText hides the secret.
func (v Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }
