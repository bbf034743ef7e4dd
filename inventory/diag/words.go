// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"fmt"
	"strconv"
	"strings"
)

// Shown is how many of many names a finding says.
const Shown = 3

// Few lists the first of total names: "a, b, c and 9 more". names may be only the
// first Shown of them.
func Few(names []string, total int) string {
	names = names[:min(Shown, len(names))]
	text := strings.Join(names, ", ")
	if more := total - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Count writes a number of things: "1 supply", "2 supplies".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Quoted returns `"a", "b" and "c"`.
func Quoted(list []string) string {
	out := ""
	for i, s := range list {
		switch {
		case i == 0:
		case i == len(list)-1:
			out += " and "
		default:
			out += ", "
		}
		out += fmt.Sprintf("%q", s)
	}
	return out
}
