// SPDX-License-Identifier: Apache-2.0

package remote

import (
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// quoteArgs makes one line for the node's login shell out of an argument vector.
// SSH carries a command as one string and lets the user's shell take it apart
// (RFC 4254, 6.5), so every argument stands in single quotes, in which a POSIX
// shell leaves every character as it is. A NUL byte cannot be passed at all.
func quoteArgs(argv []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", errkind.New(errkind.Internal, "the command is empty")
	}
	var b strings.Builder
	for i, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return "", errkind.New(errkind.Internal, "argument %d has a NUL byte", i)
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(arg, `'`, `'\''`))
		b.WriteByte('\'')
	}
	return b.String(), nil
}
