// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// evaluate gives v its values; what it needs has been visited.
func (p *program) evaluate(v *vertex) {
	ctx := p.context(v)
	if v.tmpl == nil {
		p.evaluateValue(v, ctx)
		return
	}
	v.values = map[string]cty.Value{}
	p.instances(v.tmpl, ctx, func(b *Body) {
		if v.root == useRoot {
			p.oneUse(v, b)
			return
		}
		p.result.Bodies[b.Type] = append(p.result.Bodies[b.Type], b)
		if v.tmpl.block.Refer {
			b.Value = p.object(b)
			if _, dup := v.values[b.Name]; !dup {
				v.values[b.Name] = b.Value
			}
		}
	})
	v.tmpl.dropExpressions()
	v.refs = nil
}

// oneUse evaluates one instance of a use block.
func (p *program) oneUse(v *vertex, b *Body) {
	if _, dup := v.values[b.Name]; dup {
		p.diags.Add("name.duplicate", b.Named, "Second use of this name", fmt.Sprintf("The name %q is taken by another use. Give each a name of its own.", b.Name)).In(b.Decl)
		return
	}
	v.values[b.Name] = p.use(v, b)
}

// evaluateValue evaluates a local or the default of a variable.
func (p *program) evaluateValue(v *vertex, ctx *hcl.EvalContext) {
	val := cty.DynamicVal
	if v.expr != nil && v.expr.expr != nil && !v.expr.broken && !v.broken && !p.budget.spent {
		var found hcl.Diagnostics
		val, found = v.expr.expr.Value(ctx)
		p.report(found, "")
		if found.HasErrors() {
			val = cty.DynamicVal
		} else if n, most := countElements(val, p.opt.Limits.Elements), p.opt.Limits.Elements; !p.spend(n/perLook, v.expr.expr.Range()) {
			val = cty.DynamicVal
		} else if n >= most {
			p.diags.Add("language.limit", v.expr.expr.Range(), "Value past its limit", fmt.Sprintf("%s has more than %d elements.", v, most))
			val = cty.DynamicVal
		}
		val = p.checkDefault(v, val)
		p.clearContent(v.name, val, v.expr.expr.Range(), v.decl)
	}
	v.values = map[string]cty.Value{v.name: val}
}

// perLook is how many elements that are looked at, not evaluated, count as one
// iteration.
const perLook = 64

// spend takes n iterations from the budget, and says so when there are none left.
func (p *program) spend(n int, at hcl.Range) bool {
	if n == 0 || p.budget.use(n) {
		return true
	}
	_, found := p.budget.exhausted(at, fmt.Sprintf("%d iterations", p.opt.Limits.Iterations))
	p.report(found, "")
	return false
}

// countElements counts the values within v, no further than to limit. Values share
// their parts, so that a short chain of locals can mean a very large tree.
func countElements(v cty.Value, limit int) int {
	if limit <= 0 || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 1
	}
	n := 1
	for it := v.ElementIterator(); it.Next() && n < limit; {
		_, e := it.Element()
		n += countElements(e, limit-n)
	}
	return n
}

// context is the scope of v: the values of all that it refers to.
func (p *program) context(v *vertex) *hcl.EvalContext {
	groups := map[string]map[string]cty.Value{}
	hidden := map[string]bool{} // roots of which not every name is known
	for _, ref := range v.refs {
		if root := ref.steps.RootName(); p.roots[root] && groups[root] == nil {
			groups[root] = map[string]cty.Value{}
		}
	}
	for _, to := range v.deps {
		if to.isRepeated() && (to.broken || to.state != visited) {
			hidden[to.root] = true
			continue
		}
		group := groups[to.root]
		maps.Copy(group, to.values)
		if to.broken || to.values == nil {
			group[to.name] = cty.DynamicVal
		}
	}
	ctx := p.base.NewChild()
	ctx.Variables = make(map[string]cty.Value, len(groups))
	for root, group := range groups {
		ctx.Variables[root] = cty.ObjectVal(group)
		if hidden[root] {
			ctx.Variables[root] = cty.DynamicVal
		}
	}
	return ctx
}

// body evaluates the attributes and the nested blocks of one instance.
func (p *program) body(t *template, in instance) *Body {
	b := &Body{Type: t.block.Type, Kind: t.kind, Label: t.label, Name: in.name, Key: in.key, Decl: t.decl, Words: t.words, Labels: t.labels, Named: in.named,
		Syntax: t.syntax, Ctx: in.ctx, module: p.module, spec: t.body, source: t}
	b.attrs = make([]attrValue, len(t.attrs))
	for i := range t.attrs {
		b.attrs[i] = p.attr(t, i, in)
	}
	ctx := in.ctx
	if t.block.Scope != "" {
		ctx = in.ctx.NewChild()
		ctx.Variables = map[string]cty.Value{t.block.Scope: p.scope(b, in)}
		b.Ctx = ctx
	}
	if len(t.nested) > 0 {
		b.nested = make([][]*Body, len(t.nested))
		for i, list := range t.nested {
			for _, inner := range list {
				p.instances(inner, ctx, func(n *Body) { b.nested[i] = append(b.nested[i], n) })
			}
		}
	}
	return b
}

// attr evaluates one attribute.
func (p *program) attr(t *template, i int, in instance) attrValue {
	spec, a := &t.body.Attrs[i], t.attrs[i]
	missing := attrValue{raw: cty.NullVal(spec.Type.value)}
	if a == nil || a.expr == nil {
		if spec.Default == cty.NilVal {
			return missing
		}
		value, _ := spec.Type.parse(spec.Default)
		return attrValue{raw: spec.Default, value: value}
	}
	bad := attrValue{raw: cty.UnknownVal(spec.Type.value), given: true}
	if a.broken || p.budget.spent {
		return bad
	}
	v, found := p.joined(a, in.ctx)
	if len(found) > 0 {
		p.report(found, in.words())
		if found.HasErrors() {
			return bad
		}
	}
	if v.IsNull() {
		if spec.Required {
			p.diags.Add("language.required", a.expr.Range(), fmt.Sprintf("No %s given", spec.Name),
				fmt.Sprintf("%s is null; %s needs it: %s.%s", spec.Name, withArticle(t.block.Type), spec.Type.Words, in.words())).In(t.decl)
		}
		return missing
	}
	return p.typed(t, i, v, in, bad)
}

// typed converts the value of an attribute to its type.
func (p *program) typed(t *template, i int, v cty.Value, in instance, bad attrValue) attrValue {
	spec, a := &t.body.Attrs[i], t.attrs[i]
	if n := sizeOf(v); n >= perLook && !p.spend(n/perLook, a.expr.Range()) || !spec.shallow && !isUsable(v) {
		return bad
	}
	if want := spec.Type.value; want != cty.DynamicPseudoType && !v.Type().Equals(want) {
		conv, err := convert.Convert(v, want)
		if err != nil {
			p.wrongType(t, a, spec, v, err, in)
			return bad
		}
		v = conv
	}
	value, err := spec.Type.parse(v)
	if err != nil {
		p.wrongValue(t, a, spec, err, in)
		return bad
	}
	p.clearContent(spec.Name, v, a.expr.Range(), t.decl)
	return attrValue{raw: v, value: value, given: true}
}

// isUsable reports whether v can be used. Blocks are deep and were checked by
// themselves; only their own id matters.
func isUsable(v cty.Value) bool {
	if !v.IsKnown() {
		return false
	}
	if v.IsNull() || !v.CanIterateElements() {
		return true
	}
	if v.Type().IsObjectType() && v.Type().HasAttribute(idAttr) {
		return v.GetAttr(idAttr).IsKnown()
	}
	for it := v.ElementIterator(); it.Next(); {
		if _, e := it.Element(); !isUsable(e) {
			return false
		}
	}
	return true
}
