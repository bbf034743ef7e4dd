// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/tool"
)

// samples are the files of testdata, by path. The name of a file up to the first
// dot is the format that it is of; what stands between two dots tells several apart.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = data
	}
	return all
}

// kindOf is the format that a sample is of.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(filepath.Base(name), ".")
	return kind
}

func TestEveryFormatHasASampleAndARowInTheDocuments(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/read.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for name := range samples(t) {
		have[kindOf(name)] = true
		if !slices.Contains(Kinds(), kindOf(name)) {
			t.Errorf("%s is of no format of the list", name)
		}
	}
	for _, kind := range Kinds() {
		if !have[kind] {
			t.Errorf("%s has no sample testdata/%s.*", kind, kind)
		}
		if !bytes.Contains(page, []byte("\n| `"+kind+"` |")) {
			t.Errorf("docs/read.md has no row for %s", kind)
		}
	}
	if kinds := Kinds(); len(slices.Compact(slices.Clone(kinds))) != len(kinds) {
		t.Errorf("a format is there twice: %q", kinds)
	}
}

// TestLongSamples reads every sample, as it is and as launchers, terminals and
// documents bring it: the content is the same. `make nightly` has each in all of these.
func TestLongSamples(t *testing.T) {
	t.Parallel()
	all := samples(t)
	for i, name := range slices.Sorted(maps.Keys(all)) {
		step := 3 // each sample in a third of them, each of them with many samples
		switch {
		case *cuts == "all":
			step = 1
		case testing.Short():
			step = len(wrappings)
		}
		data := all[name]
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			want := encoded(t, name, data)
			for at := i % step; at < len(wrappings); at += step {
				w := wrappings[at]
				if got := encoded(t, name, w.wrap(data)); got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", w.name, got, want)
				}
			}
		})
	}
}

// encoded reads a sample and returns its content as JSON.
func encoded(t *testing.T, name string, data []byte) string {
	t.Helper()
	r, err := Read(name, data)
	if err != nil {
		t.Fatalf("%s: %v (%s)", name, err, errkind.Action(err))
	}
	if r.Kind != kindOf(name) {
		t.Fatalf("%s is read as %s", name, r.Kind)
	}
	if r.Problems == nil {
		t.Error("problems are null")
	}
	s, ok := r.Content.(tool.Summarizer)
	if !ok {
		t.Fatalf("%s: content %T has no summary", name, r.Content)
	}
	lines := s.Summary()
	if len(lines) == 0 || strings.Contains(strings.Join(lines, ""), "\n") {
		t.Errorf("summary %q", lines)
	}
	out, err := json.Marshal(r.Content)
	if err != nil {
		t.Fatal(err)
	}
	return placed.ReplaceAllString(string(out), "")
}

// placed is the line of something in the file, which a document around it moves.
var placed = regexp.MustCompile(`"line":\d+,?`)

// each changes every line of a text but the empty rest behind the last one.
func each(data []byte, change func(string) string) []byte {
	var b bytes.Buffer
	for line := range strings.Lines(string(data)) {
		b.WriteString(change(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.Bytes()
}

func prefixed(with string) func([]byte) []byte {
	return func(data []byte) []byte { return each(data, func(line string) string { return with + line }) }
}

// utf16Text is a text in UTF-16, little end first, with its mark.
func utf16Text(s string) string {
	out := []byte("\xff\xfe")
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

var wrappings = []struct {
	name string
	wrap func([]byte) []byte
}{
	{"byte order mark", func(data []byte) []byte { return append([]byte("\xef\xbb\xbf"), data...) }},
	{"CRLF", func(data []byte) []byte { return each(data, func(line string) string { return line + "\r" }) }},
	{"colours", func(data []byte) []byte {
		return each(data, func(line string) string { return "\x1b[1;32m" + line + "\x1b[0m" })
	}},
	{"mpirun", prefixed("[1,0]<stdout>:")},
	{"mpirun of Open MPI 5", prefixed("[prterun-n1-123@1,0]<stdout>: ")},
	{"srun", prefixed("0: ")},
	{"srun of many", prefixed(" 12: ")},
	{"pdsh", prefixed("node-01: ")},
	{"kubectl", prefixed("[pod/launcher-x7/main] ")},
	{"indentation", prefixed("    ")},
	{"UTF-16 of Windows", func(data []byte) []byte { return []byte(utf16Text(string(data))) }},
	{"indented mpirun", prefixed("   [1,0]<stdout>:")},
	{"times of kubectl", prefixed("2026-11-20T01:02:03.123456789Z ")},
	{"times and srun", prefixed("2026-11-20T01:02:03+00:00 0: ")},
	{"docker compose", prefixed("launcher-1  | ")},
	{"quotation", prefixed("> ")},
	{"quotation of a quotation", prefixed("> > ")},
	{"prompt and trace", func(data []byte) []byte {
		return slices.Concat([]byte("+ run it --now\nroot@node-01:~# run it --now\n"), data, []byte("root@node-01:~# \n"))
	}},
	{"fence in a quotation", func(data []byte) []byte {
		return slices.Concat([]byte("> It says:\n>\n> ```\n"), prefixed("> ")(data), []byte("> ```\n"))
	}},
	{"fence", func(data []byte) []byte {
		return slices.Concat([]byte("# How it was\n\nWe ran it so:\n\n```console\n"), data, []byte("\n```\n\nAnd that was it.\n"))
	}},
	{"fence in a list", func(data []byte) []byte {
		return slices.Concat([]byte("1. We ran it so:\n\n   ```\n"), prefixed("   ")(data), []byte("   ```\n"))
	}},
}

// cuts says where samples are cut, and how many documents they are put in.
var cuts = flag.String("cuts", "some", "places to cut each sample at, and documents to put it in: some or all")

// TestTornSamples cuts every sample anywhere: nothing panics, and what is read can
// be written as JSON.
func TestTornSamples(t *testing.T) {
	t.Parallel()
	for name, data := range samples(t) {
		step := 7 // 40 is no multiple of it
		if *cuts == "all" {
			step = 1
		}
		for i := 0; i < 40; i += step {
			r, err := Read(name, data[:len(data)*i/40])
			if err != nil {
				continue
			}
			if _, err := json.Marshal(r); err != nil {
				t.Errorf("%s, %d/40: %v", name, i, err)
			}
		}
	}
}

// word is a format that every text with a certain word is of.
func word(name string, sure int) tool.Format {
	return tool.Format{
		Name: name,
		Is: func(b []byte) int {
			if regexp.MustCompile(`(?m)^` + name + `\b`).Match(b) {
				return sure
			}
			return 0
		},
		Parse: func(b []byte) (any, tool.Problems, error) {
			if bytes.Contains(b, []byte("not "+name)) {
				return nil, nil, errors.New("not after all")
			}
			return string(b), nil, nil
		},
	}
}

func TestChoice(t *testing.T) {
	t.Parallel()
	merged := word("job", 90)
	merged.Merged = true
	known := []tool.Format{word("alpha", 90), word("beta", 90), word("weak", 40), merged}
	for _, c := range []struct{ name, in, kind, err string }{
		{"one", "alpha 1\n", "alpha", ""},
		{"more sure", "weak\nalpha\n", "alpha", ""},
		{"as sure", "beta\nalpha\n", "", "alpha as well as of beta"},
		{"not after all", "alpha\nbeta\nnot alpha", "", "alpha as well"},
		{"next best", "alpha\nweak\nnot alpha", "weak", ""},
		{"none", "gamma\n", "", "no program that is known"},
		{"empty", " \n\t\n", "", "empty"},
		{"gzip", "\x1f\x8b\x08", "", "compressed with gzip"},
		{"UTF-16", utf16Text("alpha 1\n"), "alpha", ""},
		{"UTF-16 of nothing known", utf16Text("gamma"), "", "no program that is known"},
		{"torn UTF-16", "\xff\xfea", "", "no program that is known"},
		{"bytes", "\x7fELF\x02\x00\x00alpha\n", "", "no text"},
		{"too large", strings.Repeat("alpha\n", MaxSize/6+1), "", "larger than 64 MiB"},
		{"two nodes mixed", strings.Repeat("n1: alpha\nn2: alpha\n", 3), "", "lines of 2 nodes"},
		{"two ranks are one job", strings.Repeat("0: job\n1: job\n", 3), "job", ""},
		{"keys are no labels", "alpha: 1\nbeta2: 2\nbeta3: 3\n", "alpha", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := readAs(known, "f", []byte(c.in), origin{})
			if r.Kind != c.kind || fmt.Sprint(err) != "<nil>" != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v; want %q, %q", r.Kind, err, c.kind, c.err)
			}
			if err != nil && errkind.Action(err) == "" {
				t.Error("the error has no next action")
			}
		})
	}
}

// TestLargeTexts: a table below a log of many megabytes is found.
func TestLargeTexts(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/nccl-tests.two-nodes.txt")
	if err != nil {
		t.Fatal(err)
	}
	log := bytes.Repeat([]byte("r01-u01:4100:4188 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/IB/0/GDRDMA\n"), 60_000)
	r, err := Read("large", append(log, table...))
	if err != nil || r.Kind != "nccl-tests" || len(r.Problems) != 0 {
		t.Errorf("%v, %s, %v", err, r.Kind, r.Problems)
	}
}

func TestVariantsKeepLines(t *testing.T) {
	t.Parallel()
	in := []byte("\xef\xbb\xbftext\r\n```\r\n  10%\r  99%\r\n\x1b[31m  red\x1b[0m\r\n```\r\nend")
	for _, v := range listVariants(in) {
		if got := bytes.Count(v.data, []byte("\n")); got != 5 {
			t.Errorf("%d line ends in %q", got, v.data)
		}
	}
	all := listVariants(in)
	if got, want := string(all[0].data), "text\n```\n  99%\n  red\n```\nend"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := string(all[len(all)-1].data), "\n\n99%\nred\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzRead(f *testing.F) {
	for _, data := range samples(f) {
		f.Add(data)
	}
	f.Add([]byte("[1,0]<stdout>:#  size\n```\n0: x\n```\n\x1b]0;t\x07"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read("f", data)
		if err != nil {
			return
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", r.Kind, err)
		}
		if s, ok := r.Content.(tool.Summarizer); !ok || len(s.Summary()) == 0 {
			t.Errorf("%s has no summary", r.Kind)
		}
	})
}
