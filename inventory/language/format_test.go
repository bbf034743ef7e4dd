// SPDX-License-Identifier: Apache-2.0

package language

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// TestFormat looks at the usual form of a few sources.
func TestFormat(t *testing.T) {
	t.Parallel()
	cases := []struct{ src, want string }{
		{"a{\nb=1\nlong  =  2\n}\n", "a {\n  b    = 1\n  long = 2\n}\n"},
		{"# x\r\na = 1\r\n", "# x\r\na = 1\r\n"},
		{"a = <<EOT\n  kept   as it is\nEOT\n", "a = <<EOT\n  kept   as it is\nEOT\n"},
		{"", ""},
	}
	for _, c := range cases {
		got, found := Format("x.hcl", []byte(c.src))
		if string(got) != c.want || len(found) > 0 {
			t.Errorf("%q: got %q, want %q, %v", c.src, got, c.want, found)
		}
	}
	if got, found := Format("x.hcl", []byte("a = [\n")); got != nil || !found.HasErrors() || found[0].Subject.File != "x.hcl" {
		t.Errorf("a mistake: got %q, %v", got, found)
	}
}

// FuzzFormat formats whatever can be parsed: the result says the same, word by
// word.
func FuzzFormat(f *testing.F) {
	for _, glob := range []string{"../testdata/site/*.hcl", "../testdata/diagnostics/base.hcl", "../../examples/lab/*.hcl"} {
		paths, err := filepath.Glob(glob)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range paths {
			src, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 1<<16 {
			t.Skip("larger than this test needs")
		}
		out, found := Format("x.hcl", src)
		if found.HasErrors() {
			return
		}
		if _, found := Format("x.hcl", out); found.HasErrors() || words(out) != words(src) {
			t.Errorf("%q becomes %q", src, out)
		}
	})
}

// words are the words of a source, without what stands between them.
func words(src []byte) string {
	tokens, _ := hclsyntax.LexConfig(src, "", hcl.InitialPos)
	var b strings.Builder
	for _, t := range tokens {
		b.WriteString(t.Type.String())
		b.Write(t.Bytes)
		b.WriteByte(0)
	}
	return b.String()
}
