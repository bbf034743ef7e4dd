// SPDX-License-Identifier: Apache-2.0

// Package fact holds what is learned about the world: MACs, GUIDs, serials,
// host keys. A fact is bound to the part that it was read from, so that a
// swapped part takes its facts with it. It is a leaf.
package fact

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/subject"
)

// Key names one fact of one subject.
type Key struct {
	Subject subject.ID
	Name    string // dotted, lower case: "node.serial", "ssh.host_key"
}

// String returns subject#name.
func (k Key) String() string { return k.Subject.String() + "#" + k.Name }

// MarshalText writes subject#name.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads subject#name.
func (k *Key) UnmarshalText(b []byte) error {
	s, n, ok := strings.Cut(string(b), "#")
	if !ok || n == "" {
		return fmt.Errorf("fact key %q is not subject#name", b)
	}
	k.Name = n
	return k.Subject.UnmarshalText([]byte(s))
}

// Fact is one learned value. Value is JSON, so that the store needs no schema.
type Fact struct {
	Key      Key             `json:"key"`
	Value    json.RawMessage `json:"value"`
	Part     string          `json:"part,omitempty"` // serial of the part it was read from
	Step     string          `json:"step,omitempty"` // step that learned it
	Observed time.Time       `json:"observed"`
}

// Name is a fact name with the type of its value.
type Name[T any] string

// Of returns the key of this fact for a subject.
func (n Name[T]) Of(s subject.ID) Key { return Key{s, string(n)} }

// New makes a fact with value v, read from the part with the given serial.
func (n Name[T]) New(s subject.ID, v T, part string) (Fact, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return Fact{}, fmt.Errorf("fact %s: %w", n.Of(s), err)
	}
	return Fact{Key: n.Of(s), Value: b, Part: part}, nil
}

// Get decodes the value of f.
func (n Name[T]) Get(f Fact) (v T, err error) {
	if f.Key.Name != string(n) {
		return v, fmt.Errorf("fact %s is not %s", f.Key, string(n))
	}
	if err := json.Unmarshal(f.Value, &v); err != nil {
		return v, fmt.Errorf("fact %s: %w", f.Key, err)
	}
	return v, nil
}
