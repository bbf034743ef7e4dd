// SPDX-License-Identifier: Apache-2.0

package language

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2/ext/tryfunc"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/ironrail/ironrail/internal/lazyregexp"
)

// standard are the functions of cty's library, by the names that Terraform users
// know.
var standard = map[string]function.Function{
	"abs": stdlib.AbsoluteFunc, "ceil": stdlib.CeilFunc, "chomp": stdlib.ChompFunc, "chunklist": stdlib.ChunklistFunc, "coalesce": stdlib.CoalesceFunc,
	"coalescelist": stdlib.CoalesceListFunc, "compact": stdlib.CompactFunc, "concat": stdlib.ConcatFunc, "contains": stdlib.ContainsFunc,
	"csvdecode": stdlib.CSVDecodeFunc, "distinct": stdlib.DistinctFunc, "element": stdlib.ElementFunc, "flatten": stdlib.FlattenFunc, "floor": stdlib.FloorFunc,
	"format": stdlib.FormatFunc, "formatdate": stdlib.FormatDateFunc, "formatlist": stdlib.FormatListFunc, "indent": stdlib.IndentFunc, "int": stdlib.IntFunc,
	"join": stdlib.JoinFunc, "jsondecode": stdlib.JSONDecodeFunc, "jsonencode": stdlib.JSONEncodeFunc, "keys": stdlib.KeysFunc, "length": lengthFunc,
	"log": stdlib.LogFunc, "lookup": stdlib.LookupFunc, "lower": stdlib.LowerFunc, "max": stdlib.MaxFunc, "merge": stdlib.MergeFunc, "min": stdlib.MinFunc,
	"parseint": stdlib.ParseIntFunc, "pow": stdlib.PowFunc, "range": rangeFunc, "regex": stdlib.RegexFunc, "regexall": stdlib.RegexAllFunc,
	"regexreplace": stdlib.RegexReplaceFunc, "replace": stdlib.ReplaceFunc, "reverse": stdlib.ReverseListFunc, "sethaselement": stdlib.SetHasElementFunc,
	"setintersection": stdlib.SetIntersectionFunc, "setproduct": stdlib.SetProductFunc, "setsubtract": stdlib.SetSubtractFunc,
	"setsymmetricdifference": stdlib.SetSymmetricDifferenceFunc, "setunion": stdlib.SetUnionFunc, "signum": stdlib.SignumFunc, "slice": stdlib.SliceFunc,
	"sort": stdlib.SortFunc, "split": stdlib.SplitFunc, "strlen": stdlib.StrlenFunc, "strrev": stdlib.ReverseFunc, "substr": stdlib.SubstrFunc,
	"timeadd": stdlib.TimeAddFunc, "title": stdlib.TitleFunc, "trim": stdlib.TrimFunc, "trimprefix": stdlib.TrimPrefixFunc, "trimspace": stdlib.TrimSpaceFunc,
	"trimsuffix": stdlib.TrimSuffixFunc, "upper": stdlib.UpperFunc, "values": stdlib.ValuesFunc, "yamldecode": yamlDecodeFunc, "zipmap": stdlib.ZipmapFunc,
	"alltrue": allTrueFunc, "anytrue": anyTrueFunc, "endswith": endsWithFunc, "hasindex": stdlib.HasIndexFunc, "index": indexFunc, "one": oneFunc,
	"startswith": startsWithFunc, "strcontains": strContainsFunc, "sum": sumFunc,
	"tobool": stdlib.MakeToFunc(cty.Bool), "tolist": stdlib.MakeToFunc(cty.List(cty.DynamicPseudoType)), "tomap": stdlib.MakeToFunc(cty.Map(cty.DynamicPseudoType)),
	"tonumber": stdlib.MakeToFunc(cty.Number), "toset": stdlib.MakeToFunc(cty.Set(cty.DynamicPseudoType)), "tostring": stdlib.MakeToFunc(cty.String),
	"cidrhost": cidrHostFunc, "cidrsubnet": cidrSubnetFunc, "cidrnetmask": cidrNetmaskFunc,
}

// remembered are the functions whose results are kept: templates call them again
// and again with the same long text.
var remembered = map[string]bool{"csvdecode": true, "jsondecode": true, "yamldecode": true}

// functions is the table of one evaluation, of a site and all its modules:
// bounded.
func (p *program) functions() map[string]function.Function {
	out := make(map[string]function.Function, len(standard)+2)
	for name, f := range standard {
		out[name] = p.guarded(name, f)
	}
	out["try"] = tryfunc.TryFunc // these two only evaluate what is metered itself
	out["can"] = tryfunc.CanFunc
	return out
}

// templateFile fills in a template; a template that filled in itself would not
// end, so that it is the one function that templates do not have.
const templateFile = "templatefile"

// fileFunctions are those whose paths are relative to the folder of the module.
func (p *program) fileFunctions() map[string]function.Function {
	return map[string]function.Function{"file": p.fileFunc(), "fileexists": p.fileExistsFunc(), templateFile: p.templateFileFunc(), "secret": p.module.secretFunc()}
}

// lengthFunc is Terraform's length: of collections, and of strings in characters.
var lengthFunc = function.New(&function.Spec{
	Params: []function.Parameter{{Name: "value", Type: cty.DynamicPseudoType, AllowDynamicType: true, AllowMarked: true}},
	Type:   function.StaticReturnType(cty.Number),
	Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
		if args[0].Type() == cty.String {
			return stdlib.Strlen(args[0])
		}
		if args[0].Type().IsObjectType() {
			return cty.NumberIntVal(int64(len(args[0].Type().AttributeTypes()))), nil
		}
		return stdlib.Length(args[0])
	},
})

// guarded is f within the budget: what a call takes and what it gives is counted,
// and calls whose result would be out of all proportion are refused before they
// are made.
func (p *program) guarded(name string, f function.Function) function.Function {
	params, rest := openParameters(f)
	return function.New(&function.Spec{
		Description: f.Description(),
		Params:      params,
		VarParam:    rest,
		Type: func(args []cty.Value) (cty.Type, error) {
			if v, ok := p.recall(name, args); ok {
				return v.Type(), nil
			}
			if name == "jsonencode" && holdsSecret(args[0], p.opt.Limits.Elements) {
				return cty.DynamicPseudoType, argError(0, "secrets cannot be encoded")
			}
			if err := p.charge(name, args); err != nil {
				return cty.DynamicPseudoType, err
			}
			args, err := collectArguments(name, f, args)
			if err != nil {
				return cty.DynamicPseudoType, err
			}
			return f.ReturnTypeForValues(args)
		},
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			if v, ok := p.recall(name, args); ok {
				return v, nil
			}
			args, err := collectArguments(name, f, args)
			if err != nil {
				return cty.DynamicVal, err
			}
			v, err := f.Call(args)
			if err != nil {
				return v, err
			}
			if !p.budget.produce(textLen(v)) || anyHuge(v, p.opt.Limits.Elements) {
				return cty.DynamicVal, errTooMuch
			}
			if remembered[name] {
				p.memo[name+"\x00"+args[0].AsString()] = v
			}
			return v, nil
		},
	})
}

// holdsSecret reports whether a secret reference is anywhere in v; past limit
// elements it says yes.
func holdsSecret(v cty.Value, limit int) bool {
	if limit <= 0 {
		return true
	}
	if _, ok := SecretOf(v); ok {
		return true
	}
	if !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return false
	}
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); holdsSecret(e, limit-1) {
			return true
		}
	}
	return false
}

var errTooMuch = errors.New("the result is larger than a site may need")

// recall returns a result that was kept.
func (p *program) recall(name string, args []cty.Value) (cty.Value, bool) {
	if !remembered[name] || len(args) != 1 || !args[0].IsKnown() || args[0].IsNull() || args[0].Type() != cty.String {
		return cty.NilVal, false
	}
	v, ok := p.memo[name+"\x00"+args[0].AsString()]
	return v, ok
}

// charge takes what a call costs from the budget.
func (p *program) charge(name string, args []cty.Value) error {
	steps, text := 1, 0
	for _, a := range args {
		text += textLen(a)
		steps += sizeOf(a)
	}
	steps += text/100 + outOfProportion(name, args)
	if !p.budget.use(steps) || !p.budget.produce(text/16) {
		return errTooMuch
	}
	return nil
}

// sizeOf returns the number of elements of a collection.
func sizeOf(v cty.Value) int {
	if v == cty.NilVal || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 0
	}
	return v.LengthInt()
}

func textLen(v cty.Value) int {
	if v == cty.NilVal || v.Type() != cty.String || !v.IsKnown() || v.IsNull() {
		return 0
	}
	return len(v.AsString())
}

// never is more than any budget.
const never = 1 << 40

var (
	wideVerb    = lazyregexp.New(`%[^a-zA-Z%]*[0-9]{4,}`)
	wideNumber  = lazyregexp.New(`[eE]\+?[0-9]{4,}`)
	perResult   = 64 // bytes of output that count as one iteration
	perDistinct = 20 // comparisons that count as one iteration
)

// outOfProportion is the cost of calls whose result is larger than their
// arguments, in iterations.
func outOfProportion(name string, args []cty.Value) int {
	if len(args) == 0 {
		return 0
	}
	switch name {
	case "replace", "regexreplace":
		return (textLen(args[0]) + 1) * (textLen(args[len(args)-1]) + 1) / perResult
	case "join":
		n := 0
		for _, a := range args[1:] {
			n += sizeOf(a)
		}
		return n * (textLen(args[0]) + 1) / perResult
	case "indent":
		return indentCost(args)
	case "format", "formatlist":
		return formatCost(args)
	case "setproduct":
		n := 1
		for _, a := range args {
			n = min(n*max(sizeOf(a), 1), never)
		}
		return n * len(args)
	case "distinct":
		return sizeOf(args[0]) * sizeOf(args[0]) / perDistinct
	case "parseint":
		if textLen(args[0]) > 1000 {
			return never
		}
	}
	return 0
}

func indentCost(args []cty.Value) int {
	if len(args) < 2 || args[0].Type() != cty.Number || !args[0].IsKnown() || args[0].IsNull() {
		return 0
	}
	n, _ := args[0].AsBigFloat().Int64()
	if n > 1000 {
		return never
	}
	return int(max(n, 0)) * textLen(args[1]) / perResult
}

// formatCost refuses widths, and texts that become numbers, of thousands of
// digits.
func formatCost(args []cty.Value) int {
	for i, a := range args {
		if textLen(a) == 0 {
			continue
		}
		if i == 0 && wideVerb.MatchString(a.AsString()) || i > 0 && wideNumber.MatchString(a.AsString()) {
			return never
		}
	}
	return 0
}

// anyHuge reports whether there is a number in v that cannot be printed; past
// limit elements it says yes.
func anyHuge(v cty.Value, limit int) bool {
	if !v.IsKnown() || v.IsNull() {
		return false
	}
	if !v.CanIterateElements() {
		return hugeNumber(v)
	}
	if v.Type().IsCollectionType() && v.Type().ElementType() == cty.String {
		return v.LengthInt() > limit
	}
	left := limit
	return walkHuge(v, &left)
}

func walkHuge(v cty.Value, left *int) bool {
	if *left--; *left < 0 {
		return true
	}
	if !v.IsKnown() || v.IsNull() {
		return false
	}
	if !v.CanIterateElements() {
		return hugeNumber(v)
	}
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); walkHuge(e, left) {
			return true
		}
	}
	return false
}

// argError is an error about one argument.
func argError(i int, format string, a ...any) error {
	return function.NewArgError(i, fmt.Errorf(format, a...))
}

// FunctionNames lists the functions of the language, for documents and editors.
func FunctionNames() []string {
	p := program{budget: &budget{}}
	return slices.Sorted(func(yield func(string) bool) {
		maps.Keys(p.functions())(yield)
		maps.Keys(p.fileFunctions())(yield)
	})
}
