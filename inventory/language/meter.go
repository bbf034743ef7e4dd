// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"math/big"
	"strconv"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// budget is what is left of the limits of one evaluation. It belongs to one
// goroutine.
type budget struct {
	lim        Limits
	instances  int
	iterations int
	output     int64
	source     sizes // of all files of the language
	spent      bool  // a limit was passed: everything evaluates to unknown from here
}

// use takes n iterations; it reports false when none are left.
func (b *budget) use(n int) bool {
	if b.spent {
		return false
	}
	b.iterations += n
	return b.iterations <= b.lim.Iterations
}

// produce takes n bytes of output.
func (b *budget) produce(n int) bool {
	if b.spent {
		return false
	}
	b.output += int64(n)
	return b.output <= b.lim.Output
}

// metered counts the evaluations of an expression that a loop repeats.
type metered struct {
	hclsyntax.Expression
	budget *budget
}

// Value evaluates the expression, or nothing when the budget is spent. Only the
// first time past the limit says so: a loop that is still under way would
// otherwise say it a million times.
func (m *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if m.budget.use(1) {
		return m.Expression.Value(ctx)
	}
	return m.budget.exhausted(m.Range(), fmt.Sprintf("%d iterations", m.budget.lim.Iterations))
}

func (b *budget) exhausted(at hcl.Range, limit string) (cty.Value, hcl.Diagnostics) {
	if b.spent {
		return cty.DynamicVal, nil
	}
	b.spent = true
	return cty.DynamicVal, hcl.Diagnostics{{Severity: hcl.DiagError, Summary: limitSummary, Detail: limitDetail(limit), Subject: &at}}
}

const limitSummary = "Evaluation past its limit"

func limitDetail(limit string) string {
	return fmt.Sprintf("Evaluating the site takes more than the limit of %s. Nothing is evaluated from here on.", limit)
}

// weighed counts the bytes that a part of a template produces.
type weighed struct {
	hclsyntax.Expression
	budget *budget
}

// Value evaluates the part and counts its text.
func (w *weighed) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := w.Expression.Value(ctx)
	v = wholeText(v)
	if v.Type() == cty.String && v.IsKnown() && !v.IsNull() && !w.budget.produce(len(v.AsString())) {
		return w.budget.exhausted(w.Range(), fmt.Sprintf("%d bytes of text", w.budget.lim.Output))
	}
	return v, diags
}

// wholeText returns a whole number as the text that a template makes of it, and
// anything else as it is. The library looks for the shortest decimal of 512 bits,
// which takes most of the time of a template such as "r${n}-u${m}".
func wholeText(v cty.Value) cty.Value {
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return v
	}
	n, accuracy := v.AsBigFloat().Int64()
	if accuracy != big.Exact {
		return v
	}
	return cty.StringVal(strconv.FormatInt(n, 10))
}

// bounded refuses numbers whose text would fill the memory, such as 1e999999999.
type bounded struct {
	hclsyntax.Expression
}

// Value evaluates the operand and looks at its size.
func (b *bounded) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	v, diags := b.Expression.Value(ctx)
	if hugeNumber(v) {
		at := b.Range()
		return cty.DynamicVal, append(diags, &hcl.Diagnostic{Severity: hcl.DiagError, Summary: limitSummary, Detail: "The number is larger or smaller than any quantity of a site.", Subject: &at})
	}
	return v, diags
}

// maxExponent is the largest binary exponent of a number.
const maxExponent = 4096

func hugeNumber(v cty.Value) bool {
	if v.Type() != cty.Number || !v.IsKnown() || v.IsNull() {
		return false
	}
	f := v.AsBigFloat()
	if f.IsInf() {
		return true
	}
	e := f.MantExp(nil)
	return e > maxExponent || e < -maxExponent
}

// addMeters puts the meters into an expression tree. It must come after the
// references were collected: walking does not recognise what a meter wraps.
func addMeters(expr hclsyntax.Expression, b *budget) hclsyntax.Expression {
	var nodes []hclsyntax.Node
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		nodes = append(nodes, n)
		return nil
	})
	for _, n := range nodes {
		switch n := n.(type) {
		case *hclsyntax.ForExpr:
			n.ValExpr = &metered{n.ValExpr, b}
			if n.CondExpr != nil {
				n.CondExpr = &metered{n.CondExpr, b}
			}
		case *hclsyntax.SplatExpr:
			n.Each = &metered{n.Each, b}
		case *hclsyntax.TemplateExpr:
			for i, part := range n.Parts {
				if _, literal := part.(*hclsyntax.LiteralValueExpr); !literal {
					n.Parts[i] = &weighed{&bounded{part}, b}
				}
			}
		case *hclsyntax.BinaryOpExpr:
			n.LHS, n.RHS = &bounded{n.LHS}, &bounded{n.RHS}
		case *hclsyntax.UnaryOpExpr:
			n.Val = &bounded{n.Val}
		case *hclsyntax.FunctionCallExpr:
			for i := range n.Args {
				n.Args[i] = &bounded{n.Args[i]}
			}
		}
	}
	return &bounded{expr}
}

// UnwrapExpression gives static analysis what is inside.
func (m *metered) UnwrapExpression() hcl.Expression { return m.Expression }

// UnwrapExpression gives static analysis what is inside.
func (w *weighed) UnwrapExpression() hcl.Expression { return w.Expression }

// UnwrapExpression gives static analysis what is inside.
func (b *bounded) UnwrapExpression() hcl.Expression { return b.Expression }

// stripMeters returns the expression inside all meters.
func stripMeters(e hclsyntax.Expression) hclsyntax.Expression {
	for {
		switch m := e.(type) {
		case *metered:
			e = m.Expression
		case *weighed:
			e = m.Expression
		case *bounded:
			e = m.Expression
		case *hclsyntax.ParenthesesExpr:
			e = m.Expression
		default:
			return e
		}
	}
}
