// SPDX-License-Identifier: Apache-2.0

package language

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// site is a file system of texts by name.
func site(files ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i+1 < len(files); i += 2 {
		fsys[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return fsys
}

// TestModules brings in modules in every way that there is; want is the texts of
// all things by name.
func TestModules(t *testing.T) {
	t.Parallel()
	const one = "variable \"text\" { default = \"own\" }\nthing \"a\" { text = var.text }\n"
	const many = "variable \"name\" {}\n"
	cases := []struct {
		name string
		fsys fstest.MapFS
		want string
	}{
		{"default", site("x.hcl", `use "m" { source = "m" }`, "m/m.hcl", one), "a=own"},
		{"null is the default", site("x.hcl", "use \"m\" {\n  source = \"./m\"\n  text = null\n}", "m/m.hcl", one), "a=own"},
		{"given", site("x.hcl", "use \"m\" {\n  source = \"m\"\n  text = upper(\"given\")\n}", "m/m.hcl", one), "a=GIVEN"},
		{"in JSON", site("x.hcl.json", `{"use": {"m": {"source": "m", "text": "${upper(\"given\")}"}}}`, "m/m.hcl", one), "a=GIVEN"},
		{"a module in JSON", site("x.hcl", "use \"m\" {\n  source = \"m\"\n}", "m/m.hcl.json", `{"thing": {"a": {"text": "json"}}}`), "a=json"},
		{"for_each", site("x.hcl", "use \"m\" {\n  for_each = { x = 1, y = 2 }\n  source = \"m\"\n  of = each\n}\nthing \"z\" { text = use.m-y.thing.t-y.text }",
			"m/m.hcl", "variable \"of\" {}\nthing \"t\" {\n  for_each = toset([var.of.key])\n  text = \"${each.key}${var.of.value}\"\n}"), "t-x=x1 t-y=y2 z=y2"},
		{"count and name", site("x.hcl", "use \"m\" {\n  count = 2\n  name = \"m${count.index}\"\n  source = \"m\"\n  i = count.index\n}\nthing \"z\" { text = use[\"m1\"].thing[\"t-1\"].text }",
			"m/m.hcl", "variable \"i\" {}\nthing \"t\" {\n  for_each = toset([tostring(var.i)])\n  text = each.key\n}"), "t-0=0 t-1=1 z=1"},
		{"in a module", site("x.hcl", "use \"m\" { source = \"a\" }\nthing \"z\" { text = use.m.use.n.thing.t.text }", "a/a.hcl", `use "n" { source = "../b" }`, "b/b.hcl", `thing "t" { text = "deep" }`), "t=deep z=deep"},
		{"names of its own", site("x.hcl", "locals { l = \"site\" }\nuse \"m\" { source = \"m\" }\nthing \"z\" { text = local.l }", "m/m.hcl", "locals { l = \"module\" }\nthing \"t\" { text = local.l }"), "t=module z=site"},
		{"files of its folder", site("x.hcl", "use \"m\" { source = \"m\" }", "m/m.hcl", "thing \"t\" { text = \"${file(\"f\")} ${file(\"../f\")} ${templatefile(\"t.tmpl\", { x = 1 })} ${fileexists(\"g\")}\" }",
			"m/f", "inner", "f", "outer", "m/t.tmpl", "${x}${file(\"f\")}"), "t=inner outer 1inner false"},
		{"references to blocks", site("x.hcl", "thing \"z\" { text = \"zed\" }\nuse \"m\" {\n  source = \"m\"\n  of = thing.z\n}", "m/m.hcl", "variable \"of\" {}\nthing \"t\" { text = \"${var.of.id} ${var.of.text}\" }"), "t=thing.z zed z=zed"},
		{"type of a variable", site("x.hcl", "use \"m\" {\n  source = \"m\"\n  l = [1, \"2\"]\n}", "m/m.hcl", "variable \"l\" { type = list(string) }\nthing \"t\" { text = join(\"-\", var.l) }"), "t=1-2"},
		{"order of references", site("x.hcl", "use \"a\" {\n  source = \"m\"\n  name_of = use.b.thing.second.text\n  is = \"first\"\n}\nuse \"b\" {\n  source = \"m\"\n  name_of = \"x\"\n  is = \"second\"\n}",
			"m/m.hcl", "variable \"name_of\" {}\nvariable \"is\" {}\nthing \"t\" {\n  for_each = toset([var.is])\n  name = each.key\n  text = \"${each.key}<${var.name_of}\"\n}"), "first=first<second<x second=second<x"},
		{"unused", site("x.hcl", "thing \"z\" {}", "m/m.hcl", many), "z="},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := Evaluate(c.fsys, things, Options{})
			for _, d := range r.Diags {
				t.Errorf("%s: %s", d.Check, d.Detail)
			}
			var got []string
			for _, b := range r.Bodies["thing"] {
				got = append(got, b.Name+"="+Get[string](b, "text"))
			}
			slices.Sort(got)
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got %q, want %q", s, c.want)
			}
		})
	}
}

// TestModuleSecrets looks at the paths of secrets in a module, and at whose block
// is whose.
func TestModuleSecrets(t *testing.T) {
	t.Parallel()
	cases := map[string]string{"csv:list.csv#a/b": "csv:m/list.csv#a/b", "file:../key": "file:key", "file:/etc/key": "file:/etc/key", "age:s.age#k/../j": "age:m/s.age#k/../j", "env:A": "env:A", "vault:p#k": "vault:p#k"}
	for text, want := range cases {
		r := Evaluate(site("x.hcl", `use "u" { source = "m" }`, "m/m.hcl", fmt.Sprintf("thing \"t\" { value = secret(%q) }", text)), things, Options{})
		if len(r.Diags) > 0 || len(r.Bodies["thing"]) != 1 {
			t.Fatalf("%s: %+v", text, r.Diags)
		}
		b := r.Bodies["thing"][0]
		if ref, _ := SecretOf(b.attrs[0].raw); string(ref) != want {
			t.Errorf("%s: got %q, want %q", text, ref, want)
		}
		if b.Module() != "use.u" {
			t.Errorf("module: got %q", b.Module())
		}
	}
}

// TestModuleLimits gives modules that would multiply beyond all bounds.
func TestModuleLimits(t *testing.T) {
	t.Parallel()
	tower := site("x.hcl", "use \"u\" {\n  source = \"m0\"\n  count = 20\n}")
	for i := range 7 {
		tower[fmt.Sprintf("m%d/m.hcl", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "use \"u\" {\n  source = \"../m%d\"\n  count = 20\n}", i+1)}
	}
	tower["m7/m.hcl"] = &fstest.MapFile{Data: []byte("locals { a = 1 }")}
	deep := site("x.hcl", `use "u" { source = "m0" }`)
	for i := range 20 {
		deep[fmt.Sprintf("m%d/m.hcl", i)] = &fstest.MapFile{Data: fmt.Appendf(nil, "use \"u\" { source = \"../m%d\" }", i+1)}
	}
	deep["m20/m.hcl"] = &fstest.MapFile{Data: []byte("locals { a = 1 }")}
	large := site("x.hcl", "use \"u\" {\n  source = \"m\"\n  count = 100\n}", "m/m.hcl", strings.Repeat("# comment\n", 2_000))
	for name, fsys := range map[string]fstest.MapFS{"tower": tower, "deep": deep, "large": large} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			r := Evaluate(fsys, things, Options{Limits: Limits{Instances: 2000, TotalBytes: 200 << 10}})
			if took := time.Since(start); took > time.Minute {
				t.Errorf("took %s", took)
			}
			found := r.Diags.Sort()
			if len(found) != 1 || found[0].Check != "language.limit" {
				t.Errorf("got %+v", found)
			}
		})
	}
}

// TestModuleFolders lists the folders of modules as written.
func TestModuleFolders(t *testing.T) {
	t.Parallel()
	got := ListModules(site("x.hcl", "use \"a\" { source = \"m/a\" }\nuse \"b\" { source = \"../b\" }\nuse \"c\" { source = local.c }\nbroken {", "y.hcl.json", `{"use": {"d": {"source": "m/d"}}}`, "m/a/a.hcl", "use \"e\" { source = \"../e\" }\nuse \"self\" { source = \".\" }"))
	if want := []string{"m/a", "m/d", "m/e"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestModuleOutside brings in a module of a folder outside of the site, which is
// read only where that is allowed, and which reads nothing beside it.
func TestModuleOutside(t *testing.T) {
	t.Parallel()
	outside, beside := t.TempDir(), t.TempDir()
	for name, src := range map[string]string{"row/m.hcl": "thing \"t\" { text = \"${file(\"f\")} ${fileexists(\"../g\")}\" }", "row/f": "inner", "g": "x", "up/m.hcl": "thing \"t\" { text = file(\"../../g\") }"} {
		path := filepath.Join(outside, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(src), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	load := func(module string, allowed ...string) *Result {
		return Evaluate(site("x.hcl", fmt.Sprintf("use \"m\" { source = %q }", filepath.ToSlash(filepath.Join(outside, module)))), things, Options{Allowed: allowed})
	}
	r := load("row", outside)
	if len(r.Diags) > 0 || len(r.Bodies["thing"]) != 1 || Get[string](r.Bodies["thing"][0], "text") != "inner true" {
		t.Errorf("allowed: got %+v", r.Diags)
	}
	if name := filepath.ToSlash(filepath.Join(outside, "row/m.hcl")); len(r.Files[name]) == 0 {
		t.Errorf("there is no source %s", name)
	}
	for name, r := range map[string]*Result{"not allowed": load("row"), "another one allowed": load("row", beside)} {
		if len(r.Diags) != 1 || r.Diags[0].Check != "language.file" {
			t.Errorf("%s: got %+v", name, r.Diags)
		}
	}
	if r := load("up", outside); len(r.Diags) != 1 || r.Diags[0].Check != "language.function" {
		t.Errorf("above the allowed folder: got %+v", r.Diags)
	}
}
