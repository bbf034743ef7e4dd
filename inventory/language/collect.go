// SPDX-License-Identifier: Apache-2.0

package language

import (
	"slices"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
)

// A for expression makes a tuple. cty makes a list of one by comparing the type of
// each element with that of each other, which takes minutes for 100,000 of them;
// here equal types are compared once.

// openParameters are f's parameters, where what is to become a collection is taken as it
// comes.
func openParameters(f function.Function) ([]function.Parameter, *function.Parameter) {
	params := slices.Clone(f.Params())
	for i := range params {
		if params[i].Type.IsCollectionType() {
			params[i].Type = cty.DynamicPseudoType
		}
	}
	rest := f.VarParam()
	if rest != nil && rest.Type.IsCollectionType() {
		r := *rest
		r.Type, rest = cty.DynamicPseudoType, &r
	}
	return params, rest
}

// collectArguments returns the arguments as f wants them.
func collectArguments(name string, f function.Function, args []cty.Value) ([]cty.Value, error) {
	out := slices.Clone(args)
	for i, a := range args {
		want := wantedType(f, i)
		inside, converts := converters[name]
		if converts {
			want = inside
		}
		var err error
		switch {
		case !want.IsCollectionType():
		case isCollectable(a, want):
			out[i], err = collectValue(a, want)
		case !converts:
			out[i], err = convert.Convert(a, want)
		}
		if err != nil {
			return nil, function.NewArgError(i, err)
		}
	}
	return out, nil
}

// converters are the functions that take anything and convert it themselves.
var converters = map[string]cty.Type{
	"tolist": cty.List(cty.DynamicPseudoType), "toset": cty.List(cty.DynamicPseudoType), "tomap": cty.Map(cty.DynamicPseudoType),
}

// wantedType returns the type of f's i-th argument.
func wantedType(f function.Function, i int) cty.Type {
	if params := f.Params(); i < len(params) {
		return params[i].Type
	}
	return f.VarParam().Type
}

// isCollectable reports whether v is a tuple, or for a map an object, with elements.
func isCollectable(v cty.Value, want cty.Type) bool {
	ty := v.Type()
	return (ty.IsTupleType() && !want.IsMapType() || ty.IsObjectType() && want.IsMapType()) && !v.IsMarked() && v.IsKnown() && !v.IsNull() && v.LengthInt() > 0
}

// collectValue converts what is collectable.
func collectValue(v cty.Value, want cty.Type) (cty.Value, error) {
	element, err := want.ElementType(), error(nil)
	if element == cty.DynamicPseudoType {
		if element, err = commonType(v, want); err != nil {
			return v, err
		}
	}
	if want.IsMapType() {
		return objectToMap(v, element)
	}
	list := v.AsValueSlice()
	for i := range list {
		if list[i], err = convert.Convert(list[i], element); err != nil {
			return v, err
		}
	}
	if want.IsSetType() {
		return cty.SetVal(list), nil
	}
	return cty.ListVal(list), nil
}

func objectToMap(v cty.Value, element cty.Type) (cty.Value, error) {
	m := v.AsValueMap()
	for k, e := range m {
		converted, err := convert.Convert(e, element)
		if err != nil {
			return v, err
		}
		m[k] = converted
	}
	return cty.MapVal(m), nil
}

// commonType is the type that all elements of v can have. Its error is cty's own.
func commonType(v cty.Value, want cty.Type) (cty.Type, error) {
	var types []cty.Type
	var first []cty.Value // of each type
	for it := v.ElementIterator(); it.Next(); {
		_, e := it.Element()
		if ty := e.Type(); !slices.ContainsFunc(types, ty.Equals) {
			if len(types) == maxTypes {
				return cty.NilType, errTooMuch
			}
			types, first = append(types, ty), append(first, e)
		}
	}
	ty, _ := convert.UnifyUnsafe(types)
	if ty != cty.NilType {
		return ty, nil
	}
	if want.IsMapType() {
		want = cty.List(want.ElementType())
	}
	_, err := convert.Convert(cty.TupleVal(first), want)
	return cty.NilType, err
}

// maxTypes is how many types the elements of one collection may have before they
// are made one.
const maxTypes = 100
