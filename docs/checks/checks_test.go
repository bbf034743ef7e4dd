// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

var update = flag.Bool("update", false, "write the index of pages")

// top is the repository from here.
const top = "../.."

// layers are the folders of which the packages report checks.
var layers = []string{"inventory", "fabric", "images", "provision", "validate", "draw"}

// checkForm is what the name of a check looks like.
var checkForm = regexp.MustCompile(`^[a-z]+\.[a-z]+(-[a-z]+)*$`)

// otherAreas are the first words of texts that look like a check and are none:
// files, facts and steps.
var otherAreas = []string{"alltoall", "bandwidth", "base", "boot", "burn", "dhcp", "dnf", "dpu", "gates", "gres", "hosts", "install", "inventory", "ironrail", "kubelet", "list", "make", "manifest", "mpirun", "netplan", "node", "nodes", "opensm", "opensmd", "partitions", "repo", "report", "security", "sendrecv", "state", "tls", "topology", "undionly", "validate"}

// others are such texts in an area that has checks: a label, a fact, a measure.
var others = []string{"host.cpu", "host.memory", "nics.settings", "network.tcp", "bmc.report", "switch.configuration", "fabric.subnet", "fabric.suspects", "kubernetes.io", "slurm.shut"}

// reported finds the names of checks in the source: the texts of that form in the
// packages that know diagnostics. A name may reach diag.List.Add through a
// variable, a table or a function, so that looking at calls of Add alone would
// miss some.
func reported(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	texts := map[string][]*ast.BasicLit{}
	knows := map[string]bool{"inventory/diag": true}
	set := token.NewFileSet()
	for _, layer := range layers {
		err := filepath.WalkDir(filepath.Join(top, layer), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "checktest"):
				return filepath.SkipDir
			case filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			f, err := parser.ParseFile(set, path, nil, 0)
			if err != nil {
				return err
			}
			dir, _ := filepath.Rel(top, filepath.Dir(path))
			collect(f, filepath.ToSlash(dir), texts, knows)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for dir, list := range texts {
		for _, l := range list {
			name, _ := strconv.Unquote(l.Value)
			area, _, _ := strings.Cut(name, ".")
			if knows[dir] && checkForm.MatchString(name) && !strings.HasSuffix(name, ".md") && !slices.Contains(otherAreas, area) && !slices.Contains(others, name) {
				names[name] = set.Position(l.Pos()).String()
			}
		}
	}
	return names
}

// collect gathers the texts of a file, and whether it knows diagnostics.
func collect(f *ast.File, dir string, texts map[string][]*ast.BasicLit, knows map[string]bool) {
	for _, i := range f.Imports {
		if i.Path.Value == `"github.com/ironrail/ironrail/inventory/diag"` {
			knows[dir] = true
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if _, ok := n.(*ast.ImportSpec); ok {
			return false
		}
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			texts[dir] = append(texts[dir], l)
		}
		return true
	})
}

// Every check of the source has a page, and every page a check.
func TestPages(t *testing.T) {
	t.Parallel()
	names := reported(t)
	if len(names) < 50 {
		t.Fatalf("only %d checks were found: this test reads the wrong folder", len(names))
	}
	have := map[string]bool{}
	for _, p := range All() {
		have[p.Name] = true
		if names[p.Name] == "" {
			t.Errorf("docs/checks/%s.md: no source reports this check", p.Name)
		}
	}
	for name, at := range names {
		if !have[name] {
			t.Errorf("%s: %q has no page docs/checks/%s.md (or it is no check: then otherAreas of this test names it)", at, name, name)
		}
	}
}

// Every page has its name and the four sections, each with words.
func TestSections(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		if !strings.HasPrefix(p.text, "# "+p.Name+"\n") {
			t.Errorf("%s: the page does not start with its name", p.Name)
		}
		at := 0
		for _, s := range Sections {
			i := strings.Index(p.text[at:], "\n## "+s+"\n")
			if i < 0 {
				t.Errorf("%s: no section %q in its place", p.Name, s)
				continue
			}
			at += i
			if section(p.text, s) == "" {
				t.Errorf("%s: section %q is empty", p.Name, s)
			}
		}
		if n := strings.Count(p.text, "\n## "); n != len(Sections) {
			t.Errorf("%s: %d sections, want %d", p.Name, n, len(Sections))
		}
		if p.What == "" || len(p.What) > 260 {
			t.Errorf("%s: the first sentence of What has %d characters, of at most 260: %q", p.Name, len(p.What), p.What)
		}
	}
}

// Every check is in the table of docs/language.md.
func TestLanguage(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join(top, "docs", "language.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(b), "\n| check | what it finds |")
	if !ok {
		t.Fatal("docs/language.md has no table of checks")
	}
	for _, p := range All() {
		if !strings.Contains(table, "`"+p.Name+"`") {
			t.Errorf("the table of checks in docs/language.md does not name `%s`", p.Name)
		}
	}
}

// The index names each page with its first sentence.
func TestIndex(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# The checks\n\nWhat `ironrail check` can report, by area; `ironrail check --explain NAME` prints a page in the terminal. An error that a\nsite knows better is lowered to a warning by `allow \"NAME\" { reason = \"...\" }`, or for one node by its `override`; the\npages say where that cannot be. This list is made from the pages: `go test ./docs/checks -update`.\n")
	area := ""
	for _, p := range All() {
		if p.Area() != area {
			area = p.Area()
			fmt.Fprintf(&b, "\n## %s\n\n", area)
		}
		fmt.Fprintf(&b, "- [%s](%s.md): %s.\n", p.Name, p.Name, p.What)
	}
	if *update {
		if err := os.WriteFile(index, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(index)
	if err != nil || string(got) != b.String() {
		t.Errorf("%s is not what the pages say (%v): run go test ./docs/checks -update", index, err)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	if p, _, ok := Find("unit.overlap"); !ok || p.Name != "unit.overlap" {
		t.Errorf("unit.overlap: %v %v", p.Name, ok)
	}
	if _, hint, ok := Find("unit.overlop"); ok || hint != "unit.overlap" {
		t.Errorf("unit.overlop: hint %q", hint)
	}
	if _, _, ok := Find("README"); ok {
		t.Error("the index is a page")
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	p := Page{text: "# a.b\n\n## What\n\nOne two\nthree [four](x.md).\n\n- a point\n  of two lines\n\n    allow \"a.b\" {\n    }\n"}
	want := "a.b\n\nWhat\n\n  One two\n  three four.\n\n  - a point\n  of two\n  lines\n\n      allow \"a.b\" {\n      }\n"
	if got := p.Plain(13); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestFirstSentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"One two. Three.":      "One two",
		"One 2.5 m\ntwo.\n\nX": "One 2.5 m two",
		"One of:\n\n- a":       "One of",
		"One, e.g. two. X":     "One, e.g. two",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// The examples of the pages are of the language, and what they allow is a check.
func TestExamples(t *testing.T) {
	t.Parallel()
	allow := regexp.MustCompile(`(?m)^ *allow "([^"]*)"|allow += \["([^"]*)"\]`)
	known := map[string]bool{}
	for _, p := range All() {
		known[p.Name] = true
	}
	seen := 0
	for _, p := range All() {
		var b strings.Builder
		for line := range strings.Lines(p.text) {
			if code, ok := strings.CutPrefix(line, "    "); ok {
				b.WriteString(code)
				seen++
			} else {
				b.WriteString("\n")
			}
		}
		if _, diags := hclsyntax.ParseConfig([]byte(b.String()), p.Name+".md", hcl.InitialPos); diags.HasErrors() {
			t.Errorf("the example of %s is not HCL: %v", p.Name, diags)
		}
		for _, m := range allow.FindAllStringSubmatch(b.String(), -1) {
			if name := m[1] + m[2]; !known[name] {
				t.Errorf("the example of %s allows %q, which is no check", p.Name, name)
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d lines of examples were found", seen)
	}
}
