// SPDX-License-Identifier: Apache-2.0

package netbox

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// FuzzConvert: whatever NetBox answers, what is written is HCL without expressions of its
// own.
func FuzzConvert(f *testing.F) {
	for _, list := range []string{"racks", "devices", "cables", "front-ports", "rear-ports", "interfaces"} {
		b, err := os.ReadFile("testdata/saved/" + list + ".json")
		if err != nil {
			f.Fatal(err)
		}
		var p page
		if err := json.Unmarshal(b, &p); err != nil {
			f.Fatal(err)
		}
		for _, r := range p.Results[:2] {
			f.Add([]byte(r), "ib{n}=rail/{n}")
		}
	}
	f.Add([]byte(`{"id": 1, "name": "n1", "serial": "${file(\"x\")}\n%{ for", "role": {"slug": "gpu-server"}, "rack": {"id": 1}, "position": 3, "device_type": {"model": "\"}"}}`), "a=b")
	f.Fuzz(func(t *testing.T, object []byte, template string) {
		e := Export{Racks: []Rack{{ID: 1, Name: "r01", Units: 42}}}
		for _, into := range []func(json.RawMessage) error{appendTo(&e.Racks), appendTo(&e.Devices), appendTo(&e.Cables), appendTo(&e.FrontPorts), appendTo(&e.RearPorts), appendTo(&e.Interfaces)} {
			_ = into(object) // it may be none of that kind
		}
		o := Options{Nodes: map[string]string{"gpu-server": "worker"}, Switches: map[string]string{"leaf": "compute"}}
		if p, err := ParseTemplate(template); err == nil {
			o.Ports, o.SwitchPorts = []Template{p}, []Template{p}
		}
		for _, x := range e.Devices {
			if x.Name != nil { // something for cables to end in
				e.Cables = append(e.Cables, Cable{A: []Termination{{Type: "dcim.interface"}}, B: []Termination{{Type: "dcim.interface"}}})
			}
		}
		text := Convert(e, o).Site.HCL()
		file, diags := hclsyntax.ParseConfig(text, "netbox.hcl", hcl.InitialPos)
		if diags.HasErrors() {
			t.Fatalf("%v\n%s", diags, text)
		}
		for _, name := range referred(file.Body.(*hclsyntax.Body)) {
			if name != "role" && name != "fabric" {
				t.Errorf("it refers to %s:\n%s", name, text)
			}
		}
		if strings.Contains(string(text), "\x00") {
			t.Errorf("%q", text)
		}
	})
}

// referred lists what the expressions of a body refer to.
func referred(b *hclsyntax.Body) (names []string) {
	for _, a := range b.Attributes {
		for _, v := range a.Expr.Variables() {
			names = append(names, v.RootName())
		}
	}
	for _, x := range b.Blocks {
		names = append(names, referred(x.Body)...)
	}
	return names
}
