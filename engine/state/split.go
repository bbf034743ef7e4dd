// SPDX-License-Identifier: Apache-2.0

package state

import "context"

// AppendParts writes parts in their order, in as few appends as the limits allow; each
// part is written whole or not at all. It is for what may be written in part: a caller that
// dies in between finds the first parts there, and writes all of them again.
func AppendParts(ctx context.Context, s Store, f Fence, parts ...Batch) error {
	var b Batch
	for _, p := range parts {
		if !b.Fits(p) && !b.empty() {
			if _, err := s.Append(ctx, f, b); err != nil {
				return err
			}
			b = Batch{}
		}
		b.Add(p)
	}
	if b.empty() {
		return nil
	}
	_, err := s.Append(ctx, f, b)
	return err
}

func (b *Batch) empty() bool { return len(b.Records)+len(b.Puts) == 0 }

// Split cuts a batch into one part for each record and each put, puts first, for those
// whose records and puts do not depend on each other.
func (b *Batch) Split() []Batch {
	parts := make([]Batch, 0, len(b.Records)+len(b.Puts))
	for i := range b.Puts {
		parts = append(parts, Batch{Puts: b.Puts[i : i+1 : i+1]})
	}
	for i := range b.Records {
		parts = append(parts, Batch{Records: b.Records[i : i+1 : i+1]})
	}
	return parts
}
