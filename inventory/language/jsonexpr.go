// SPDX-License-Identifier: Apache-2.0

package language

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// toNative returns expr as a tree of the native syntax, so that JSON is metered and
// examined like everything else. Strings of JSON are templates.
func toNative(expr hcl.Expression, lim Limits) (hclsyntax.Expression, hcl.Diagnostics) {
	if e, ok := expr.(hclsyntax.Expression); ok {
		return e, nil
	}
	if pairs, diags := hcl.ExprMap(expr); !diags.HasErrors() {
		return nativeMap(expr, pairs, lim)
	}
	if list, diags := hcl.ExprList(expr); !diags.HasErrors() {
		out := &hclsyntax.TupleConsExpr{SrcRange: expr.Range(), OpenRange: expr.StartRange()}
		var all hcl.Diagnostics
		for _, e := range list {
			n, diags := toNative(e, lim)
			all = append(all, diags...)
			out.Exprs = append(out.Exprs, n)
		}
		return out, all
	}
	v, diags := expr.Value(nil) // without a context, strings are literal
	if v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		return nativeTemplate(v.AsString(), expr.Range(), lim)
	}
	return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: expr.Range()}, diags
}

func nativeMap(expr hcl.Expression, pairs []hcl.KeyValuePair, lim Limits) (hclsyntax.Expression, hcl.Diagnostics) {
	out := &hclsyntax.ObjectConsExpr{SrcRange: expr.Range(), OpenRange: expr.StartRange()}
	var all hcl.Diagnostics
	for _, p := range pairs {
		k, diags := toNative(p.Key, lim)
		all = append(all, diags...)
		v, diags := toNative(p.Value, lim)
		all = append(all, diags...)
		out.Items = append(out.Items, hclsyntax.ObjectConsItem{KeyExpr: k, ValueExpr: v})
	}
	return out, all
}

func nativeTemplate(text string, at hcl.Range, lim Limits) (hclsyntax.Expression, hcl.Diagnostics) {
	start := at.Start
	start.Byte, start.Column = start.Byte+1, start.Column+1 // past the quote
	unknown := &hclsyntax.LiteralValueExpr{Val: cty.DynamicVal, SrcRange: at}
	if deepTemplate(text, lim) {
		return unknown, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: limitSummary, Detail: "The template is too deeply nested.", Subject: &at}}
	}
	expr, diags := hclsyntax.ParseTemplate([]byte(text), at.Filename, start)
	if diags.HasErrors() {
		return unknown, diags
	}
	return expr, diags
}

// deepTemplate reports whether parsing text as a template would recurse too far.
func deepTemplate(text string, lim Limits) bool {
	d := depth{lim: lim}
	for i := range len(text) {
		d.byte(text[i])
	}
	if d.over == "" {
		return false
	}
	d = depth{lim: lim}
	tokens, _ := hclsyntax.LexTemplate([]byte(text), "", hcl.InitialPos)
	for _, t := range tokens {
		d.token(t.Type)
	}
	return d.over != ""
}
