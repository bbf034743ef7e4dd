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
// which looks at every row of the list once for each rack: quadratic in the size
// of the site. joins keeps, for every such expression, the rows by the value of
// the compared attribute, so that each rack looks at its own rows only.
type joins map[*hclsyntax.ForExpr]*join

// join is the index of one for expression; rows is nil when it is of another
// shape, or when a row lacks the attribute.
type join struct {
	rows map[string][]cty.Value
	want hclsyntax.Expression // what the attribute is compared with
}

// joined evaluates a for_each, by the index where there is one.
func (p *program) joined(a *attrSyntax, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	expr, ok := bare(a.expr).(*hclsyntax.ForExpr)
	if !ok {
		return a.expr.Value(ctx)
	}
	j, ok := p.joins[expr]
	if !ok {
		j = p.newJoin(expr, ctx)
		p.joins[expr] = j
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

// newJoin recognises `for x in local.list : ... if x.attr == something`, without
// a key variable, and indexes the list.
func (p *program) newJoin(expr *hclsyntax.ForExpr, ctx *hcl.EvalContext) *join {
	attr, want := comparison(expr)
	coll, ok := bare(expr.CollExpr).(*hclsyntax.ScopeTraversalExpr)
	if attr == nil || !ok || coll.Traversal.RootName() != localRoot && coll.Traversal.RootName() != varRoot {
		return &join{}
	}
	list, found := coll.Value(ctx)
	if found.HasErrors() || !list.IsKnown() || list.IsNull() || !list.CanIterateElements() {
		return &join{}
	}
	rows := map[string][]cty.Value{}
	for it := list.ElementIterator(); it.Next(); {
		_, row := it.Element()
		key, found := attr.TraverseRel(row)
		if found.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String || !p.budget.use(1) {
			return &join{}
		}
		rows[key.AsString()] = append(rows[key.AsString()], row)
	}
	return &join{rows: rows, want: want}
}

// comparison takes the condition apart: the attribute of the loop's variable, and
// the reference to something outside of the loop that it must equal.
func comparison(expr *hclsyntax.ForExpr) (hcl.Traversal, hclsyntax.Expression) {
	if expr.CondExpr == nil || expr.KeyVar != "" {
		return nil, nil
	}
	cond, ok := bare(expr.CondExpr).(*hclsyntax.BinaryOpExpr)
	if !ok || cond.Op != hclsyntax.OpEqual {
		return nil, nil
	}
	left, lok := bare(cond.LHS).(*hclsyntax.ScopeTraversalExpr)
	right, rok := bare(cond.RHS).(*hclsyntax.ScopeTraversalExpr)
	if !lok || !rok {
		return nil, nil
	}
	if right.Traversal.RootName() == expr.ValVar {
		left, right = right, left
	}
	if left.Traversal.RootName() != expr.ValVar || right.Traversal.RootName() == expr.ValVar || len(left.Traversal) < 2 {
		return nil, nil
	}
	return left.Traversal[1:], right
}
