// Package docs_test holds the documents to the program: every command and flag
// that they name exists, the site in the guide has no errors, exit codes and
// packages are those of the source, and every link leads somewhere.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
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
	for _, name := range append(names, "../README.md") {
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

// program builds ironrail once for all tests of this package. The sources are
// read here as well, so that go test does not answer from its cache after they
// changed.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ironrail-docs-")
	if err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(top, "cmd/ironrail/*.go"))
	if err != nil {
		return "", err
	}
	for _, s := range sources {
		if _, err := os.ReadFile(s); err != nil {
			return "", err
		}
	}
	bin := filepath.Join(dir, "ironrail")
	c := exec.Command("go", "build", "-o", bin, "./cmd/ironrail")
	c.Dir, c.Env = top, append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return bin, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// run runs ironrail and returns all that it prints.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatalf("build: %v", err)
	}
	out, err := exec.Command(bin, args...).CombinedOutput()
	return string(out), err
}

// Where a command line of ironrail stands: on a line of a plain block, or in
// a span of its own.
var (
	typed = regexp.MustCompile(`(?m)^(?:\$ )?ironrail ([a-z].*)$`)
	span  = regexp.MustCompile("`ironrail ([a-z][^`\n]*)`")
	word  = regexp.MustCompile(`^[a-z]+$`)
	long  = regexp.MustCompile(`--[a-z][a-z-]*`)
)

// commandLines are the command lines that a page names, without the program.
func commandLines(page string) (out []string) {
	for _, b := range blocks(page, "") {
		for _, m := range typed.FindAllStringSubmatch(b, -1) {
			out = append(out, m[1])
		}
	}
	for _, m := range span.FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// commands lists the words of every command, as far as help shows them:
// "image", "image build".
func commands(t *testing.T, under ...string) []string {
	t.Helper()
	help, err := run(t, append(slices.Clone(under), "--help")...)
	if err != nil {
		t.Fatalf("ironrail %v --help: %v", under, err)
	}
	_, list, found := strings.Cut(help, "Available Commands:\n")
	if !found {
		return nil
	}
	var out []string
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			break
		}
		path := append(slices.Clone(under), name)
		out = append(out, strings.Join(path, " "))
		if len(path) < 2 && name != "help" {
			out = append(out, commands(t, path...)...)
		}
	}
	return out
}

func TestCommandsExist(t *testing.T) {
	t.Parallel()
	known := commands(t)
	if !slices.Contains(known, "image build") {
		t.Fatalf("help lists %q: this test does not understand it", known)
	}
	seen := 0
	for name, page := range documents(t) {
		for _, line := range commandLines(page) {
			seen++
			checkCommand(t, name, line, known)
		}
	}
	if seen < 30 {
		t.Errorf("only %d command lines were found in the documents", seen)
	}
}

// checkCommand wants a command line to begin with a command, and its flags to be
// flags of that command.
func checkCommand(t *testing.T, page, line string, known []string) {
	t.Helper()
	words := strings.Fields(line)
	if !slices.Contains(known, words[0]) {
		t.Errorf("%s: `ironrail %s`: there is no command %q", page, line, words[0])
		return
	}
	path := words[:1]
	if len(words) > 1 && word.MatchString(words[1]) {
		sub := words[0] + " " + words[1]
		group := slices.ContainsFunc(known, func(k string) bool { return strings.HasPrefix(k, words[0]+" ") })
		switch {
		case slices.Contains(known, sub):
			path = words[:2]
		case group:
			t.Errorf("%s: `ironrail %s`: there is no command %q", page, line, sub)
			return
		}
	}
	help, err := run(t, append(slices.Clone(path), "--help")...)
	if err != nil {
		t.Errorf("ironrail %v --help: %v", path, err)
	}
	for _, flag := range long.FindAllString(line, -1) {
		if !regexp.MustCompile(regexp.QuoteMeta(flag) + `\b`).MatchString(help) {
			t.Errorf("%s: `ironrail %s`: %v has no flag %s", page, line, path, flag)
		}
	}
}

func TestSiteOfTheGuideHasNoErrors(t *testing.T) {
	t.Parallel()
	guide := read(t, "docs/guide.md")
	hcl, csv := blocks(guide, "hcl"), blocks(guide, "csv")
	if len(hcl) == 0 || len(csv) != 1 {
		t.Fatalf("the guide has %d blocks of HCL and %d of CSV", len(hcl), len(csv))
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"site.hcl": strings.Join(hcl, "\n"), "nodes.csv": csv[0]} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := run(t, "-C", dir, "check")
	if err != nil || strings.Contains(out, "warning:") {
		t.Errorf("check: %v\n%s", err, out)
	}
}

// row is a line of a table that begins with a number.
var row = regexp.MustCompile(`(?m)^\| ([0-9]+) \|`)

func TestExitCodesAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	want := exitCodes(t)
	for _, page := range []string{"README.md", "docs/guide.md"} {
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
				t.Errorf("%s: the link %q leads nowhere", name, m[1])
			} else if anchor != "" && !slices.Contains(anchors(pages[target]), anchor) {
				t.Errorf("%s: %s has no heading for %q", name, target, m[1])
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
