// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// maxRange is the longest list that range makes: as many things as there may be
// in a site. cty's own function ends at 1,024, and a site has more racks.
const maxRange = 200_000

// rangeFunc is Terraform's range(limit), range(start, limit) and range(start,
// limit, step).
var rangeFunc = function.New(&function.Spec{
	Description: "Returns a list of numbers from start up to, but without, limit.",
	VarParam:    &function.Parameter{Name: "params", Type: cty.Number},
	Type: func(args []cty.Value) (cty.Type, error) {
		if len(args) < 1 || len(args) > 3 {
			return cty.NilType, fmt.Errorf("must have one, two, or three arguments")
		}
		return cty.List(cty.Number), nil
	},
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		start, limit := cty.Zero, args[0]
		if len(args) > 1 {
			start, limit = args[0], args[1]
		}
		down := limit.LessThan(start).True()
		step := cty.NumberIntVal(1)
		if down {
			step = cty.NumberIntVal(-1)
		}
		if len(args) == 3 {
			step = args[2]
		}
		switch {
		case step.RawEquals(cty.Zero):
			return cty.NilVal, function.NewArgErrorf(2, "step must not be zero")
		case start.RawEquals(limit):
			return cty.ListValEmpty(cty.Number), nil
		case down != step.LessThan(cty.Zero).True():
			return cty.NilVal, function.NewArgErrorf(len(args)-1, "step leads away from the limit")
		}
		var list []cty.Value
		for n := start; n.LessThan(limit).True() != down && !n.RawEquals(limit); n = n.Add(step) {
			if len(list) == maxRange {
				return cty.NilVal, fmt.Errorf("more than %d values; a site has no more things", maxRange)
			}
			list = append(list, n)
		}
		return cty.ListVal(list), nil
	},
})
