// SPDX-License-Identifier: Apache-2.0

// Package checktest runs cases of diagnostics: the files of a site and every
// finding that is wanted in them, with the exact line, column and byte of each
// place, and its words. With -update a test writes what was found into its cases.
package checktest

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

	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

var update = flag.Bool("update", false, "write what is found into the cases of diagnostics")

// Run runs every *.txtar file of a folder: its files are a site, and its file
// "want" what is found. base.hcl of the folder, if there is one, is beside the
// files of each case that brings none of its own.
func Run(t *testing.T, folder string, opt inventory.Options) {
	t.Helper()
	cases, err := filepath.Glob(filepath.Join(folder, "*.txtar"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	if opt.Now.IsZero() {
		opt.Now = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	}
	base, err := os.ReadFile(filepath.Join(folder, "base.hcl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, path := range cases {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runArchive(t, path, base, opt)
		})
	}
}

func runArchive(t *testing.T, path string, base []byte, opt inventory.Options) {
	t.Helper()
	archive, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{}
	if base != nil {
		fsys["base.hcl"] = &fstest.MapFile{Data: base}
	}
	var want []byte
	for _, f := range archive.Files {
		if f.Name == "want" {
			want = f.Data
			continue
		}
		fsys[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	_, diags, _ := inventory.LoadFS(fsys, opt)
	got := List(diags)
	if *update {
		keepWant(t, path, archive, got)
		return
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// List writes each finding in a form that is compared.
func List(diags diag.List) []byte {
	var b bytes.Buffer
	for _, d := range diags {
		fmt.Fprintf(&b, "%s %s %s\n  %s\n  %s\n", d.Severity, d.Check, formatPlace(d.Subject), d.Summary, strings.ReplaceAll(fmt.Sprintf("%q", d.Detail), `\"`, `"`))
		for _, r := range d.Related {
			fmt.Fprintf(&b, "  + %s %s\n", formatPlace(&r.Range), r.Message)
		}
	}
	return b.Bytes()
}

func formatPlace(r *diag.Range) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%s:%d,%d-%d,%d@%d-%d", r.File, r.Start.Line, r.Start.Column, r.End.Line, r.End.Column, r.Start.Byte, r.End.Byte)
}

func keepWant(t *testing.T, path string, archive *txtar.Archive, got []byte) {
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
