package inventory

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ironrail/ironrail/inventory/diag"
)

var update = flag.Bool("update", false, "write what is found into the files of testdata/diagnostics")

// TestDiagnostics compares, for each case of testdata/diagnostics, every finding
// with the one that is wanted: check, exact line, column and byte of each place,
// and the words.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/diagnostics/*.txtar")
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	base, err := os.ReadFile("testdata/diagnostics/base.hcl")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fsys := fstest.MapFS{"base.hcl": {Data: base}}
			var want []byte
			for _, f := range archive.Files {
				if f.Name == "want" {
					want = f.Data
					continue
				}
				fsys[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			_, diags, _ := LoadFS(fsys, Options{Now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)})
			got := list(diags)
			if *update {
				keep(t, path, archive, got)
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// list writes each finding in a form that is compared.
func list(diags Diagnostics) []byte {
	var b bytes.Buffer
	for _, d := range diags {
		fmt.Fprintf(&b, "%s %s %s\n  %s\n  %s\n", d.Severity, d.Check, place(d.Subject), d.Summary, strings.ReplaceAll(fmt.Sprintf("%q", d.Detail), `\"`, `"`))
		for _, r := range d.Related {
			fmt.Fprintf(&b, "  + %s %s\n", place(&r.Range), r.Message)
		}
	}
	return b.Bytes()
}

func place(r *diag.Range) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d,%d-%d,%d@%d-%d", r.File, r.Start.Line, r.Start.Column, r.End.Line, r.End.Column, r.Start.Byte, r.End.Byte)
}

func keep(t *testing.T, path string, archive *txtar.Archive, got []byte) {
	t.Helper()
	files := archive.Files[:0:0]
	for _, f := range archive.Files {
		if f.Name != "want" {
			files = append(files, f)
		}
	}
	archive.Files = append(files, txtar.File{Name: "want", Data: got})
	if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}
