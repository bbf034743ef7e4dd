// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/engine/plan"
	"github.com/ironrail/ironrail/engine/stage"
	"github.com/ironrail/ironrail/inventory"
)

// imageInput is what of an image decides which packages its nodes lack.
func imageInput(i *inventory.Image) plan.Input {
	words := append([]string{i.Kind, i.Release, i.Kernel, i.Source, i.Digest}, slices.Sorted(slices.Values(i.Packages))...)
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	return plan.Input{Name: "image", Value: strings.Join(words, " "), Decl: stage.Source(i.Decl)}
}

func driverInputs(d *inventory.Driver) []plan.Input {
	packages := slices.Sorted(slices.Values(d.Packages))
	in := []plan.Input{
		{Name: "kind", Value: d.Kind, Decl: stage.Source(d.Decl)},
		{Name: "packages", Value: strings.Join(packages, " "), Decl: stage.Source(d.Place("packages"))},
	}
	if d.Version != "" {
		in = append(in, plan.Input{Name: "version", Value: d.Version, Decl: stage.Source(d.Place("version"))})
	}
	for _, name := range attributes {
		value := d.Text(name)
		if d.True(name) {
			value = "true"
		}
		if value != "" {
			in = append(in, plan.Input{Name: name, Value: value, Decl: stage.Source(d.Place(name))})
		}
	}
	return in
}

// attributes are those of the kinds that decide what is installed, beside what all
// kinds have.
var attributes = []string{"cuda", "module", "fabric_manager", "precompiled", "amdgpu", "profile"}

// switches are the attributes that are true or false.
var switches = []string{"fabric_manager", "precompiled"}

// Was is a block as it was when a step of its stack declared in: what decides the
// packages is that of then, and all else that of now.
func Was(d *inventory.Driver, in []plan.Input) *inventory.Driver {
	then := map[string]string{}
	for _, i := range in {
		then[i.Name] = i.Value
	}
	was := *d
	was.Packages, was.Version = strings.Fields(then["packages"]), then["version"]
	values := map[string]cty.Value{}
	if d.Value != cty.NilVal && !d.Value.IsNull() && d.Value.IsKnown() {
		for name, v := range d.Value.AsValueMap() {
			values[name] = v
		}
	}
	for _, name := range append([]string{"version"}, attributes...) {
		value, given := then[name]
		switch {
		case !given:
			delete(values, name)
		case slices.Contains(switches, name):
			values[name] = cty.BoolVal(value == "true")
		default:
			values[name] = cty.StringVal(value)
		}
	}
	was.Value = cty.ObjectVal(values)
	return &was
}
