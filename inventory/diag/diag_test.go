// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hashicorp/hcl/v2"
)

func at(file string, line, col, start, end int) hcl.Range {
	return hcl.Range{Filename: file, Start: hcl.Pos{Line: line, Column: col, Byte: start}, End: hcl.Pos{Line: line, Column: col + end - start, Byte: end}}
}

const source = "node \"a\" {\n\tserial = \"S\x1b[2J1\"\n}\n"

func sample() List {
	var l List
	l.Add("serial.duplicate", at("b.hcl", 2, 11, 21, 29), "Serial used twice", "Serial \"S\x1b[2J1\" belongs to a and to b.").Also("used first here", at("a.hcl", 1, 6, 5, 8)).In(at("b.hcl", 1, 1, 0, 8)).Of("a", "b")
	l.Add("role.unused", at("a.hcl", 1, 1, 0, 4), "Role without nodes", "No node has it.").Warn()
	return l.Sort()
}

func TestText(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := WriteText(&b, sample(), Files{"b.hcl": []byte(source), "a.hcl": []byte("role \"b\" {}")}, 40); err != nil {
		t.Fatal(err)
	}
	const want = "warning: Role without nodes [role.unused]\n" +
		"  a.hcl:1:1\n" +
		"      1 | role \"b\" {}\n" +
		"        | ^^^^\n" +
		"  No node has it.\n" +
		"\n" +
		"error: Serial used twice [serial.duplicate]\n" +
		"  b.hcl:2:11\n" +
		"      1 | node \"a\" {\n" +
		"      2 |  serial = \"S␛[2J1\"\n" +
		"        |           ^^^^^^^^\n" +
		"  used first here:\n" +
		"  a.hcl:1:6\n" +
		"      1 | role \"b\" {}\n" +
		"        |      ^^^\n" +
		"  Serial \"S␛[2J1\" belongs to a and to b.\n"
	if b.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	raw, err := json.MarshalIndent(sample()[1:], "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `[
 {
  "severity": "error",
  "check": "serial.duplicate",
  "summary": "Serial used twice",
  "detail": "Serial \"S\u001b[2J1\" belongs to a and to b.",
  "subject": {
   "file": "b.hcl",
   "start": {
    "line": 2,
    "column": 11,
    "byte": 21
   },
   "end": {
    "line": 2,
    "column": 19,
    "byte": 29
   }
  },
  "related": [
   {
    "message": "used first here",
    "file": "a.hcl",
    "start": {
     "line": 1,
     "column": 6,
     "byte": 5
    },
    "end": {
     "line": 1,
     "column": 9,
     "byte": 8
    }
   }
  ],
  "context": {
   "file": "b.hcl",
   "start": {
    "line": 1,
    "column": 1,
    "byte": 0
   },
   "end": {
    "line": 1,
    "column": 9,
    "byte": 8
   }
  }
 }
]`
	if string(raw) != want {
		t.Errorf("got:\n%s", raw)
	}
	var back List
	if err := json.Unmarshal(raw, &back); err != nil || len(back) != 1 || back[0].Severity != Error {
		t.Errorf("read again: %+v, %v", back, err)
	}
	if raw, _ := json.Marshal(List(nil)); string(raw) != "[]" {
		t.Errorf("nothing is written %s, want []", raw)
	}
}

func TestSort(t *testing.T) {
	t.Parallel()
	var l List
	for range 2 { // a repetition is said once
		l.Add("x.y", at("b.hcl", 9, 1, 90, 91), "s", "d")
	}
	for i := range 5 { // more at one place are folded
		l.Add("x.z", at("a.hcl", 5, 1, 50, 51), "s", string(rune('a'+i)))
	}
	l.Add("x.z", at("a.hcl", 1, 1, 10, 11), "s", "d")
	got := l.Sort()
	if len(got) != 5 || got[0].Subject.Start.Byte != 10 || got[4].Check != "x.y" {
		t.Fatalf("got %+v", got)
	}
	if want := "c (And 2 more like it from the same place.)"; got[3].Detail != want {
		t.Errorf("got %q, want %q", got[3].Detail, want)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"network", "hardware", "bmc", "r01-u01", "r01-u02"}
	cases := map[string]string{"netwrok": "network", "hardwear": "hardware", "bmx": "bmc", "zzz": "", "r01-u03": "r01-u01", "": "", "x": ""}
	for in, want := range cases {
		if got := Nearest(in, known); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"a\tb":            "a b",
		"\x1b[31m":        "␛[31m",
		"\x7f":            "␡",
		"a\u202eb\u200fc": "a\ufffdb\ufffdc",
		"\x9b31m":         "\ufffd31m",
		"\u009b31m":       "\ufffd31m",
		"größe ✓":         "größe ✓",
	}
	for in, want := range cases {
		if got := Clean(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzText renders any source with any place; it neither panics nor lets control
// characters through.
func FuzzText(f *testing.F) {
	f.Add([]byte(source), 2, 21, 29)
	f.Fuzz(func(t *testing.T, src []byte, line, start, end int) {
		var l List
		l.Add("x.y", hcl.Range{Filename: "f", Start: hcl.Pos{Line: line, Byte: start}, End: hcl.Pos{Line: line, Byte: end}}, string(src), string(src))
		var b bytes.Buffer
		if err := WriteText(&b, l, Files{"f": src}, 60); err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(b.Bytes(), func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }) {
			t.Errorf("control characters: %q", b.Bytes())
		}
	})
}

// TestSortFoldsKinds gives a finding for each of many nodes, at places of their
// own: fifty are shown, and the last says how many there are more.
func TestSortFoldsKinds(t *testing.T) {
	t.Parallel()
	var l List
	for i := range 12_500 {
		at := hcl.Range{Filename: "racks.hcl", Start: hcl.Pos{Line: i + 1, Column: 1, Byte: i}, End: hcl.Pos{Line: i + 1, Column: 2, Byte: i + 1}}
		l.Add("address.outside-network", at, "Address outside of its network", fmt.Sprintf("Address of node %d.", i))
	}
	l.Add("address.outside-network", hcl.Range{Filename: "z.hcl"}, "Pool outside of its network", "Another cause.")
	got := l.Sort()
	if len(got) != perKind+1 {
		t.Fatalf("%d findings, want %d", len(got), perKind+1)
	}
	if want := "Address of node 49. (And 12450 more like it elsewhere.)"; got[perKind-1].Detail != want {
		t.Errorf("the last: got %q, want %q", got[perKind-1].Detail, want)
	}
	if got[perKind].Summary != "Pool outside of its network" {
		t.Errorf("the other cause: got %+v", got[perKind])
	}
}
