// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/gaps"
)

// ranApp is what a command printed.
type ranApp struct{ out, err string }

// runIn runs a command on a site.
func runIn(t *testing.T, dir string, args ...string) ranApp {
	t.Helper()
	var out, err bytes.Buffer
	a := &app{out: &out, err: &err, environ: func(string) (string, bool) { return "", false }, now: func() time.Time { return time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC) }}
	a.run(t.Context(), append([]string{"-C", dir}, args...))
	return ranApp{out.String(), err.String()}
}

// gapsIn is the list of gaps in the JSON that a command printed.
func gapsIn(t *testing.T, of ranApp) gaps.List {
	t.Helper()
	var got struct {
		Gaps *gaps.List `json:"gaps"`
	}
	if err := json.Unmarshal([]byte(of.out), &got); err != nil || got.Gaps == nil {
		t.Fatalf("no list of gaps: %v\n%s\n%s", err, of.out, of.err)
	}
	return *got.Gaps
}

// gapsTitle begins the list that a command prints.
const gapsTitle = "What the files ask for and this version does not do as asked: "

// printedGaps is the list that a command printed for a person; "" for none.
func printedGaps(text string) string {
	_, rest, found := strings.Cut(text, gapsTitle)
	if !found {
		return ""
	}
	lines := strings.SplitAfter(rest, "\n")
	end := slices.IndexFunc(lines[1:], func(l string) bool { return !strings.HasPrefix(l, "  ") })
	return strings.Join(lines[:end+1], "")
}

// TestLongGapsAreShownAlike: check, plan and rehearse show the same list of what a site does
// not get as asked, as data and as text, whether the plan is refused or not.
func TestLongGapsAreShownAlike(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Glob("../../examples/*/site.hcl")
	if err != nil || len(examples) < 6 {
		t.Fatalf("only %d examples: %v", len(examples), err)
	}
	for _, site := range examples {
		name := filepath.Base(filepath.Dir(site))
		if testing.Short() && (name == "scale" || name == "csv-12500" || name == "h100-4su") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			copySite(t, dir, filepath.Dir(site))
			checked := gapsIn(t, runIn(t, dir, "check", "--json"))
			onlyToBuild(t, checked)
			planned := runIn(t, dir, "plan", "--offline", "--json")
			if list := gapsIn(t, planned); !reflect.DeepEqual(list, checked) {
				t.Errorf("check lists\n%s\nand plan\n%s", strings.Join(checked.Lines(), "\n"), strings.Join(list.Lines(), "\n"))
			}
			refusalsIn(t, planned, checked)
			text := runIn(t, dir, "plan", "--offline")
			if got, want := printedGaps(text.out+text.err), printedGaps(runIn(t, dir, "check").out); got != want || (want == "") != (len(checked) == 0) {
				t.Errorf("check prints\n%s\nand plan\n%s", want, got)
			}
			rehearsedAlike(t, dir, checked)
		})
	}
}

// copySite copies the files of a site, without hidden folders: where the lab has run, its
// sockets lie in one.
func copySite(t *testing.T, to, from string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			err = os.CopyFS(target, os.DirFS(source))
		default:
			var b []byte
			if b, err = os.ReadFile(source); err == nil {
				err = os.WriteFile(target, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// onlyToBuild wants nothing in the list of a site but images and packages that are not
// built and mirrored yet, each with the command that does it.
func onlyToBuild(t *testing.T, list gaps.List) {
	t.Helper()
	for _, g := range list {
		switch {
		case g.Kind != gaps.NotBuilt && g.Kind != gaps.NotMirrored:
			t.Errorf("the list has %s", g.Line())
		case !strings.Contains(g.Detail, "`ironrail image build "):
			t.Errorf("without what to do: %s", g.Line())
		}
	}
}

// refusalsIn wants each reason for which a plan was refused in a list of gaps.
func refusalsIn(t *testing.T, planned ranApp, list gaps.List) {
	t.Helper()
	var got struct {
		Reasons []reasonJSON `json:"reasons"`
	}
	if err := json.Unmarshal([]byte(planned.out), &got); err != nil {
		t.Fatal(err)
	}
	for _, r := range got.Reasons {
		if !slices.ContainsFunc(list, func(g gaps.Gap) bool { return g.Summary == r.Cause }) {
			t.Errorf("the plan is refused for %q, which is not in its list", r.Cause)
		}
	}
}

// rehearsedAlike compares what a rehearsal of a site is refused for with a list of gaps.
func rehearsedAlike(t *testing.T, dir string, checked gaps.List) {
	t.Helper()
	var said bytes.Buffer
	a := &app{err: &said, dir: dir, environ: os.LookupEnv, now: time.Now}
	inv, diags, _ := a.loadInventory()
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if got := a.gapsOf(inv); !slices.Equal(got.Lines(), checked.Lines()) {
		t.Errorf("a rehearsal lists\n%s", strings.Join(got.Lines(), "\n"))
	}
	refused, err := provision.Refusals(inv)
	if err != nil || refused.HasErrors() != (len(checked.Of(gaps.Refused)) > 0) {
		t.Errorf("a rehearsal is refused for %v, %v; the list has\n%s", refused, err, strings.Join(checked.Lines(), "\n"))
	}
	for _, d := range refused {
		if !slices.ContainsFunc(checked, func(g gaps.Gap) bool {
			return g.Summary == d.Summary && (g.Block == "node" || g.Place.Line == d.Subject.Start.Line)
		}) {
			t.Errorf("a rehearsal is refused for %q at %v, which is not in the list", d.Summary, d.Subject)
		}
	}
}
