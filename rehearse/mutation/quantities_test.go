// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"reflect"
	"slices"
	"testing"

	"github.com/ironrail/ironrail/rehearse/virtual/chassis"
	"github.com/ironrail/ironrail/rehearse/virtual/fault"
	"github.com/ironrail/ironrail/rehearse/virtual/metal"
	"github.com/ironrail/ironrail/rehearse/virtual/model"
	"github.com/ironrail/ironrail/rehearse/virtual/power"
)

// TestQuantities: each method of the simulated hardware changes a quantity that a kind of
// fault or a reason stands for, or changes none; and the list has no other.
func TestQuantities(t *testing.T) {
	t.Parallel()
	methods := map[string]bool{}
	for prefix, typ := range map[string]reflect.Type{"Node.": reflect.TypeFor[*metal.Node](), "Model.": reflect.TypeFor[*model.Model](),
		"Chassis.": reflect.TypeFor[*chassis.Chassis](), "Grid.": reflect.TypeFor[*power.Grid](), "PDU.": reflect.TypeFor[*power.PDU]()} {
		for i := range typ.NumMethod() {
			methods[prefix+typ.Method(i).Name] = true
		}
	}
	for name := range methods {
		_, listed := quantities[name]
		if listed == slices.Contains(readers, name) {
			t.Errorf("%s: it is in neither list or in both: give it a kind of fault, a reason, or a place among the readers", name)
		}
	}
	for name, q := range quantities {
		if !methods[name] || (len(q.kinds) > 0) == (q.why != "") {
			t.Errorf("%s is no method, or has kinds as well as a reason, or neither", name)
		}
		for _, k := range q.kinds {
			if _, ok := fault.FindRow(k); !ok {
				t.Errorf("%s: %s is no kind of fault", name, k)
			}
		}
	}
	for _, name := range readers {
		if !methods[name] {
			t.Errorf("%s is no method", name)
		}
	}
}
