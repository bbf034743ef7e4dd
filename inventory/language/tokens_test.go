// SPDX-License-Identifier: Apache-2.0

package language

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

func TestCountTokens(t *testing.T) {
	t.Parallel()
	cases := []struct {
		src  string
		json bool
		want int
	}{
		{"", false, 0},
		{"  \t", false, 0},
		{"a = 1\n", false, 4},
		{"# one, two, three\n// four\n", false, 4},
		{`a = "one, two: three"`, false, 4},
		{`a = "one \" two"`, false, 4},
		{`a = "x${f({ b = "}" })}y"`, false, 15},
		{"}\n}\n", false, 4},
		{`""""`, false, 4},
		{`{"a": [1, 2, "x, y"]}`, true, 13},
		{"a = \"\xff\xfe\"", false, 6},
		{"{\n\n}", true, 2},
	}
	for _, c := range cases {
		if got := countTokens([]byte(c.src), c.json); got != c.want {
			t.Errorf("countTokens(%q) = %d, want %d", c.src, got, c.want)
		}
	}
}

// TestCountTokensOfExamples compares with what HCL counts: the estimate that
// memory is judged by is not far off.
func TestCountTokensOfExamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		tokens, _ := hclsyntax.LexConfig(src, f, hcl.InitialPos)
		got, real := countTokens(src, false), len(tokens)
		if got < real/2 || got > real*5/4 {
			t.Errorf("%s: estimated %d tokens, HCL has %d", f, got, real)
		}
	}
}

func TestTooManyTokens(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"brackets": strings.Repeat("}\n", 2000),
		"quotes":   strings.Repeat(`"`, 3000),
		"list":     "locals {\n  a = [" + strings.Repeat("1,", 1500) + "]\n}\n",
	} {
		r := evaluate(src, Options{Limits: Limits{Tokens: 2000}})
		if len(r.Diags) != 1 || r.Diags[0].Check != "language.limit" {
			t.Errorf("%s: %v, want one language.limit", name, r.Diags)
		}
	}
	r := evaluate("locals {\n  a = 1\n}\n", Options{Limits: Limits{Tokens: 20}}, "y.hcl", "locals {\n  b = 1\n}\n", "z.hcl", "locals {\n  c = 1\n}\n")
	if len(r.Diags) != 1 || r.Diags[0].Check != "language.limit" || r.Diags[0].Subject.File != "z.hcl" {
		t.Errorf("%v, want one language.limit of z.hcl", r.Diags)
	}
}

// TestPipe: opening a pipe that nobody writes to waits forever.
func TestPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "x.hcl"), 0o600); err != nil {
		t.Skip(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	done := make(chan *Result, 1)
	go func() { done <- Evaluate(root.FS(), things, Options{}) }()
	select {
	case r := <-done:
		if len(r.Diags) != 1 || r.Diags[0].Check != "language.file" {
			t.Errorf("%v, want one language.file", r.Diags)
		}
	case <-time.After(5 * time.Minute):
		t.Fatal("a pipe is waited for")
	}
}
