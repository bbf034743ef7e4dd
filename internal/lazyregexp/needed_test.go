// SPDX-License-Identifier: Apache-2.0

package lazyregexp

import (
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// TestNeeded: what is looked for first, of expressions of each form.
func TestNeeded(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string][]string{
		`NVRM: Xid \((\d+)\)`:            {"NVRM: Xid ("},
		`(?:Errors|Warnings) for`:        {"Errors", "Warnings"},
		`(?m)^\s+device\s+node GUID`:     {"node GUID"},
		`(?:abc|defg)+x`:                 {"abc", "defg"},
		`(?i)nvls`:                       nil,
		`abc|x\x{fffd}`:                  nil,
		`(?:abc)?\d*`:                    nil,
		`a|bcd`:                          nil,
		`(?:abc|\d+)`:                    nil,
		`x{2,}abc`:                       {"abc"},
		`(?:aa|bb|cc|dd|ee|ff|gg|hh|ii)`: nil,
	} {
		got := compile(pattern).needed
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", pattern, got, want)
		}
	}
}

// patterns are of each form that the packages have; those of FuzzAsRegexp are tried as well.
var patterns = []string{
	`(?m)^\s*(?:abc|de) x$`, `(?m)^ab.*cd$`, `^ab\b`, `(?s)ab.c`, `(?m)\bab[^c]+`, `(?i)ab`, `ab|cd\n`, `(?:ab){2,3}c?`, `()ab$`, `(?m)ab\z`, "a\nb", `(?m)^$|ab`, `a\x{fffd}`,
}

// FuzzAsRegexp: each method answers as that of package regexp does.
func FuzzAsRegexp(f *testing.F) {
	for _, p := range patterns {
		for _, text := range []string{"", "ab", "\nab\n", "x\n  abc x\ny", "ab\ncd\n", "abxcd\nab", "ab c\n\nabab c", "AB", "cd\n", "a\xff"} {
			f.Add(p, text)
		}
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		want, err := regexp.Compile(pattern)
		if err != nil {
			return
		}
		got, b := New(pattern), []byte(text)
		for _, c := range []struct {
			name      string
			got, want any
		}{
			{"Match", got.Match(b), want.Match(b)},
			{"MatchString", got.MatchString(text), want.MatchString(text)},
			{"Find", got.Find(b), want.Find(b)},
			{"FindIndex", got.FindIndex(b), want.FindIndex(b)},
			{"FindSubmatch", got.FindSubmatch(b), want.FindSubmatch(b)},
			{"FindSubmatchIndex", got.FindSubmatchIndex(b), want.FindSubmatchIndex(b)},
			{"FindAll", got.FindAll(b, -1), want.FindAll(b, -1)},
			{"FindAllSubmatch", got.FindAllSubmatch(b, -1), want.FindAllSubmatch(b, -1)},
			{"FindString", got.FindString(text), want.FindString(text)},
			{"FindStringIndex", got.FindStringIndex(text), want.FindStringIndex(text)},
			{"FindStringSubmatch", got.FindStringSubmatch(text), want.FindStringSubmatch(text)},
			{"FindAllString", got.FindAllString(text, -1), want.FindAllString(text, -1)},
			{"FindAllStringIndex", got.FindAllStringIndex(text, -1), want.FindAllStringIndex(text, -1)},
			{"FindAllStringSubmatch", got.FindAllStringSubmatch(text, -1), want.FindAllStringSubmatch(text, -1)},
		} {
			if !reflect.DeepEqual(c.got, c.want) {
				t.Errorf("%s of %q in %q: got %v, want %v", c.name, pattern, text, c.got, c.want)
			}
		}
	})
}
