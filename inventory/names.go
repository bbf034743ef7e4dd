// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"github.com/ironrail/ironrail/inventory/diag"
)

// maxHints is how many wrong names are compared with all those of the site: a list
// of 100,000 wrong cables has one cause, and looking for what each of them may have
// meant would take minutes.
const maxHints = 100

// namesOf is the sorted names of nodes or switches, for what a wrong one may have
// meant; they are listed once, when all of them are decoded.
type namesOf struct {
	asked int
	names []string
}

// hintNames returns the names to compare with; none when it was asked too often.
func hintNames[T any](h *namesOf, among map[string]T) []string {
	if h.asked++; h.asked > maxHints {
		return nil
	}
	if h.names == nil {
		h.names = sortedKeys(among)
	}
	return h.names
}

// meantNode is diag.DidYouMean among the site's nodes.
func (l *loader) meantNode(name string) string {
	return diag.DidYouMean(name, hintNames(&l.nodeNames, l.nodes))
}
