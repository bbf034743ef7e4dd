// SPDX-License-Identifier: Apache-2.0

package keystroke

import (
	"fmt"
	"strings"
	"testing"
)

// TestParse: commands are found at the beginning of a line, also when their characters come one by one.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ escape, typed, want string }{
		{"~", "ls ~.\r", `"ls ~.\r"`},
		{"~", "~.", "1"},
		{"~", "a\r~.", `"a\r" 1`},
		{"~", "a\n~Bb", `"a\n" 2 "b"`},
		{"~", "~?~.", "3 1"},
		{"~", "~~.\r", `"~.\r"`},
		{"~", "~x~.", `"~x~."`},
		{"~", "~\r~.", `"~\r" 1`},
		{"^]", "~.\x1d.", `"~.\x1d."`},
		{"^]", "\x1d.", "1"},
		{"none", "~.\r~.", `"~.\r~."`},
	} {
		escape, err := ParseEscape(c.escape)
		if err != nil || Name(escape) != c.escape {
			t.Fatalf("%s: %v, %s", c.escape, err, Name(escape))
		}
		for _, size := range []int{1, 100} {
			p := Parser{Escape: escape}
			var got []string
			keys := ""
			flush := func() {
				if keys != "" {
					got = append(got, fmt.Sprintf("%q", keys))
				}
				keys = ""
			}
			for i := 0; i < len(c.typed); i += size {
				for _, s := range p.Parse([]byte(c.typed[i:min(i+size, len(c.typed))])) {
					if keys += s.Keys; s.Command != None {
						flush()
						got = append(got, fmt.Sprint(s.Command))
					}
				}
			}
			flush()
			if all := strings.Join(got, " "); all != c.want {
				t.Errorf("%s, %q, %d at a time: %s, want %s", c.escape, c.typed, size, all, c.want)
			}
		}
	}
	for _, bad := range []string{"", "ab", "^@", "\x01", " ", "^é"} {
		if _, err := ParseEscape(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
