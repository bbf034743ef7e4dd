package language

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/ironrail/ironrail/inventory/diag"
)

const kindAttr = "kind"

// evaluate gives v its values; what it needs has been visited.
func (p *program) evaluate(v *vertex) {
	ctx := p.context(v)
	if v.tmpl == nil {
		p.evaluateValue(v, ctx)
		return
	}
	v.values = map[string]cty.Value{}
	p.instances(v.tmpl, ctx, func(b *Body) {
		p.result.Bodies[b.Type] = append(p.result.Bodies[b.Type], b)
		if v.tmpl.block.Refer {
			b.Value = p.object(b)
			if _, dup := v.values[b.Name]; !dup {
				v.values[b.Name] = b.Value
			}
		}
	})
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
		} else if n := p.opt.Limits.Elements; elements(val, n) >= n {
			p.diags.Add("language.limit", v.expr.expr.Range(), "Value past its limit", fmt.Sprintf("%s has more than %d elements.", v, n))
			val = cty.DynamicVal
		}
		val = p.checkDefault(v, val)
	}
	v.values = map[string]cty.Value{v.name: val}
}

// elements counts the values within v, no further than to limit. Values share
// their parts, so that a short chain of locals can mean a very large tree.
func elements(v cty.Value, limit int) int {
	if limit <= 0 || !v.IsKnown() || v.IsNull() || !v.CanIterateElements() {
		return 1
	}
	n := 1
	for it := v.ElementIterator(); it.Next() && n < limit; {
		_, e := it.Element()
		n += elements(e, limit-n)
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
		group := groups[to.root]
		switch {
		case to.isRepeated() && (to.broken || to.state != visited):
			hidden[to.root] = true
		case to.values == nil || to.tmpl == nil && to.broken:
			group[to.name] = cty.DynamicVal
		}
		for name, val := range to.values {
			group[name] = val
		}
		if to.broken && !to.isRepeated() {
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
		Syntax: t.syntax, Ctx: in.ctx, spec: t.body, source: t}
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
	spec, a := &t.body.Attrs[i], &t.attrs[i]
	missing := attrValue{raw: cty.NullVal(spec.Type.value)}
	if a.expr == nil {
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
	v, found := a.expr.Value(in.ctx)
	if len(found) > 0 {
		p.report(found, in.words())
		if found.HasErrors() {
			return bad
		}
	}
	if v.IsNull() {
		if spec.Required {
			p.diags.Add("language.required", a.expr.Range(), fmt.Sprintf("No %s given", spec.Name),
				fmt.Sprintf("%s is null; %s needs it: %s.%s", spec.Name, article(t.block.Type), spec.Type.Words, in.words())).In(t.decl)
		}
		return missing
	}
	return p.typed(t, i, v, in, bad)
}

// typed converts the value of an attribute to its type.
func (p *program) typed(t *template, i int, v cty.Value, in instance, bad attrValue) attrValue {
	spec, a := &t.body.Attrs[i], &t.attrs[i]
	if !known(v) {
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
	return attrValue{raw: v, value: value, given: true}
}

// known reports whether v can be used. Blocks are deep and were checked by
// themselves; only their own id matters.
func known(v cty.Value) bool {
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
		if _, e := it.Element(); !known(e) {
			return false
		}
	}
	return true
}

func (p *program) wrongType(t *template, a *attrSyntax, spec *Attr, v cty.Value, err error, in instance) {
	at := a.expr.Range()
	if path, ok := errors.AsType[cty.PathError](err); ok && len(path.Path) > 0 {
		if step, ok := path.Path[0].(cty.IndexStep); ok && step.Key.Type() == cty.Number {
			n, _ := step.Key.AsBigFloat().Int64()
			at = elementRange(a.expr, int(n))
		}
	}
	check, summary := "language.type", fmt.Sprintf("Wrong type of %s", spec.Name)
	detail := fmt.Sprintf("%s is %s; %s is wanted.%s", spec.Name, article(v.Type().FriendlyName()), spec.Type.Words, in.words())
	if _, isSecret := SecretOf(v); isSecret {
		detail = fmt.Sprintf("%s is a secret; %s is wanted, and secrets are only for attributes that hold one.%s", spec.Name, spec.Type.Words, in.words())
	}
	p.diags.Add(check, at, summary, detail).In(t.decl)
}

func article(word string) string {
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}
	return "a " + word
}

// title is a word or two with a capital.
func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func (p *program) wrongValue(t *template, a *attrSyntax, spec *Attr, err error, in instance) {
	check, summary, at := "language.value", fmt.Sprintf("Wrong value of %s", spec.Name), a.expr.Range()
	if problem, ok := errors.AsType[*Problem](err); ok {
		if problem.Check != "" {
			check, summary = problem.Check, problem.Summary
		}
		if problem.Element >= 0 {
			at = elementRange(a.expr, problem.Element)
		}
	}
	p.diags.Add(check, at, summary, sentence(err.Error())+in.words()).In(t.decl)
}

// elementRange is the place of element i, when the elements are written one by
// one, else that of the expression.
func elementRange(expr hclsyntax.Expression, i int) hcl.Range {
	if list, diags := hcl.ExprList(expr); !diags.HasErrors() && i < len(list) {
		return list[i].Range()
	}
	return expr.Range()
}

// sentence ends text with a full stop.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// report imports what an evaluation found, with better words where we know more,
// and with the instance that it was found in.
func (p *program) report(found hcl.Diagnostics, words string) {
	for _, d := range found {
		if p.tornAt(d) || p.unknownIndex(d, words) {
			continue
		}
		c := *d
		if c.Summary != limitSummary {
			c.Detail = sentence(c.Detail) + words
		}
		p.diags.Import(hcl.Diagnostics{&c}, "language.expression")
	}
}

// tornAt reports whether d is about a file that the parser gave up on: what is
// left of its expressions says nothing more.
func (p *program) tornAt(d *hcl.Diagnostic) bool {
	return d.Subject != nil && p.torn[d.Subject.Filename] || d.Context != nil && p.torn[d.Context.Filename]
}

// unknownIndex reports hardware[name] with a name that does not exist.
func (p *program) unknownIndex(d *hcl.Diagnostic, words string) bool {
	index, ok := d.Expression.(*hclsyntax.IndexExpr)
	if !ok || d.Summary != "Invalid index" || d.EvalContext == nil {
		return false
	}
	coll, ok := bare(index.Collection).(*hclsyntax.ScopeTraversalExpr)
	if !ok || len(coll.Traversal) != 1 || !p.roots[coll.Traversal.RootName()] {
		return false
	}
	key, found := index.Key.Value(d.EvalContext)
	if found.HasErrors() || key.IsNull() || !key.IsKnown() || key.Type() != cty.String {
		return false
	}
	root, name := coll.Traversal.RootName(), key.AsString()
	if !p.partial {
		p.diags.Add("reference.unknown", index.Key.Range(), fmt.Sprintf("Unknown %s", root),
			fmt.Sprintf("There is no %s %q.%s%s", wordOf(root), name, diag.DidYouMean(name, p.names(root)), words)).In(index.SrcRange)
	}
	return true
}

// object is the value of a block as references see it.
func (p *program) object(b *Body) cty.Value {
	attrs := map[string]cty.Value{}
	for i, a := range b.spec.Attrs {
		attrs[a.Name] = b.attrs[i].raw
	}
	for i, spec := range b.spec.Blocks {
		attrs[spec.Type] = p.nestedValue(&spec, b.nested[i])
	}
	if b.Kind != "" {
		attrs[kindAttr] = cty.StringVal(b.Kind)
	}
	attrs[nameAttr] = cty.StringVal(b.Name)
	if len(b.Labels) > 0 || b.Type != "" {
		attrs[idAttr] = cty.StringVal(b.Type + "." + b.Name)
	}
	return cty.ObjectVal(attrs)
}

func (p *program) nestedValue(spec *BlockSpec, list []*Body) cty.Value {
	switch {
	case spec.Single && len(list) == 0:
		return cty.NullVal(cty.DynamicPseudoType)
	case spec.Single:
		return p.plainObject(list[0])
	case len(spec.Labels) > 0:
		out := map[string]cty.Value{}
		for _, b := range list {
			out[b.Name] = p.plainObject(b)
		}
		return cty.ObjectVal(out)
	}
	out := make([]cty.Value, len(list))
	for i, b := range list {
		out[i] = p.plainObject(b)
	}
	return cty.TupleVal(out)
}

// plainObject is a nested block's value: without id, for nothing refers to it.
func (p *program) plainObject(b *Body) cty.Value {
	attrs := map[string]cty.Value{}
	for i, a := range b.spec.Attrs {
		attrs[a.Name] = b.attrs[i].raw
	}
	for i, spec := range b.spec.Blocks {
		attrs[spec.Type] = p.nestedValue(&spec, b.nested[i])
	}
	return cty.ObjectVal(attrs)
}

// scope is what blocks within b see as rack.
func (p *program) scope(b *Body, in instance) cty.Value {
	attrs := map[string]cty.Value{}
	for i, a := range b.spec.Attrs {
		attrs[a.Name] = b.attrs[i].raw
	}
	attrs[nameAttr] = cty.StringVal(b.Name)
	for _, own := range []string{eachRoot, countRoot} {
		if v, ok := in.ctx.Variables[own]; ok {
			attrs[own] = v
		}
	}
	return cty.ObjectVal(attrs)
}
