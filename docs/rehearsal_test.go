// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/provision"
	"github.com/ironrail/ironrail/provision/predict"
	"github.com/ironrail/ironrail/rehearse/rehearsal"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/redfish"
)

var update = flag.Bool("update", false, "write the tables of docs/rehearsal.md anew")

// rehearsalPage is where the tables stand.
const rehearsalPage = "docs/rehearsal.md"

// tables are those parts of the page that are made from the program, by the name
// in their marks.
var tables = map[string]func(*testing.T) string{
	"faults":     faultTable,
	"model":      modelTable,
	"prediction": predictionTable,
	"disks":      diskTable,
}

// marked is a part between `<!-- table NAME -->` and `<!-- end -->`.
var marked = regexp.MustCompile(`(?s)(<!-- table ([a-z]+) -->\n)(.*?)(<!-- end -->)`)

func TestTablesAreThoseOfTheProgram(t *testing.T) {
	page := read(t, rehearsalPage)
	seen := map[string]bool{}
	got := marked.ReplaceAllStringFunc(page, func(part string) string {
		m := marked.FindStringSubmatch(part)
		render := tables[m[2]]
		if render == nil {
			t.Errorf("nobody makes the table %q", m[2])
			return part
		}
		seen[m[2]] = true
		want := render(t)
		if m[3] != want && !*update {
			t.Errorf("the table %q is out of date: go test ./docs -update\n%s", m[2], firstDifference(m[3], want))
		}
		return m[1] + want + m[4]
	})
	if len(seen) != len(tables) {
		t.Errorf("the page has the tables %v, want %d", seen, len(tables))
	}
	if *update && got != page {
		if err := os.WriteFile(filepath.Join(top, rehearsalPage), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// firstDifference shows the first line that differs.
func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range w {
		if i >= len(g) || g[i] != w[i] {
			return "want: " + w[i]
		}
	}
	return fmt.Sprintf("%d lines too many", len(g)-len(w))
}

// faultTable lists the kinds of faults.
func faultTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| kind | what breaks | attributes | when | in service | suspects |\n|---|---|---|---|---|---|\n")
	for _, r := range fault.Rows() {
		var takes []string
		for _, n := range r.Needs {
			takes = append(takes, "**"+n+"**")
		}
		at := "from the start"
		if r.At != "" {
			at = "`" + r.At + "`"
		}
		late := "no"
		switch {
		case r.Passing:
			late = "begins late, comes and goes"
		case r.Serving:
			late = "begins late"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", r.Kind, r.Does, strings.Join(append(takes, r.Takes...), ", "), at, late, r.Suspects)
	}
	return b.String()
}

// sources are long words of the prediction's table and their marks.
var sources = []struct{ text, mark string }{
	{"measured in examples/lab (`make lab`: QEMU without KVM, 2 cores for 2 nodes and the controller)", "in the lab"},
	{"estimate, as nobody published a figure for nodes full of GPUs: ", "estimate: nobody published a figure for nodes full of GPUs; "},
	{"firmware self-test dominates a reboot: medians of 218 to 792 s by platform on cloud bare metal, 202 to 820 s in all (gitlab.com/testing-farm/infrastructure merge request 1526, 77 boots)", "[1]"},
	{"600 s is tight for nodes with a very long self-test (github.com/NVIDIA/deepops pull 779)", "[2]"},
	{"longer than 300 s on bare metal (github.com/microsoft/lisa pull 3082)", "[3]"},
	{"5 to 6 minutes and more (github.com/crowbar/crowbar-core pull 1872)", "[4]"},
	{"the operating system about 40 s after the self-test (openchami.org, blog booting-badger)", "[5]"},
}

// predictionTable lists the built-in durations.
func predictionTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| step | on | fast | expected | slow | source |\n|---|---|---|---|---|---|\n")
	for _, r := range provision.Durations() {
		if r.Planned {
			continue // its step says how long it takes
		}
		kind := "`" + r.Kind + "`"
		if r.Per.Name != "" {
			kind += ", each " + r.Per.Name
		}
		source := r.Source
		for _, s := range sources {
			source = strings.ReplaceAll(source, s.text, s.mark)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", kind, matches(r.Match), brief(r.Low), brief(r.Mid), brief(r.High), source)
	}
	for _, s := range sources {
		if page := read(t, rehearsalPage); strings.HasPrefix(s.mark, "[") && !strings.Contains(page, "\n"+s.mark+" ") {
			t.Errorf("%s does not say what %s is", rehearsalPage, s.mark)
		}
	}
	return b.String()
}

// matches says what hardware a row is about.
func matches(m predict.Match) string {
	var words []string
	if m.Disk != "" {
		words = append(words, m.Disk+" disks")
	}
	if m.Boot != "" {
		words = append(words, m.Boot)
	}
	if m.GPUs > 0 {
		words = append(words, fmt.Sprintf("%d GPUs or more", m.GPUs))
	}
	if m.Memory > 0 {
		words = append(words, m.Memory.String()+" or more")
	}
	return strings.Join(words, ", ")
}

// brief writes a duration without zero parts.
func brief(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	return s
}

// diskTable lists the rates of disks.
func diskTable(*testing.T) string {
	var b strings.Builder
	b.WriteString("| disk | written | read | source |\n|---|---|---|---|\n")
	for _, d := range predict.Disks {
		kind := d.Type
		if kind == "" {
			kind = "not given"
		}
		source := d.Source
		for _, s := range sources {
			source = strings.ReplaceAll(source, s.text, s.mark)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", kind, d.Write, d.Read, source)
	}
	return b.String()
}

// modelTable lists the constants of the physical model with their comments.
func modelTable(t *testing.T) string {
	t.Helper()
	path := filepath.Join(top, "rehearse/virtual/model/rates.go")
	src, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, path, src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| figure | is | from |\n|---|---|---|\n")
	rows := 0
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		about := oneLine(g.Doc)
		if rows == 0 {
			about = "" // that of the file as a whole
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				continue
			}
			if v.Doc != nil {
				about = oneLine(v.Doc)
			}
			value := string(src[set.Position(v.Values[0].Pos()).Offset:set.Position(v.Values[0].End()).Offset])
			for long, short := range map[string]string{" * time.Nanosecond": " ns", " * time.Microsecond": " µs"} {
				value = strings.ReplaceAll(value, long, short)
			}
			name := v.Names[0].Name
			for _, begin := range []string{name + " is ", name + ": "} {
				about = strings.TrimPrefix(about, begin)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, value, strings.TrimSpace(oneLine(v.Comment)+" "+about))
			about = "As above."
			rows++
		}
	}
	if rows < 20 {
		t.Errorf("only %d figures were found in %s", rows, path)
	}
	return b.String()
}

// oneLine is the text of a comment on one line, or nothing.
func oneLine(c *ast.CommentGroup) string {
	s := strings.Join(strings.Fields(c.Text()), " ")
	if s != "" && !strings.HasSuffix(s, ".") {
		s += "."
	}
	return strings.ReplaceAll(s, "|", "/")
}

func TestSummaryIsDescribed(t *testing.T) {
	t.Parallel()
	_, part, _ := strings.Cut(read(t, rehearsalPage), "\n## The summary\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var want []string
	for _, s := range []any{rehearsal.Summary{}, rehearsal.Quarantined{}, rehearsal.Waiting{}, rehearsal.Found{}, rehearsal.Planted{}} {
		for f := range fields(reflect.TypeOf(s)) {
			want = append(want, f)
		}
	}
	if len(want) < 20 {
		t.Fatalf("the summary has %d fields: this test does not understand it", len(want))
	}
	for _, f := range want {
		if !strings.Contains(part, "`"+f+"`") {
			t.Errorf("%s does not say what %q of the summary is", rehearsalPage, f)
		}
	}
}

// fields are the names of a struct's fields in JSON.
func fields(s reflect.Type) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range s.NumField() {
			name, _, _ := strings.Cut(s.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" && !yield(name) {
				return
			}
		}
	}
}

func TestPersonalitiesAreNamed(t *testing.T) {
	t.Parallel()
	page := read(t, rehearsalPage)
	for _, p := range redfish.Personalities() {
		if !strings.Contains(page, "\n| `"+p.Name+"` |") {
			t.Errorf("%s does not describe the personality %s", rehearsalPage, p.Name)
		}
	}
}

func TestMakeTargetsExist(t *testing.T) {
	t.Parallel()
	makefile := read(t, "Makefile")
	target := regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	seen := 0
	for name, page := range documents(t) {
		text := strings.Join(blocks(page, ""), "\n") + fence.ReplaceAllString(page, "")
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			seen++
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no `make %s`", name, m[1])
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d targets of make were found in the documents", seen)
	}
}

func TestPredictionIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	for _, page := range blocks(read(t, rehearsalPage), "") {
		if strings.HasSuffix(page, read(t, "provision/predict/testdata/64.txt")) {
			return
		}
	}
	t.Errorf("%s does not show provision/predict/testdata/64.txt", rehearsalPage)
}
