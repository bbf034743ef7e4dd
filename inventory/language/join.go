// SPDX-License-Identifier: Apache-2.0

package language

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// The natural way to write a rack is
//
//	for_each = { for r in local.shipped : r.unit => r if r.rack == rack.name }
//
// and that of giving a module its rows
//
//	rows = [for r in local.shipped : r if r.rack == each.key]
//
// which looks at every row of the list once for each rack: quadratic in the size
// of the site. joins keeps, for every such expression, the rows by the value of
// the compared attribute, so that each rack looks at its own rows only.
type joins map[*hclsyntax.ForExpr]*join

// join is the index of one for expression; rows is nil when a row lacks the
// attribute, or has a value of another type there.
type join struct {
	attr  hcl.Traversal        // of a row
	want  hclsyntax.Expression // what it is compared with
	built bool
	rows  map[string][]cty.Value
}

// note remembers an expression of the form `for x in local.list : ... if x.attr ==
// something`, without a key variable. It comes before the meters are put in, which
// hide what an expression mentions.
func (j joins) note(expr hclsyntax.Expression) {
	e, ok := stripMeters(expr).(*hclsyntax.ForExpr)
	if !ok || e.CondExpr == nil || e.KeyVar != "" {
		return
	}
	coll, ok := stripMeters(e.CollExpr).(*hclsyntax.ScopeTraversalExpr)
	if !ok || coll.Traversal.RootName() != localRoot && coll.Traversal.RootName() != varRoot {
		return
	}
	cond, ok := stripMeters(e.CondExpr).(*hclsyntax.BinaryOpExpr)
	if !ok || cond.Op != hclsyntax.OpEqual {
		return
	}
	left, right := stripMeters(cond.LHS), stripMeters(cond.RHS)
	if mentionsName(right, e.ValVar) {
		left, right = right, left
	}
	row, ok := left.(*hclsyntax.ScopeTraversalExpr)
	if !ok || row.Traversal.RootName() != e.ValVar || len(row.Traversal) < 2 || mentionsName(right, e.ValVar) {
		return
	}
	j[e] = &join{attr: row.Traversal[1:], want: right}
}

func mentionsName(expr hclsyntax.Expression, name string) bool {
	for _, steps := range expr.Variables() {
		if steps.RootName() == name {
			return true
		}
	}
	return false
}

// joined evaluates an attribute, by the index where there is one.
func (p *program) joined(a *attrSyntax, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	expr, ok := stripMeters(a.expr).(*hclsyntax.ForExpr)
	if !ok {
		return a.expr.Value(ctx)
	}
	j := p.joins[expr]
	if j == nil {
		return a.expr.Value(ctx)
	}
	if !j.built {
		j.built = true
		j.rows = p.index(j.attr, expr, ctx)
	}
	if j.rows == nil {
		return a.expr.Value(ctx)
	}
	want, found := j.want.Value(ctx)
	if found.HasErrors() || !want.IsKnown() || want.IsNull() || want.Type() != cty.String {
		return a.expr.Value(ctx)
	}
	own := *expr
	own.CollExpr = &hclsyntax.LiteralValueExpr{Val: cty.TupleVal(j.rows[want.AsString()]), SrcRange: expr.CollExpr.Range()}
	own.CondExpr = nil
	return own.Value(ctx)
}

// index sorts the rows by the attribute; nil when that cannot be.
func (p *program) index(attr hcl.Traversal, expr *hclsyntax.ForExpr, ctx *hcl.EvalContext) map[string][]cty.Value {
	list, found := expr.CollExpr.Value(ctx)
	if found.HasErrors() || !list.IsKnown() || list.IsNull() || !list.CanIterateElements() {
		return nil
	}
	rows := map[string][]cty.Value{}
	for it := list.ElementIterator(); it.Next(); {
		_, row := it.Element()
		key, found := attr.TraverseRel(row)
		if found.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String || !p.budget.use(1) {
			return nil
		}
		rows[key.AsString()] = append(rows[key.AsString()], row)
	}
	return rows
}
