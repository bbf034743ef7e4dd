// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// maxSuggestions bounds the names that are compared; sites have many nodes.
const maxSuggestions = 5000

// Nearest returns the known name that is less than three edits away from name
// and nearest to it, or "".
func Nearest(name string, known []string) string {
	if len(name) > 200 {
		return ""
	}
	best, dist := "", 3
	for i, k := range known {
		if i == maxSuggestions {
			break
		}
		if k != name && strings.EqualFold(k, name) {
			return k
		}
		if len(k) > len(name)+2 || len(name) > len(k)+2 || k == name {
			continue
		}
		if d := levenshtein.Distance(name, k, nil); d < dist && d < max(len(name), len(k)) {
			best, dist = k, d
		}
	}
	return best
}

// DidYouMean returns ` Did you mean "x"?`, or a list of what there is when it is
// short, or "".
func DidYouMean(name string, known []string) string {
	if near := Nearest(name, known); near != "" {
		return fmt.Sprintf(" Did you mean %q?", near)
	}
	if len(known) == 0 || len(known) > 8 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(known))
	return fmt.Sprintf(" There is %s.", Quoted(sorted))
}
