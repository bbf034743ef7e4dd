// SPDX-License-Identifier: Apache-2.0

package language

import (
	"testing"
	"testing/fstest"
	"time"
)

// TestCollect makes collections of 100,000 elements, and of elements that are not
// of one type.
func TestCollect(t *testing.T) {
	t.Parallel()
	const many = "[for x in range(100000) : \"n${x}\"]"
	for name, c := range map[string]struct{ expr, want string }{
		"join":         {`length(join("", ` + many + `)) == 588890`, ""},
		"tolist":       {`length(tolist(` + many + `)) == 100000`, ""},
		"toset":        {`length(toset([for x in range(10000) : "n${x}"])) == 10000`, ""},
		"tomap":        {`length(tomap({ for x in range(100000) : "n${x}" => x })) == 100000`, ""},
		"distinct":     {`length(distinct(` + many + `))`, "language.function"}, // what grows with the square is refused
		"mixed":        {`join(",", [1, "a", true]) == "1,a,true"`, ""},
		"mixed list":   {`tolist([1, "a"]) == tolist(["1", "a"])`, ""},
		"empty":        {`join(",", []) == "" && length(toset([])) == 0 && length(tomap({})) == 0`, ""},
		"no one type":  {`tolist([1, [2]])`, "language.function"},
		"many types":   {`tolist([` + types(101) + `])`, "language.function"},
		"wrong entire": {`join(",", 5)`, "language.function"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			src := "locals {\n  got = " + c.expr + "\n  bad = local.got == false ? tonumber(\"x\") : 0\n}\n"
			r := Evaluate(fstest.MapFS{"x.hcl": {Data: []byte(src)}}, nil, Options{})
			t.Logf("%v", time.Since(start))
			switch {
			case c.want == "" && len(r.Diags) > 0:
				t.Errorf("got %s: %s", r.Diags[0].Check, r.Diags[0].Detail)
			case c.want != "" && (len(r.Diags) == 0 || r.Diags[0].Check != c.want):
				t.Errorf("got %+v, want %s", r.Diags, c.want)
			}
		})
	}
}

// types are so many tuples of different lengths.
func types(n int) (s string) {
	for i := range n {
		s += "["
		for range i {
			s += "1,"
		}
		s += "],"
	}
	return s
}
