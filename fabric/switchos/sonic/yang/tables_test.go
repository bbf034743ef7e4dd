// SPDX-License-Identifier: Apache-2.0

package yang

import (
	"slices"
	"testing"
)

// TestPatterns compiles the pattern of every leaf, also of tables that no other test
// has rows of.
func TestPatterns(t *testing.T) {
	t.Parallel()
	read := 0
	var compile func(k kind)
	compile = func(k kind) {
		switch k := k.(type) {
		case text:
			if k.pattern != nil && k.pattern.String() != "" {
				read++
			}
		case union:
			for _, member := range k {
				compile(member)
			}
		}
	}
	for _, table := range tables {
		for _, l := range table.lists {
			for _, f := range slices.Concat(l.keys, l.fields, l.inner) {
				compile(f.kind)
			}
		}
	}
	if read < 10 {
		t.Errorf("only %d patterns were read", read)
	}
}
