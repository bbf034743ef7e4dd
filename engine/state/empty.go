// SPDX-License-Identifier: Apache-2.0

package state

import "context"

// Empty is the state of a site where nothing was ever done. It is a Reader.
type Empty struct{}

// Info returns the zero Info: there is no lineage yet.
func (Empty) Info() Info { return Info{Format: Format} }

// Read finds no records.
func (Empty) Read(context.Context, uint64, func(Record) error) error { return nil }

// Object finds none.
func (Empty) Object(context.Context, Key) (Object, bool, error) { return Object{}, false, nil }

// Block finds none.
func (Empty) Block(_ context.Context, d Digest) ([]byte, error) { return nil, missingBlock(d) }

// Objects finds none.
func (Empty) Objects(context.Context, string) ([]Object, error) { return nil, nil }
