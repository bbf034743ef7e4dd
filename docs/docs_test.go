// SPDX-License-Identifier: Apache-2.0

// Package docs_test holds the documents to the program: every command and flag
// that they name exists, the site in the guide has no errors, exit codes and
// packages are those of the source, and every link leads somewhere.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// top is the repository from here.
const top = ".."

// documents are all pages, by their path from the top of the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	names, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(names, "../README.md", "../CONTRIBUTING.md", "../CHANGELOG.md", "../SECURITY.md") {
		path := filepath.ToSlash(filepath.Join("docs", name))
		pages[path] = read(t, path)
	}
	if len(pages) < 6 {
		t.Fatalf("only %d documents were found: this test reads the wrong folder", len(pages))
	}
	return pages
}

// read returns a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(top, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// fence is a block between lines of three backquotes.
var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

// blocks returns the fenced blocks of one language; "" is that of plain ones.
func blocks(page, language string) (out []string) {
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	return out
}

// row is a line of a table that begins with a number.
var row = regexp.MustCompile(`(?m)^\| ([0-9]+) \|`)

func TestExitCodesAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	want := exitCodes(t)
	for _, page := range []string{"docs/guide.md"} {
		var got []string
		for _, m := range row.FindAllStringSubmatch(read(t, page), -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s lists the exit codes %q; cmd/ironrail has %q", page, got, want)
		}
	}
}

// exitCodes reads the constants exit* of the command, as text, sorted.
func exitCodes(t *testing.T) (codes []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(top, "cmd/ironrail/main.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Names) != 1 || len(v.Values) != 1 || !strings.HasPrefix(v.Names[0].Name, "exit") {
			return true
		}
		if lit, ok := v.Values[0].(*ast.BasicLit); ok {
			codes = append(codes, lit.Value)
		}
		return true
	})
	if len(codes) < 5 {
		t.Fatalf("cmd/ironrail/main.go has the exit codes %q: this test does not understand it", codes)
	}
	slices.Sort(codes)
	return codes
}

// link is a Markdown link; heading is a heading line.
var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	sign    = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the names that headings of a page are reached by.
func anchors(page string) []string {
	var out []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		out = append(out, strings.ReplaceAll(sign.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := documents(t)
	for name, page := range pages {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			path, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(path, "://") {
				continue
			}
			target := name
			if path != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
			}
			if _, err := os.Stat(filepath.Join(top, target)); err != nil {
				t.Errorf("%s: the link %q is dead", name, m[1])
			} else if anchor != "" && !slices.Contains(anchors(pages[target]), anchor) {
				t.Errorf("%s: %s has no heading for %q", name, target, m[1])
			}
		}
	}
}

// finding is a row of the guide's table of findings; apart is what stands for
// a name in it.
var (
	finding = regexp.MustCompile(`(?m)^\| ([^|]+) \|`)
	apart   = regexp.MustCompile(`\*[a-z]+\*|\.\.\.`)
)

func TestFindingsAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "docs/guide.md"), "| the finding says | look at |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := finding.FindAllStringSubmatch(table, -1)
	if len(rows) < 8 {
		t.Fatalf("the guide's table of findings has %d rows", len(rows))
	}
	var source strings.Builder
	for _, pattern := range []string{"provision/oob/*.go", "provision/install/*.go", "provision/agent/write/*.go", "provision/supply/*.go", "fabric/cabling/*.go"} {
		names, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.HasSuffix(name, "_test.go") {
				source.WriteString(read(t, strings.TrimPrefix(filepath.ToSlash(name), "../")))
			}
		}
	}
	for _, r := range rows {
		for _, piece := range apart.Split(r[1], -1) {
			if piece = strings.TrimSpace(piece); !strings.Contains(source.String(), piece) {
				t.Errorf("no finding of the program says %q", piece)
			}
		}
	}
}

// place is a path of the repository in a span.
var place = regexp.MustCompile("`((?:cmd|provision|images|inventory|fabric|validate|examples)(?:/[a-z_.-]+)*)`")

func TestPathsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for name, page := range documents(t) {
		if name == "docs/language.md" || name == "docs/glossary.md" {
			continue // their `inventory` and `images` may be words of the language
		}
		for _, m := range place.FindAllStringSubmatch(page, -1) {
			seen++
			if _, err := os.Stat(filepath.Join(top, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
	}
	if seen < 40 {
		t.Errorf("only %d paths were found in the documents", seen)
	}
}

func TestEveryPackageHasItsLayer(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/architecture.md")
	for _, parent := range []string{"provision", "images", "inventory"} {
		entries, err := os.ReadDir(filepath.Join(top, parent))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			dir := parent + "/" + e.Name()
			if e.IsDir() && e.Name() != "testdata" && e.Name() != "internal" && !strings.Contains(page, "`"+dir+"`") {
				t.Errorf("docs/architecture.md does not say where %s belongs", dir)
			}
		}
	}
}

func TestTestCommandIsThatOfCI(t *testing.T) {
	t.Parallel()
	const command = "make test"
	if !strings.Contains(read(t, "README.md"), "\n"+command+" ") {
		t.Errorf("README.md does not say how to test: %s", command)
	}
	if !slices.Contains(strings.Split(read(t, ".ci/run"), "\n"), command) {
		t.Errorf(".ci/run does not run %s", command)
	}
}

// made is a stage in the stage table.
var made = regexp.MustCompile(`(?m)^\t\t([a-z]+)\.New\(w\.inv`)

func TestEveryStageIsInTheTable(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/architecture.md")
	_, table, _ := strings.Cut(page, "\n## The stages\n")
	table, _, _ = strings.Cut(table, "\n## ")
	stages := made.FindAllStringSubmatch(read(t, "provision/stages.go"), -1)
	if len(stages) < 7 {
		t.Fatalf("provision/stages.go makes %d stages: this test does not understand it", len(stages))
	}
	for _, m := range stages {
		if !strings.Contains(table, "/"+m[1]+"` |") && !strings.Contains(table, "| `"+m[1]+"` |") {
			t.Errorf("docs/architecture.md has no stage of package %s in its table", m[1])
		}
	}
}
