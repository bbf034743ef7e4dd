// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

// instance is one thing that a block stands for.
type instance struct {
	ctx   *hcl.EvalContext
	key   string // each.key or the number of count; "" when not repeated
	name  string
	named hcl.Range
	loop  string // "for_each", "count" or ""
	use   string // the use of the module that it stands in; ""
}

// words says in a message which instance it is about.
func (in instance) words() string {
	switch {
	case in.loop == "" && in.use == "":
		return ""
	case in.use == "":
		return fmt.Sprintf(" (For key %q.)", in.key)
	case in.loop == "":
		return fmt.Sprintf(" (In %s.)", in.use)
	}
	return fmt.Sprintf(" (For key %q, in %s.)", in.key, in.use)
}

// instances evaluates every thing that t stands for, in the order of the keys.
func (p *program) instances(t *template, ctx *hcl.EvalContext, emit func(*Body)) {
	switch {
	case t.each.expr != nil:
		p.forEach(t, ctx, emit)
	case t.count.expr != nil:
		p.counted(t, ctx, emit)
	default:
		p.one(t, instance{ctx: ctx}, emit)
	}
}

// one names and evaluates an instance.
func (p *program) one(t *template, in instance, emit func(*Body)) {
	if p.budget.instances++; p.budget.instances > p.opt.Limits.Instances {
		if !p.budget.spent {
			p.budget.spent = true
			p.diags.Add("language.limit", t.decl, limitSummary, limitDetail(fmt.Sprintf("%d things", p.opt.Limits.Instances)))
		}
		return
	}
	in.name, in.named, in.use = t.label, t.decl, p.module.name
	if len(t.labels) > 0 {
		in.named = t.labels[len(t.labels)-1]
	}
	if in.loop != "" {
		in.name = t.label + "-" + in.key
	}
	if t.name.expr != nil && !p.nameOf(t, &in) {
		return
	}
	emit(p.body(t, in))
}

// nameOf evaluates the name attribute; without a name the thing is left out.
func (p *program) nameOf(t *template, in *instance) bool {
	in.named = t.name.expr.Range()
	if t.name.broken || p.budget.spent {
		return false
	}
	v, found := t.name.expr.Value(in.ctx)
	if len(found) > 0 {
		p.report(found, in.words())
	}
	if found.HasErrors() || !v.IsKnown() {
		return false
	}
	if v.IsNull() { // as if it were not given
		in.named = t.decl
		if len(t.labels) > 0 {
			in.named = t.labels[len(t.labels)-1]
		}
		return true
	}
	v, err := convert.Convert(v, cty.String)
	if err != nil || v.AsString() == "" {
		p.diags.Add("language.type", in.named, "Wrong name", "A name is a string that is not empty."+in.words()).In(t.decl)
		return false
	}
	in.name = v.AsString()
	return true
}

// forEach evaluates a block with for_each.
func (p *program) forEach(t *template, ctx *hcl.EvalContext, emit func(*Body)) {
	if t.each.broken || p.budget.spent {
		p.hide(t)
		return
	}
	v, found := p.joined(&t.each, ctx)
	p.report(found, "")
	if found.HasErrors() || !v.IsKnown() {
		p.hide(t)
		return
	}
	ty := v.Type()
	if v.IsNull() {
		p.diags.Add("language.repeat", t.each.expr.Range(), "Wrong for_each", "for_each is null here. Give it a map or a set of strings; one without elements, such as {}, makes no things.").In(t.decl)
		return
	}
	if !ty.IsObjectType() && !ty.IsMapType() && !(ty.IsSetType() && ty.ElementType() == cty.String) {
		p.diags.Add("language.repeat", t.each.expr.Range(), "Wrong for_each",
			fmt.Sprintf("for_each wants a map, whose keys tell the things apart, or a set of strings; this is %s. A list becomes a set by toset(), or a map by { for x in list : x.name => x }.", withArticle(ty.FriendlyName()))).In(t.decl)
		return
	}
	for it := v.ElementIterator(); it.Next() && !p.budget.spent; {
		k, e := it.Element()
		if !k.IsKnown() || k.IsNull() {
			continue
		}
		child := ctx.NewChild()
		if ty.IsSetType() {
			k = e
		}
		child.Variables = map[string]cty.Value{eachRoot: cty.ObjectVal(map[string]cty.Value{"key": k, "value": e})}
		p.one(t, instance{ctx: child, key: k.AsString(), loop: forEachAttr}, emit)
	}
}

// counted evaluates a block with count.
func (p *program) counted(t *template, ctx *hcl.EvalContext, emit func(*Body)) {
	if t.count.broken || p.budget.spent {
		p.hide(t)
		return
	}
	v, found := t.count.expr.Value(ctx)
	p.report(found, "")
	if found.HasErrors() || !v.IsKnown() {
		p.hide(t)
		return
	}
	v, err := convert.Convert(v, cty.Number)
	n, acc := int64(-1), big.Exact
	if err == nil && !v.IsNull() {
		n, acc = v.AsBigFloat().Int64()
	}
	if n < 0 || acc != big.Exact {
		p.diags.Add("language.repeat", t.count.expr.Range(), "Wrong count", "count wants a whole number, 0 or more.").In(t.decl)
		return
	}
	for i := int64(0); i < n && !p.budget.spent; i++ {
		child := ctx.NewChild()
		child.Variables = map[string]cty.Value{countRoot: cty.ObjectVal(map[string]cty.Value{"index": cty.NumberIntVal(i)})}
		p.one(t, instance{ctx: child, key: fmt.Sprint(i), loop: countAttr}, emit)
	}
}

// hide marks the block whose things are not known, so that references to them
// are not reported as well.
func (p *program) hide(t *template) {
	if v := p.path[len(p.path)-1].v; v.tmpl == t {
		v.broken = true
	}
}
