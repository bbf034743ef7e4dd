// SPDX-License-Identifier: Apache-2.0

// Package tooltest is what the tests of parsers share: the samples beside
// tool/recognise, problems that are asked for, and what every parser bears.
package tooltest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// ReadSample returns a file of tool/recognise/testdata.
func ReadSample(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sampleFolder(t), "recognise", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// ReadPublic returns an output of other people, which lies outside of the repository
// and is not everywhere.
func ReadPublic(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(sampleFolder(t), "..", "..", "shared", "samples", name))
	if err != nil {
		t.Skip("the samples of other people are not here")
	}
	return string(data)
}

// sampleFolder returns the folder of package tool, which that of the test is in.
func sampleFolder(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for filepath.Base(dir) != "tool" {
		if dir == filepath.Dir(dir) {
			t.Fatal("the test is in no folder below tool")
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// WantProblem is a problem that must be there: its kind, its line (0: any) and a part of
// its text.
func WantProblem(t testing.TB, problems tool.Problems, kind tool.ProblemKind, line int, text string) {
	t.Helper()
	if !slices.ContainsFunc(problems, func(p tool.Problem) bool {
		return p.Kind == kind && (line == 0 || p.Line == line) && strings.Contains(p.Text, text)
	}) {
		t.Errorf("no problem %s on line %d: %s; there are %v", kind, line, text, problems)
	}
}

// WantNoProblems reports problems where there are none.
func WantNoProblems(t testing.TB, problems tool.Problems) {
	t.Helper()
	if len(problems) != 0 {
		t.Errorf("problems %v", problems)
	}
}

// Case is a sample that is wrong in one place.
type Case struct {
	Name, From, To string
	Kind           tool.ProblemKind
	Line           int
	Text           string
}

// CheckWrong changes a sample that is right in one place each.
func CheckWrong(t *testing.T, format tool.Format, good string, cases []Case) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(good, c.From) {
				t.Fatalf("the sample has no %q", c.From)
			}
			_, problems, err := format.Parse([]byte(strings.Replace(good, c.From, c.To, 1)))
			if err != nil {
				t.Fatal(err)
			}
			WantProblem(t, problems, c.Kind, c.Line, c.Text)
		})
	}
}

// CheckTorn cuts an output at every byte: what is read without a problem is whole, but
// where fine says that no reader can know.
func CheckTorn(t *testing.T, format tool.Format, good string, fine func(rest string) bool) {
	t.Helper()
	end := strings.TrimRight(good, " \t\r\n")
	for n := range len(end) {
		_, problems, err := format.Parse([]byte(good[:n]))
		if err == nil && len(problems) == 0 && !fine(good[:n]) {
			t.Errorf("%d of %d bytes, ending in %q: no problem", n, len(good), good[max(0, n-40):n])
		}
	}
	if _, problems, err := format.Parse([]byte(end)); err != nil || len(problems) != 0 {
		t.Errorf("without the last line break: %v, %v", problems, err)
	}
}

// Fuzz feeds a parser anything: what it returns can be written, has a summary,
// and does not outgrow the input.
func Fuzz(f *testing.F, format tool.Format, samples ...string) {
	for _, name := range samples {
		f.Add([]byte(ReadSample(f, name)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		format.Is(data)
		content, problems, err := format.Parse(data)
		if err != nil {
			return
		}
		out, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := content.(tool.Summarizer); !ok || len(s.Summary()) == 0 {
			t.Error("no summary")
		}
		if lines := bytes.Count(data, []byte("\n")) + 1; len(out) > 400*(len(data)+2) || len(problems) > 8*lines+20 {
			t.Errorf("%d bytes of JSON and %d problems of %d bytes", len(out), len(problems), len(data))
		}
	})
}
