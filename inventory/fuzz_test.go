// SPDX-License-Identifier: Apache-2.0

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
const patience = 5 * time.Minute

// The forms of a fuzzed file: the site's own, the same in JSON, or a module's.
const (
	fuzzSite = iota
	fuzzJSON
	fuzzModule
	fuzzForms
)

// fuzzUse is what stands beside a fuzzed file: a module that it may use, and uses
// of the module that it may be.
const (
	fuzzUse  = "use \"m\" {\n  source = \"m\"\n  role   = role.w\n  rows   = csvdecode(file(\"list.csv\"))\n}\nuse \"n\" {\n  for_each = toset([\"x\", \"y\"])\n  source   = \"m\"\n  role     = each.key\n  rows     = null\n}\n"
	fuzzMade = "variable \"rows\" {\n  default = []\n}\nvariable \"role\" {}\nlocals {\n  of = { for r in var.rows : r.name => r }\n}\nnetwork \"net\" {\n  cidr = \"10.77.0.0/24\"\n}\n"
	fuzzList = "name,unit\na,1\nb,3\n"
)

// FuzzLoad loads what nobody would write: whatever the text of a file of the
// site, in HCL or JSON, of a module, or of a vendor's list, Load returns within
// its limits, with findings that can be shown. All files are in memory: nothing
// else is read, and nothing is run.
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
			seed(f, p, src)
		}
	}
	cases, _ := filepath.Glob("testdata/diagnostics/*.txtar")
	for _, p := range cases {
		archive, err := txtar.ParseFile(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range archive.Files {
			seed(f, file.Name, file.Data)
		}
	}
	base, err := os.ReadFile("testdata/diagnostics/base.hcl")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src, list []byte, form uint8) {
		fsys := fstest.MapFS{"base.hcl": {Data: base}, "list.csv": {Data: list}, "m/m.hcl": {Data: []byte(fuzzMade)}}
		switch form % fuzzForms {
		case fuzzSite:
			fsys["fuzz.hcl"] = &fstest.MapFile{Data: src}
		case fuzzJSON:
			fsys["fuzz.hcl.json"] = &fstest.MapFile{Data: src}
		case fuzzModule:
			fsys["use.hcl"], fsys["m/fuzz.hcl"] = &fstest.MapFile{Data: []byte(fuzzUse)}, &fstest.MapFile{Data: src}
		}
		loadFuzzed(t, fsys)
	})
}

// seed adds a file to the corpus in the form that it has.
func seed(f *testing.F, name string, src []byte) {
	switch {
	case strings.HasSuffix(name, ".csv"):
		f.Add([]byte("locals {\n  l = csvdecode(file(\"list.csv\"))\n}\n"), src, uint8(fuzzSite))
	case strings.HasSuffix(name, ".json"):
		f.Add(src, []byte(fuzzList), uint8(fuzzJSON))
	case strings.HasSuffix(name, ".hcl"):
		f.Add(src, []byte(fuzzList), uint8(fuzzSite))
		f.Add(src, []byte(fuzzList), uint8(fuzzModule))
	}
}

// loadFuzzed loads the files and looks at what every caller relies on.
func loadFuzzed(t *testing.T, fsys fstest.MapFS) {
	t.Helper()
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
		if d.Subject != nil && d.Subject.File != "" {
			if _, ok := files[d.Subject.File]; !ok {
				t.Errorf("a finding in a file that is not there, %q: %+v", d.Subject.File, d)
			}
		}
	}
}
