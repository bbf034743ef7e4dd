package inventory

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// small are limits under which any input ends in a moment.
var small = language.Limits{FileBytes: 1 << 17, TotalBytes: 1 << 18, Nesting: 60, Chain: 500, Instances: 300, Iterations: 5000, Output: 1 << 20, Elements: 5000}

// patience is far more than small limits can take, also on a busy machine.
const patience = 20 * time.Second

// FuzzLoad loads what nobody would write: whatever the text, Load returns, within
// its limits, with findings that can be shown. All files are in memory.
func FuzzLoad(f *testing.F) {
	for _, glob := range []string{"testdata/site/*.hcl*", "testdata/diagnostics/base.hcl", "../examples/lab/*.hcl"} {
		paths, err := filepath.Glob(glob)
		if err != nil {
			f.Fatal(err)
		}
		for _, p := range paths {
			src, err := os.ReadFile(p)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src, strings.HasSuffix(p, ".json"))
		}
	}
	cases, _ := filepath.Glob("testdata/diagnostics/*.txtar")
	for _, p := range cases {
		archive, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			if strings.Contains(file.Name, ".hcl") {
				f.Add(file.Data, strings.HasSuffix(file.Name, ".json"))
			}
		}
	}
	base, err := os.ReadFile("testdata/diagnostics/base.hcl")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte, isJSON bool) {
		name := "fuzz.hcl"
		if isJSON {
			name = "fuzz.hcl.json"
		}
		fsys := fstest.MapFS{name: {Data: src}, "base.hcl": {Data: base}, "list.csv": {Data: []byte("name,unit\na,1\nb,3\n")}}
		start := time.Now()
		inv, diags, files := LoadFS(fsys, Options{Limits: small})
		if took := time.Since(start); took > patience {
			t.Errorf("took %s", took)
		}
		if inv == nil {
			t.Fatal("no inventory")
		}
		inv.Summary()
		var out bytes.Buffer
		if err := diag.WriteText(&out, diags, files, 80); err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsFunc(out.Bytes(), func(r rune) bool { return r < ' ' && r != '\n' || r == 0x7f }) {
			t.Errorf("control characters in %q", out.Bytes())
		}
		for _, d := range diags {
			if d.Check == "" || d.Summary == "" || d.Detail == "" {
				t.Errorf("a finding without check, summary or detail: %+v", d)
			}
		}
	})
}
