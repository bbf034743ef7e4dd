// SPDX-License-Identifier: Apache-2.0

package language

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// TestExpressions evaluates one expression each; want is its text.
func TestExpressions(t *testing.T) {
	t.Parallel()
	cases := []struct{ expr, want string }{
		{`cidrhost("10.12.112.0/20", 16)`, "10.12.112.16"},
		{`cidrhost("10.12.112.0/20", -1)`, "10.12.127.255"},
		{`cidrhost("10.12.113.5/20", 0)`, "10.12.112.0"},
		{`cidrhost("fd00:fd12:3456:7890::/72", 34)`, "fd00:fd12:3456:7890::22"},
		{`cidrsubnet("172.16.0.0/12", 4, 2)`, "172.18.0.0/16"},
		{`cidrsubnet("10.1.2.0/24", 4, 15)`, "10.1.2.240/28"},
		{`cidrsubnet("fd00:fd12:3456:7890::/56", 16, 162)`, "fd00:fd12:3456:7800:a200::/72"},
		{`cidrnetmask("172.16.0.0/12")`, "255.240.0.0"},
		{`cidrnetmask("0.0.0.0/0")`, "0.0.0.0"},
		{`length("häuser")`, "6"},
		{`length({ a = 1, b = 2 })`, "2"},
		{`format("%02d-%s", 7, "x")`, "07-x"},
		{`join(",", sort(keys({ b = 1, a = 2 })))`, "a,b"},
		{`yamldecode("a: [1, 2.5, yes, ~, x]").a[1]`, "2.5"},
		{`yamldecode("a: &x 3\nb: *x").b`, "3"},
		{`jsondecode("{\"a\": [1, 2]}").a[1]`, "2"},
		{`csvdecode("a,b\n1,2\n")[0].b`, "2"},
		{`try(local.map.nothing, "else")`, "else"},
		{`can(local.map.nothing)`, "false"},
		{`fileexists("list.csv")`, "true"},
		{`fileexists("other.csv")`, "false"},
		{`csvdecode(file("./list.csv"))[0].name`, "n"},
		{`templatefile("t.tmpl", { x = [1, 2] })`, "1;2;"},
		{`join("", [for k, v in local.map : "${k}${v}" if v > 1])`, "b2"},
		{`"${7}/${-7}/${0 - 0}/${1e3}/${1.5}/${1 / 4}"`, "7/-7/0/1000/1.5/0.25"},
		{`"${9223372036854775807}/${9223372036854775808}/${-9223372036854775808}"`, "9223372036854775807/9223372036854775808/-9223372036854775808"},
		{`(local.list[*].v)[1]`, "2"},
		{`thing.first.id`, "thing.first"},
		{`thing["first"].n`, "7"},
		{`var.given`, "from outside"},
		{`var.number + 1`, "43"},
		{`thing.many-x.text`, "x!"},
		{`alltrue([true, "true"])`, "true"},
		{`alltrue([])`, "true"},
		{`anytrue([false, null])`, "false"},
		{`anytrue([false, true])`, "true"},
		{`startswith("leaf-1", "leaf")`, "true"},
		{`endswith("leaf-1", "leaf")`, "false"},
		{`strcontains("leaf-1", "f-")`, "true"},
		{`sum([1, 2.5])`, "3.5"},
		{`one(["x"])`, "x"},
		{`one(toset(["x"]))`, "x"},
		{`coalesce(one([]), "none")`, "none"},
		{`index(["a", "b"], "b")`, "1"},
		{`hasindex(["a"], 1)`, "false"},
		{`chunklist([1, 2, 3], 2)[1][0]`, "3"},
		{`formatdate("YYYY", "2026-11-21T00:00:00Z")`, "2026"},
		{`regexall("[0-9]+", "a1b22")[1]`, "22"},
		{`setproduct(["a"], ["b", "c"])[1][1]`, "c"},
		{`zipmap(["a"], [3]).a`, "3"},
		{`timeadd("2026-11-21T00:00:00Z", "1h")`, "2026-11-21T01:00:00Z"},
	}
	const head = `
variable "given" { default = "own" }
variable "number" {
  type    = number
  default = 1
}
locals {
  map  = { a = 1, b = 2 }
  list = [{ v = 1 }, { v = 2 }]
}
thing "first" {}
thing "many" {
  for_each = toset(["x", "y"])
  text     = "${each.key}!"
}
thing "t" {
  text = `
	for _, c := range cases {
		t.Run(c.expr, func(t *testing.T) {
			t.Parallel()
			r := evaluate(head+c.expr+"\n}\n", Options{Variables: map[string]string{"given": "from outside", "number": "42"}},
				"list.csv", "\ufeffname,n\r\nn,1\r\n", "t.tmpl", "%{ for i in x }${i};%{ endfor }")
			if len(r.Diags) > 0 {
				t.Fatalf("got %s: %s", r.Diags[0].Check, r.Diags[0].Detail)
			}
			for _, b := range r.Bodies["thing"] {
				if b.Name == "t" {
					if got := Get[string](b, "text"); got != c.want {
						t.Errorf("got %q, want %q", got, c.want)
					}
				}
			}
		})
	}
}

// TestRefusals are expressions that say why they have no value.
func TestRefusals(t *testing.T) {
	t.Parallel()
	cases := []struct{ expr, check, detail string }{
		{`cidrhost("10.0.0.0/30", 4)`, "language.function", "prefix 10.0.0.0/30 has only 4 addresses"},
		{`cidrhost("10.0.0.0/30", -5)`, "language.function", "has only 4 addresses"},
		{`cidrhost("10.0.0.0/30", 1.5)`, "language.function", "a whole number"},
		{`cidrhost("10.0.0/30", 1)`, "language.function", "is no prefix"},
		{`cidrsubnet("10.0.0.0/30", 3, 0)`, "language.function", "can grow by 0 to 2 bits"},
		{`cidrsubnet("10.0.0.0/24", 2, 4)`, "language.function", "there are 4 subnets of that size"},
		{`cidrnetmask("fd00::/8")`, "language.function", "only IPv4 has netmasks"},
		{`yamldecode("<<: {a: 1}")`, "language.function", "merge keys"},
		{`yamldecode("? [a]\n: 1")`, "language.function", "a key must be a word"},
		{`secret("hunter2")`, "language.function", "it is never given in clear"},
		{`secret("env:not a name")`, "language.function", `written "env:NAME"`},
		{`secret("vault:path")`, "language.function", `written "vault:PATH#KEY"`},
		{`"x${secret("env:A")}"`, "language.type", "string required, but have secret"},
		{`jsonencode([{ a = secret("env:A") }])`, "language.function", "secrets cannot be encoded"},
		{`tostring(secret("env:A"))`, "language.function", ""},
		{`file("sub/../../x")`, "language.function", "leads out of the site's folder"},
		{`file("")`, "language.function", "leads out of the site's folder"},
		{`file(".")`, "language.function", "not a regular file"},
		{`timestamp()`, "language.function", "There is no function named"},
		{`one(["a", "b"])`, "language.function", "it has 2 elements"},
		{`sum([])`, "language.function", "the sum of no numbers"},
		{`index(["a"], "b")`, "language.function", "no element of the list is this"},
	}
	for _, c := range cases {
		t.Run(c.expr, func(t *testing.T) {
			t.Parallel()
			r := evaluate("thing \"t\" {\n  value = "+c.expr+"\n}\n", Options{})
			if len(r.Diags) != 1 {
				t.Fatalf("%d findings, want 1: %+v", len(r.Diags), r.Diags)
			}
			d := r.Diags[0]
			if d.Check != c.check || !strings.Contains(d.Detail, c.detail) {
				t.Errorf("got %s: %s", d.Check, d.Detail)
			}
			if strings.Contains(d.Detail, "hunter2") {
				t.Errorf("the secret is repeated: %s", d.Detail)
			}
		})
	}
}

// TestVariables gives values from outside.
func TestVariables(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, src string
		values    map[string]string
		check     string // "" for none
	}{
		{"secret from outside", "variable \"p\" {\n  sensitive = true\n}", map[string]string{"p": "env:P"}, ""},
		{"secret in clear", "variable \"p\" {\n  sensitive = true\n}", map[string]string{"p": "hunter2"}, "secret.clear"},
		{"list", "variable \"l\" {\n  type = list(string)\n}", map[string]string{"l": `["a", "b"]`}, ""},
		{"not a list", "variable \"l\" {\n  type = list(string)\n}", map[string]string{"l": `{`}, "language.variable"},
		{"a call is no literal", "variable \"l\" {\n  type = number\n}", map[string]string{"l": `length("a")`}, "language.variable"},
		{"unknown", "variable \"first\" {\n  default = 1\n}", map[string]string{"fist": "x"}, "language.variable"},
		{"default of the wrong type", "variable \"n\" {\n  type    = number\n  default = \"x\"\n}", nil, "language.type"},
		{"null", "variable \"n\" {\n  default = null\n}", nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := evaluate(c.src, Options{Variables: c.values})
			got := ""
			if len(r.Diags) > 0 {
				got = r.Diags[0].Check
				if strings.Contains(r.Diags[0].Detail, "hunter2") {
					t.Errorf("the secret is repeated: %s", r.Diags[0].Detail)
				}
			}
			if got != c.check {
				t.Errorf("got %q, want %q: %+v", got, c.check, r.Diags)
			}
		})
	}
}

// TestFolder checks what of a folder is read: symbolic links do not lead out of
// it, and folders outside only where they are allowed.
func TestFolder(t *testing.T) {
	t.Parallel()
	outside, site := t.TempDir(), t.TempDir()
	write := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "key.pub", "the key")
	if err := os.Symlink(filepath.Join(outside, "key.pub"), filepath.Join(site, "link")); err != nil {
		t.Fatal(err)
	}
	load := func(expr string, allowed ...string) (string, string) {
		t.Helper()
		write(site, "x.hcl", "thing \"t\" {\n  text = "+expr+"\n}\n")
		root, err := os.OpenRoot(site)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		r := Evaluate(root.FS(), things, Options{Allowed: allowed})
		if len(r.Diags) > 0 {
			return "", r.Diags[0].Detail
		}
		return Get[string](r.Bodies["thing"][0], "text"), ""
	}
	if text, why := load(`file("link")`); text != "" || why == "" {
		t.Errorf("a link led outside: %q", text)
	}
	abs := `file("` + filepath.Join(outside, "key.pub") + `")`
	if text, why := load(abs); text != "" || !strings.Contains(why, "leads out") {
		t.Errorf("absolute path: got %q, %q", text, why)
	}
	if text, why := load(abs, outside); text != "the key" {
		t.Errorf("allowed folder: got %q, %q", text, why)
	}
	if text, _ := load(`file("`+outside+`/../`+filepath.Base(outside)+`x/key.pub")`, outside); text != "" {
		t.Errorf("a folder beside the allowed one: got %q", text)
	}
}

// TestJoin checks that the indexed for_each gives what the plain one gives.
func TestJoin(t *testing.T) {
	t.Parallel()
	const head = "locals {\n  rows = [{ r = \"a\", n = \"1\" }, { r = \"b\", n = \"2\" }, { r = \"a\", n = \"3\" }]\n  odd  = [{ r = \"a\", n = \"1\" }, { r = 5, n = \"2\" }]\n  key  = \"a\"\n}\n"
	cases := []struct{ expr, want string }{
		{`{ for x in local.rows : x.n => x if x.r == local.key }`, "t-1 t-3"},
		{`{ for x in local.rows : x.n => x if local.key == x.r }`, "t-1 t-3"},
		{`{ for i, x in local.rows : i => x if x.r == local.key }`, "t-0 t-2"},
		{`{ for x in local.odd : x.n => x if x.r == local.key }`, "t-1"},
		{`{ for x in local.rows : x.n => x if x.r != local.key }`, "t-2"},
		{`{ for x in local.rows : x.r => x... if x.r == local.key }`, "t-a"},
		{`{ for x in local.rows : x.n => x if x.r == x.n }`, ""},
	}
	for _, c := range cases {
		r := evaluate(head+"thing \"t\" {\n  for_each = "+c.expr+"\n}\n", Options{})
		var names []string
		for _, b := range r.Bodies["thing"] {
			names = append(names, b.Name)
		}
		if got := strings.Join(names, " "); got != c.want || len(r.Diags) > 0 {
			t.Errorf("%s: got %q, want %q (%+v)", c.expr, got, c.want, r.Diags)
		}
	}
}

// TestSecretIsOpaque checks that a reference survives locals and lists unseen.
func TestSecretIsOpaque(t *testing.T) {
	t.Parallel()
	r := evaluate("locals {\n  s = [secret(\"env:A\")]\n}\nthing \"t\" {\n  value = local.s[0]\n}\n", Options{})
	if len(r.Diags) > 0 {
		t.Fatal(r.Diags)
	}
	v := Get[cty.Value](r.Bodies["thing"][0], "value")
	ref, ok := SecretOf(v)
	if !ok || ref != "env:A" {
		t.Errorf("got %v, %v", ref, ok)
	}
	if strings.Contains(v.GoString(), "env:A") {
		t.Errorf("GoString shows it: %s", v.GoString())
	}
}
