// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// rackPage is the page whose examples the scripts of accidents compare.
const rackPage = "../../docs/rack.md"

// example is a command of the page, with what it prints by it.
type example struct {
	section, command string
	prints           []string
}

// examples are those of the page, below headings of the third level.
func examples() (list []example, err error) {
	b, err := os.ReadFile(rackPage)
	if err != nil {
		return nil, err
	}
	section, code := "", false
	for line := range strings.Lines(string(b)) {
		line = strings.TrimRight(line, "\n")
		switch command, is := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "### "):
			section = line[4:]
		case strings.HasPrefix(line, "```"):
			code = !code
		case !code || section == "":
		case is:
			list = append(list, example{section: section, command: command})
		case len(list) > 0:
			list[len(list)-1].prints = append(list[len(list)-1].prints, line)
		}
	}
	return list, nil
}

// varies is what is another at each run: times, durations, numbers of runs and processes.
var varies = regexp.MustCompile(`\d{4}-\d\d-\d\d|\d\d:\d\d(:\d\d)?|\b\d+(\.\d+)?m?s\b|p?\d{8}T\d{6}-[A-Z0-9]{6}|pid \d+| +`)

// isPrinted reports whether lines stand in a text one behind the other, but for what "[...]"
// leaves out.
func isPrinted(lines []string, text string) bool {
	have := strings.Split(strings.TrimRight(varies.ReplaceAllString(text, " "), "\n"), "\n")
	var at func(lines []string, from int) bool
	at = func(lines []string, from int) bool {
		switch {
		case len(lines) == 0:
			return true
		case lines[0] == "[...]":
			return len(lines) == 1 || slices.ContainsFunc(seq(from, len(have)), func(i int) bool { return at(lines[1:], i) })
		}
		return from < len(have) && have[from] == varies.ReplaceAllString(lines[0], " ") && at(lines[1:], from+1)
	}
	return at(lines, 0)
}

func seq(from, to int) (list []int) {
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// documented compares what the last command printed with an example of the page: documented
// SECTION COMMAND.
func documented(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: documented SECTION COMMAND")
	}
	all, err := examples()
	ts.Check(err)
	out, talk := ts.ReadFile("stdout"), ts.ReadFile("stderr")
	found := false
	for _, e := range all {
		if e.section != args[0] || e.command != args[1] {
			continue
		}
		found = true
		if slices.ContainsFunc([]string{out, talk, talk + out, out + talk}, func(text string) bool { return isPrinted(e.prints, text) }) {
			return
		}
	}
	ts.Fatalf("%s has what `%s` prints in section %q: %v; it prints something else", rackPage, args[1], args[0], found)
}

// TestRackPageIsCompared: a script compares every example of the page of the virtual rack.
func TestRackPageIsCompared(t *testing.T) {
	t.Parallel()
	all, err := examples()
	if err != nil || len(all) < 15 {
		t.Fatalf("%d examples: %v", len(all), err)
	}
	files, err := filepath.Glob("testdata/script/rack-*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	scripts := ""
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		scripts += string(b)
	}
	for _, e := range all {
		quoted := "documented '" + e.section + "' '" + strings.ReplaceAll(e.command, "'", "''") + "'\n"
		if !strings.Contains(scripts, quoted) {
			t.Errorf("no script has: %s", quoted)
		}
	}
	if isPrinted([]string{"a", "c"}, "a\nb\nc\n") || !isPrinted([]string{"a", "[...]", "c 03:00"}, "a\nb\nc 12:00:01\n") || isPrinted([]string{"[...]", "d"}, "a\n") {
		t.Error("lines are found where they are not, or the reverse")
	}
}
