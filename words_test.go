// SPDX-License-Identifier: Apache-2.0

package ironrail

import (
	"go/ast"
	"go/parser"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// plainWords are words that are not used, in names, comments, messages and pages, each
// with the term of the field that stands in its place. A word is put here once nothing
// uses it any more.
var plainWords = map[string]string{
	"alien":     "unknown",
	"excuses":   "reasons",
	"foretell":  "preview",
	"foretells": "preview",
	"foretold":  "preview",
	"ghost":     "tombstone",
	"inert":     "no effect, or what is really done",
	"learner":   "reader",
	"mend":      "fix",
	"mended":    "fixed",
	"mending":   "fixing",
	"mends":     "fixes",
	"onlook":    "read-only",
	"onlooker":  "read-only",
	"overlaid":  "overridden",
	"recalled":  "records of parts",
	"renews":    "triggers",
	"sighting":  "event",
	"sightings": "events",
	"stranger":  "unknown client",
	"strangers": "unknown clients",
	"teller":    "recorder",
	"unsure":    "ambiguous",
	"untold":    "unknown",
	"unwritten": "edits that are not applied",
	"wish":      "option, or request",
	"wishes":    "options, or requests",
	"witness":   "recorder, or observer",
}

// plainPhrases are the same of several words.
var plainPhrases = map[string]string{
	"did not tell":            "did not report",
	"do not tell":             "do not report",
	"does not tell":           "does not report",
	"does nothing with it":    "ignored",
	"for ever":                "forever",
	"goes on with":            "continues with",
	"gone on with":            "continued",
	"half of its kind":        "P50",
	"leads nowhere":           "fails",
	"led nowhere":             "failed",
	"nine of ten":             "P90",
	"nineteen of twenty":      "P95",
	"nothing is done to it":   "automation is paused",
	"nothing is done with it": "automation is paused",
	"odd one out":             "outlier",
	"put right":               "fixed",
	"told apart":              "distinguished",
}

// storedWords are words that stay in a file since they are stored, or the term of
// somebody else.
var storedWords = map[string][]string{
	"words_test.go":             {"*"},
	"engine/plan/plan.go":       {"renews"}, // a field of saved plans
	"engine/state/quickplan.go": {"renews"}, // it reads that field
}

var (
	wordParts   = regexp.MustCompile(`[A-Z]+[a-z]*|[a-z]+`)
	spaceOfText = regexp.MustCompile(`[\s/]+`)
)

// TestPlainWords: sources and pages use the terms of the field.
func TestPlainWords(t *testing.T) {
	t.Parallel()
	read := 0
	phrases := regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(plainPhrases)), "|") + `)\b`)
	check := func(path string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		read++
		keeps := storedWords[filepath.ToSlash(path)]
		if slices.Contains(keeps, "*") {
			return
		}
		used := map[string]bool{}
		for _, w := range wordParts.FindAllString(string(b), -1) {
			used[strings.ToLower(w)] = true
		}
		for _, w := range slices.Sorted(maps.Keys(plainWords)) {
			if used[w] && !slices.Contains(keeps, w) {
				t.Errorf("%s: %q is not used here: say %s", path, w, plainWords[w])
			}
		}
		text := strings.ToLower(spaceOfText.ReplaceAllString(string(b), " "))
		for _, w := range phrases.FindAllString(text, -1) {
			t.Errorf("%s: %q is not used here: say %s", path, w, plainPhrases[w])
		}
	}
	eachGoFile(t, check)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checks, err := filepath.Glob("docs/checks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range append(append(pages, checks...), "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md") {
		check(p)
	}
	if read < 1000 {
		t.Fatalf("only %d files were read: this test reads the wrong folder", read)
	}
}

// oneWordShare is the largest share of package-level functions whose name is one word,
// in percent. It only goes down.
const oneWordShare = 20

// TestFunctionsSayVerbAndObject: a function that has no receiver to say what it is about
// says it by its name.
func TestFunctionsSayVerbAndObject(t *testing.T) {
	t.Parallel()
	one, all := 0, 0
	files(t, 0, func(_, file string, f *ast.File) {
		if strings.HasSuffix(file, "_test.go") {
			return
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || fn.Name.Name == "main" {
				continue
			}
			if all++; len(wordParts.FindAllString(fn.Name.Name, -1)) == 1 {
				one++
			}
		}
	})
	if all < 3000 {
		t.Fatalf("only %d functions were seen: this test reads the wrong folder", all)
	}
	share := 100 * float64(one) / float64(all)
	t.Logf("%d of %d functions, %.1f %%", one, all, share)
	if share > oneWordShare {
		t.Errorf("%.1f %% of the functions of packages have a name of one word, more than %d %%: say verb and object", share, oneWordShare)
	}
}

// eachGoFile calls see with each Go file of the repository.
func eachGoFile(t *testing.T, see func(path string)) {
	t.Helper()
	files(t, parser.PackageClauseOnly, func(_, file string, _ *ast.File) { see(file) })
}
