// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
	"github.com/ironrail/ironrail/inventory/language"
)

// TestDecode decodes the body of a kind as its owner does.
func TestDecode(t *testing.T) {
	t.Parallel()
	inv := loadClean(t, "testdata/site")
	var spec struct {
		Release  string         `hcl:"release"`
		Kernel   *string        `hcl:"kernel"`
		Digest   string         `hcl:"digest"`
		At       hcl.Range      `hcl:"digest,attr_value_range"`
		Packages []string       `hcl:"packages,optional"`
		Rest     hcl.Attributes `hcl:",remain"`
	}
	image := inv.Images[0]
	if diags := image.Decode(&spec); diags.HasErrors() {
		t.Fatal(diags)
	}
	if spec.Release != "9.6" || spec.Kernel != nil || spec.At != image.Ranges["digest"] || spec.At.Start.Line == 0 {
		t.Errorf("got %+v", spec)
	}
	var k8s struct {
		Endpoint string            `hcl:"endpoint"`
		Token    cty.Value         `hcl:"token"`
		Labels   map[string]string `hcl:"labels"`
	}
	if diags := inv.Handovers[1].Decode(&k8s); diags.HasErrors() {
		t.Fatal(diags)
	}
	if ref, ok := SecretRef(k8s.Token); !ok || ref != "exec:kube-token" || k8s.Labels["hall"] != "A" {
		t.Errorf("got %+v", k8s)
	}
	manager := inv.Fabrics[0].Value.GetAttr("subnet_manager").GetAttr("run_on")
	for it := manager.ElementIterator(); it.Next(); {
		_, v := it.Element()
		if block, name, ok := RefName(v); !ok || block != "controller" || name == "" {
			t.Errorf("got %s.%s, %t", block, name, ok)
		}
	}
}

// TestKindCheck gives a kind an owner that looks at its blocks.
func TestKindCheck(t *testing.T) {
	t.Parallel()
	kinds := DefaultKinds()
	kinds.Driver["own"] = KindSpec{
		Spec: language.Spec{Attrs: []language.Attr{{Name: "speed", Type: language.Int(1, 9), Required: true}}},
		Check: func(_ *Inventory, b Block) (found diag.List) {
			found.Add("driver.speed", b.Ranges["speed"], "Too slow", "Nobody waits that long.")
			return found
		},
	}
	fsys := fstest.MapFS{"x.hcl": {Data: []byte("site \"s\" {}\ndriver \"own\" \"d\" {\n  speed = 1\n}\n")}}
	_, diags, _ := LoadFS(fsys, Options{Kinds: &kinds})
	if len(diags) != 1 || diags[0].Check != "driver.speed" || diags[0].Subject.Start.Line != 3 {
		t.Errorf("got %+v", diags)
	}
}

// TestSpecs looks at the tables: a name that the language gives a meaning of its
// own must not be an attribute, and no name may be twice in one body.
func TestSpecs(t *testing.T) {
	t.Parallel()
	var walk func(path string, s language.Spec, top bool)
	walk = func(path string, s language.Spec, top bool) {
		seen := map[string]bool{}
		for _, a := range s.Attrs {
			if seen[a.Name] || a.Name == "for_each" || a.Name == "count" && top || top && (a.Name == "id" || a.Name == "kind" || a.Name == "name") {
				t.Errorf("%s: attribute %q is taken", path, a.Name)
			}
			if a.Type.Words == "" {
				t.Errorf("%s: attribute %q has no type", path, a.Name)
			}
			seen[a.Name] = true
		}
		for _, b := range s.Blocks {
			if seen[b.Type] {
				t.Errorf("%s: block %q is taken", path, b.Type)
			}
			seen[b.Type] = true
			walk(path+"."+b.Type, b.Body, false)
		}
	}
	for _, b := range topSpecs(DefaultKinds()) {
		walk(b.Type, b.Body, true)
		for kind, s := range b.Kinds {
			walk(b.Type+" "+kind, s, true)
		}
	}
}

// TestLinear loads 2,000 nodes with fewer iterations than racks times rows: an
// evaluation that looks at every row for every rack would be past the limit.
func TestLinear(t *testing.T) {
	t.Parallel()
	_, diags, _ := LoadFS(bigSite(250), Options{Limits: language.Limits{Iterations: 40_000}})
	if len(diags) > 0 {
		t.Errorf("got %s: %s", diags[0].Check, diags[0].Detail)
	}
}

// TestLinearModules is the same with a use of a module for each rack.
func TestLinearModules(t *testing.T) {
	t.Parallel()
	const racks = 250
	fsys := bigSite(racks).(fstest.MapFS)
	head, rack, _ := strings.Cut(string(fsys["site.hcl"].Data), "rack \"r\" {")
	_, rest, _ := strings.Cut(rack, "  pdu")
	use := fmt.Sprintf("use \"rack\" {\n  count  = %d\n  source = \"rack\"\n  role   = role.worker\n  number = count.index + 1\n  rows   = [for r in local.shipped : r if r.rack == format(\"r%%04d\", count.index + 1)]\n}\n", racks)
	module := "variable \"role\" {}\nvariable \"number\" {}\nvariable \"rows\" {}\nrack \"r\" {\n  name   = format(\"r%04d\", var.number)\n  number = var.number\n  pdu" + rest
	module = strings.NewReplacer("local.shipped", "var.rows", "role.worker", "var.role").Replace(module)
	fsys["site.hcl"], fsys["rack/rack.hcl"] = &fstest.MapFile{Data: []byte(head + use)}, &fstest.MapFile{Data: []byte(module)}
	inv, diags, _ := LoadFS(fsys, Options{Limits: language.Limits{Iterations: 60_000}})
	if len(diags) > 0 {
		t.Fatalf("got %s: %s", diags[0].Check, diags[0].Detail)
	}
	if len(inv.Nodes) != racks*8 {
		t.Errorf("nodes: got %d, want %d", len(inv.Nodes), racks*8)
	}
}

// TestPartialFile loads a site of which one file cannot be parsed: what may stand
// there is not missed elsewhere, and what is left of it is not judged.
func TestPartialFile(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{
		"a.hcl": {Data: []byte("site \"s\" {}\nnetwork \"boot\" {\n  cidr = \"10.0.0.0/24\"\n  gateway = cidrhost(\n}\n")},
		"b.hcl": {Data: []byte("bmc \"b\" {\n  network = network.other\n}\n")},
	}
	_, diags, _ := LoadFS(fsys, Options{})
	for _, d := range diags {
		if d.Check == "reference.unknown" {
			t.Errorf("a reference is unknown though a file could not be read: %s", d.Detail)
		}
	}
	if !diags.HasErrors() || diags[0].Check != "language.syntax" || diags[0].Subject.File != "a.hcl" {
		t.Errorf("got %+v", diags)
	}
}
