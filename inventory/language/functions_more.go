// SPDX-License-Identifier: Apache-2.0

package language

import (
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// Functions that Terraform has beside cty's library, with its meaning
// (developer.hashicorp.com/terraform/language/functions).

var (
	allTrueFunc     = boolsFunc("alltrue reports whether no element of a list is false; it is true of an empty list.", true)
	anyTrueFunc     = boolsFunc("anytrue reports whether an element of a list is true.", false)
	startsWithFunc  = textFunc("startswith reports whether a string starts with another.", strings.HasPrefix)
	endsWithFunc    = textFunc("endswith reports whether a string ends with another.", strings.HasSuffix)
	strContainsFunc = textFunc("strcontains reports whether a string holds another.", strings.Contains)
)

// boolsFunc looks for an element that is not each.
func boolsFunc(description string, each bool) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: "list", Type: cty.List(cty.Bool)}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			for it := args[0].ElementIterator(); it.Next(); {
				_, e := it.Element()
				if !e.IsKnown() {
					return cty.UnknownVal(cty.Bool), nil
				}
				if is := !e.IsNull() && e.True(); is != each {
					return cty.BoolVal(!each), nil
				}
			}
			return cty.BoolVal(each), nil
		},
	})
}

func textFunc(description string, is func(s, part string) bool) function.Function {
	return function.New(&function.Spec{
		Description: description,
		Params:      []function.Parameter{{Name: "text", Type: cty.String}, {Name: "part", Type: cty.String}},
		Type:        function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(is(args[0].AsString(), args[1].AsString())), nil
		},
	})
}

var sumFunc = function.New(&function.Spec{
	Description: "sum adds the numbers of a list that is not empty.",
	Params:      []function.Parameter{{Name: "list", Type: cty.List(cty.Number)}},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].LengthInt() == 0 {
			return cty.NilVal, argError(0, "the sum of no numbers is not known")
		}
		total := cty.Zero
		for it := args[0].ElementIterator(); it.Next(); {
			_, e := it.Element()
			if !e.IsKnown() {
				return cty.UnknownVal(cty.Number), nil
			}
			if e.IsNull() {
				return cty.NilVal, argError(0, "null cannot be added")
			}
			var err error
			if total, err = stdlib.Add(total, e); err != nil {
				return cty.NilVal, argError(0, "%s", err)
			}
		}
		return total, nil
	},
})

var oneFunc = function.New(&function.Spec{
	Description: "one returns the only element of a list or set, or null of an empty one.",
	Params:      []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}},
	Type: func(args []cty.Value) (cty.Type, error) {
		ty := args[0].Type()
		switch {
		case ty.IsListType() || ty.IsSetType():
			return ty.ElementType(), nil
		case ty.IsTupleType() && ty.Length() == 0:
			return cty.DynamicPseudoType, nil
		case ty.IsTupleType() && ty.Length() == 1:
			return ty.TupleElementType(0), nil
		case ty.IsTupleType():
			return cty.NilType, argError(0, "it has %d elements", ty.Length())
		}
		return cty.NilType, argError(0, "a list or a set is wanted")
	},
	Impl: func(args []cty.Value, want cty.Type) (cty.Value, error) {
		if n := args[0].LengthInt(); n > 1 {
			return cty.NilVal, argError(0, "it has %d elements", n)
		}
		for it := args[0].ElementIterator(); it.Next(); {
			_, e := it.Element()
			return e, nil
		}
		return cty.NullVal(want), nil
	},
})

var indexFunc = function.New(&function.Spec{
	Description: "index returns the place of the first element of a list that equals a value, from 0.",
	Params:      []function.Parameter{{Name: "list", Type: cty.DynamicPseudoType}, {Name: "value", Type: cty.DynamicPseudoType}},
	Type:        function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if ty := args[0].Type(); !ty.IsListType() && !ty.IsTupleType() {
			return cty.NilVal, argError(0, "a list is wanted")
		}
		for it := args[0].ElementIterator(); it.Next(); {
			i, e := it.Element()
			same, err := stdlib.Equal(e, args[1])
			if err != nil || !same.IsKnown() {
				return cty.UnknownVal(cty.Number), err
			}
			if same.True() {
				return i, nil
			}
		}
		return cty.NilVal, argError(1, "no element of the list is this")
	},
})
