// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

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
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, bin, args...).CombinedOutput()
	return string(out), err
}

// helpTexts are what --help says, by command: pages name the same ones again and again.
var helpTexts sync.Map

// help returns what a command says of itself.
func help(t *testing.T, command ...string) string {
	t.Helper()
	key := strings.Join(command, " ")
	if text, ok := helpTexts.Load(key); ok {
		return text.(string)
	}
	text, err := run(t, append(slices.Clone(command), "--help")...)
	if err != nil {
		t.Errorf("ironrail %s --help: %v", key, err)
	}
	helpTexts.Store(key, text)
	return text
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
	_, list, _ := strings.Cut(help(t, under...), "\nUsage:\n")
	list, _, _ = strings.Cut(list, "Flags:\n")
	_, list, found := strings.Cut(list, "\n\n") // groups of commands, each below its heading
	if !found {
		return nil
	}
	if len(under) > 0 { // one group, with examples before it
		if _, list, found = strings.Cut(list, "Available Commands:\n"); !found {
			return nil
		}
	}
	var out []string
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(line, "  ") || name == "ironrail" {
			continue
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
	text := help(t, path...)
	for _, flag := range long.FindAllString(line, -1) {
		if !regexp.MustCompile(regexp.QuoteMeta(flag) + `\b`).MatchString(text) {
			t.Errorf("%s: `ironrail %s`: %v has no flag %s", page, line, path, flag)
		}
	}
}

func TestSiteOfTheGuideHasNoErrors(t *testing.T) {
	t.Parallel()
	out, err := run(t, "-C", guideSite(t), "check")
	if err != nil || strings.Contains(out, "warning:") {
		t.Errorf("check: %v\n%s", err, out)
	}
}

func TestLongSiteOfTheGuideComesUp(t *testing.T) {
	if testing.Short() {
		t.Skip("a rehearsal")
	}
	t.Parallel()
	for _, faults := range [][]string{nil, {"--fault", "kind=missing-dimm,node=g1"}} {
		if out, err := run(t, append([]string{"-C", guideSite(t), "rehearse"}, faults...)...); err != nil {
			t.Errorf("rehearse %v: %v\n%s", faults, err, out)
		}
	}
}

// guideSite writes the site of the guide into a folder.
func guideSite(t *testing.T) string {
	t.Helper()
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
	return dir
}
