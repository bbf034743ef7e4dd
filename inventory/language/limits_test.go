// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/zclconf/go-cty/cty"
)

// things is a language of one block, for tests.
var things = []BlockSpec{{Type: "thing", Labels: []string{"name"}, Repeat: true, Refer: true, Body: Spec{Attrs: []Attr{{Name: "value", Type: Any}, {Name: "text", Type: Text}, {Name: "n", Type: Int(0, 1000), Default: cty.NumberIntVal(7)}}}}}

func evaluate(src string, opt Options, more ...string) *Result {
	fsys := fstest.MapFS{"x.hcl": {Data: []byte(src)}}
	for i := 0; i+1 < len(more); i += 2 {
		fsys[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return Evaluate(fsys, things, opt)
}

// doubling is locals of which each is twice the one before.
func doubling(format string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n  a0 = %s\n", strings.ReplaceAll(format, "X", `"x"`))
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "  a%d = %s\n", i, strings.ReplaceAll(format, "X", fmt.Sprintf("local.a%d", i-1)))
	}
	return b.String() + "}\n"
}

// TestLimits gives evaluation what would take forever or fill the memory; each
// must end soon and say which limit was passed.
func TestLimits(t *testing.T) {
	t.Parallel()
	many := "[" + strings.Repeat("0,", 1000) + "]"
	yamlBomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		yamlBomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 10), ","))
	}
	cases := []struct {
		name, src, check string
		opt              Options
		more             []string
	}{
		{name: "loops in loops", check: "language.limit", src: "locals {\n  l = " + many + "\n  x = [for a in local.l : [for b in local.l : [for c in local.l : [for d in local.l : a]]]]\n}"},
		{name: "loops that keep nothing", check: "language.limit", src: "locals {\n  l = " + many + "\n  x = [for a in local.l : 1 if length([for b in local.l : 1 if length([for c in local.l : 1 if false]) > 0]) > 0]\n}"},
		{name: "doubling text", check: "language.limit", src: doubling(`"${X}${X}"`, 60)},
		{name: "doubling lists", check: "language.limit", src: doubling(`[X, X]`, 60)},
		{name: "doubling by a function", check: "language.function", src: doubling(`join("", [X, X])`, 60)},
		{name: "squaring", check: "language.limit", src: "locals {\n  a0 = 1000\n" + func() (s string) {
			for i := 1; i < 60; i++ {
				s += fmt.Sprintf("  a%d = local.a%d * local.a%d\n", i, i-1, i-1)
			}
			return s
		}() + "  z = \"${local.a59}\"\n}"},
		{name: "huge literal", check: "language.limit", src: `locals { a = "${1e999999999}" }`},
		{name: "huge number of text", check: "language.function", src: `locals { a = tonumber("1e999999") }`},
		{name: "huge number of JSON", check: "language.function", src: `locals { a = jsondecode("[1e999999]") }`},
		{name: "wide format", check: "language.function", src: `locals { a = format("%999999999d", 1) }`},
		{name: "long number by format", check: "language.function", src: `locals { a = format("%d", "1e999999999") }`},
		{name: "indent", check: "language.function", src: `locals { a = indent(999999999, "a\nb") }`},
		{name: "product", check: "language.function", src: "locals {\n  l = range(1000)\n  x = setproduct(local.l, local.l, local.l, local.l)\n}"},
		{name: "replace", check: "language.function", src: "locals {\n  l = join(\"\", [for i in range(1000) : \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"])\n  x = replace(local.l, \"a\", local.l)\n}"},
		{name: "yaml aliases", check: "language.function", src: `locals { a = yamldecode(file("bomb.yaml")) }`, more: []string{"bomb.yaml", yamlBomb}},
		{name: "yaml of itself", check: "language.function", src: `locals { a = yamldecode("a: &a [*a]") }`},
		{name: "template of itself", check: "language.function", src: `locals { a = templatefile("t", {}) }`, more: []string{"t", `${templatefile("t", {})}`}},
		{name: "instances", check: "language.limit", src: `thing "x" { count = 999999999999 }`},
		{name: "brackets", check: "language.limit", src: "locals {\n  a = " + strings.Repeat("[", 100_000) + "\n}"},
		{name: "blocks in blocks", check: "language.limit", src: strings.Repeat("a {\n", 100_000)},
		{name: "operators", check: "language.limit", src: "locals {\n  a = 1" + strings.Repeat("+1", 100_000) + "\n}"},
		{name: "not not", check: "language.limit", src: "locals {\n  a = " + strings.Repeat("!", 100_000) + "true\n}"},
		{name: "conditions", check: "language.limit", src: "locals {\n  a = " + strings.Repeat("true ? 1 : ", 50_000) + "2\n}"},
		{name: "templates in templates", check: "language.limit", src: "locals {\n  a = " + strings.Repeat(`"${`, 50_000) + "\n}"},
		{name: "indices", check: "language.limit", src: "locals {\n  b = [1]\n  a = local.b" + strings.Repeat("[local.b[0]]", 50_000) + "\n}"},
		{name: "references to references", check: "language.limit", src: func() string {
			var b strings.Builder
			b.WriteString("locals {\n")
			for i := range 20_000 {
				fmt.Fprintf(&b, "  a%d = local.a%d\n", i, i+1)
			}
			return b.String() + "  a20000 = 1\n}"
		}()},
		{name: "a large file", check: "language.file", src: strings.Repeat("# comment\n", 1000), opt: Options{Limits: Limits{FileBytes: 1000}}},
		{name: "deep JSON", check: "language.limit", src: "", more: []string{"y.hcl.json", strings.Repeat(`{"a":`, 100_000)}},
		{name: "deep JSON template", check: "language.limit", src: "", more: []string{"y.hcl.json", `{"locals": {"a": "${` + strings.Repeat("(", 100_000) + `}"}}`}},
		{name: "loops in JSON", check: "language.limit", src: "", more: []string{"y.hcl.json", `{"locals": {"l": "${range(1000)}", "x": "${[for a in local.l : [for b in local.l : [for c in local.l : a]]]}"}}`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.opt.Limits == (Limits{}) {
				c.opt.Limits = Limits{Iterations: 100_000, Output: 16 << 20, Elements: 100_000, Instances: 10_000}
			}
			start := time.Now()
			r := evaluate(c.src, c.opt, c.more...)
			if took := time.Since(start); took > 2*time.Minute {
				t.Errorf("took %s", took)
			}
			var found []string
			for _, d := range r.Diags.Sort() {
				if found = append(found, d.Check+": "+d.Detail); d.Check == c.check {
					return
				}
			}
			t.Errorf("no %s; got %q", c.check, found)
		})
	}
}

// TestLimitsAllow checks that limits do not stand in the way of what is written
// in earnest: text full of brackets, long lists, comments.
func TestLimitsAllow(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"brackets in comments": strings.Repeat("# :-( [ {\n", 1000) + "locals {\n  a = 1\n}",
		"brackets in a string": "locals {\n  a = \"" + strings.Repeat("(", 1000) + "\"\n}",
		"a heredoc":            "locals {\n  a = <<EOT\n" + strings.Repeat("- x: { y: [ (1 + 2) } ... ----\n", 2000) + "EOT\n}",
		"a long list":          "locals {\n  a = [" + strings.Repeat("-1,\n", 20_000) + "]\n}",
		"a long object": "locals {\n  a = {\n" + strings.Repeat("    x = -1\n", 1) + func() (s string) {
			for i := range 5000 {
				s += fmt.Sprintf("    k%d = -1\n", i)
			}
			return s
		}() + "  }\n}",
	}
	for name, src := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := evaluate(src, Options{}); len(r.Diags) > 0 {
				t.Errorf("got %+v", r.Diags[0])
			}
		})
	}
}
