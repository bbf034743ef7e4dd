// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/ironrail/ironrail/inventory/diag"
)

var variableSchema = &hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "default"}, {Name: "type"}, {Name: "sensitive"}, {Name: "description"}}}

// variable makes the vertex of a variable; its value comes from the options or is
// its default.
func (p *program) variable(c *compiler, b *hcl.Block) {
	v := &vertex{root: varRoot, name: b.Labels[0], decl: b.DefRange, expr: &attrSyntax{}}
	content, found := b.Body.Content(variableSchema)
	p.diags.Import(found, "language.syntax")
	out := Variable{Name: v.name, Decl: b.DefRange}
	out.Sensitive = p.constant(content.Attributes["sensitive"], cty.Bool).True()
	out.Description = p.constant(content.Attributes["description"], cty.String).AsString()
	if p.module.by == nil {
		p.result.Variables = append(p.result.Variables, out)
	}
	want := cty.DynamicPseudoType
	if a := content.Attributes["type"]; a != nil {
		var bad hcl.Diagnostics
		want, bad = typeexpr.TypeConstraint(a.Expr)
		p.diags.Import(bad, "language.type")
	}
	text, given := p.opt.Variables[v.name]
	switch {
	case p.module.by != nil && p.giveVariable(v, want, out):
	case p.module.by == nil && given:
		v.values = map[string]cty.Value{v.name: p.input(text, want, out)}
		v.state = visited
	case content.Attributes["default"] != nil:
		c.take(v.expr, content.Attributes["default"], around{}, &v.refs)
		if !out.Sensitive { // then it is an error
			c.clearName(v.name, v.expr.expr, b.DefRange)
		}
		p.defaults[v] = variableType{want, out}
	case p.module.by != nil:
		if v.broken = true; p.again(p.module.at, v.name) {
			break
		}
		p.diags.Add("language.required", p.module.at, fmt.Sprintf("No %s given", v.name), fmt.Sprintf("The module %s needs its variable %q. Give it in %s: %s = ...", p.module.file(""), v.name, p.module.name, v.name)).Also("the variable", b.DefRange)
	default:
		v.broken = true
		p.diags.Add("language.variable", b.DefRange, "Variable without a value", fmt.Sprintf("The variable %q has no default and was not given. Give it: --var %s=VALUE.", v.name, v.name))
	}
	p.enter(v, true)
}

// variableType is what a variable's default must be.
type variableType struct {
	want cty.Type
	Variable
}

// constant evaluates an attribute that refers to nothing; absent or wrong, it is
// false or "".
func (p *program) constant(a *hcl.Attribute, want cty.Type) cty.Value {
	none := cty.StringVal("")
	if want == cty.Bool {
		none = cty.False
	}
	if a == nil {
		return none
	}
	v, found := a.Expr.Value(nil)
	if found.HasErrors() {
		p.diags.Import(found, "language.expression")
		return none
	}
	v, err := convert.Convert(v, want)
	if err != nil || v.IsNull() || !v.IsKnown() {
		p.diags.Add("language.type", a.Expr.Range(), "Wrong type", fmt.Sprintf("%s wants a %s.", a.Name, want.FriendlyName()))
		return none
	}
	return v
}

// input turns the text of an option into the variable's value.
func (p *program) input(text string, want cty.Type, v Variable) cty.Value {
	if v.Sensitive {
		ref, err := ParseSecret(text)
		if err != nil {
			p.diags.Add("secret.clear", v.Decl, "Secret in clear", fmt.Sprintf("The variable %q is sensitive, so its value is a reference: %s.", v.Name, err))
			return cty.DynamicVal
		}
		return secretVal(ref)
	}
	if want == cty.String || want == cty.DynamicPseudoType {
		return cty.StringVal(text)
	}
	val, ok := readLiteral(text, p.opt.Limits)
	if ok {
		var err error
		if val, err = convert.Convert(val, want); err == nil {
			return val
		}
	}
	p.diags.Add("language.variable", v.Decl, "Value of the wrong type", fmt.Sprintf("The value given for variable %q is not a %s.", v.Name, want.FriendlyName()))
	return cty.DynamicVal
}

// readLiteral reads an expression without references and functions.
func readLiteral(text string, lim Limits) (cty.Value, bool) {
	var refused diag.List
	if len(text) > lim.FileBytes || !prescanSource("", []byte(text), lim, &refused) {
		return cty.NilVal, false
	}
	expr, found := hclsyntax.ParseExpression([]byte(text), "", hcl.InitialPos)
	if found.HasErrors() {
		return cty.NilVal, false
	}
	v, found := addMeters(expr, &budget{lim: lim}).Value(nil)
	return v, !found.HasErrors() && v.IsWhollyKnown()
}

// checkDefault converts a variable's default; a sensitive one must be a secret
// reference.
func (p *program) checkDefault(v *vertex, val cty.Value) cty.Value {
	t, ok := p.defaults[v]
	if !ok || !val.IsKnown() {
		return val
	}
	if _, isSecret := SecretOf(val); isSecret || val.IsNull() {
		return val
	}
	if t.Sensitive {
		p.diags.Add("secret.clear", v.expr.expr.Range(), "Secret in clear",
			fmt.Sprintf("The variable %q is sensitive; its default must say where the secret lies, for instance secret(\"env:NAME\").", v.name)).In(v.decl)
		return cty.DynamicVal
	}
	out, err := convert.Convert(val, t.want)
	if err != nil {
		p.diags.Add("language.type", v.expr.expr.Range(), "Default of the wrong type", fmt.Sprintf("The default of variable %q: %s.", v.name, err)).In(v.decl)
		return cty.DynamicVal
	}
	return out
}

// unknownInputs reports values for variables that do not exist.
func (p *program) unknownInputs() {
	var known []string
	for name := range p.byName[varRoot] {
		known = append(known, name)
	}
	slices.Sort(known)
	var given []string
	for name := range p.opt.Variables {
		given = append(given, name)
	}
	slices.Sort(given)
	for _, name := range given {
		if !slices.Contains(known, name) && !p.partial {
			*p.diags = append(*p.diags, diag.Diagnostic{Check: "language.variable", Summary: "Value for an unknown variable",
				Detail: fmt.Sprintf("A value was given for %q, which is no variable of this site.%s", name, diag.DidYouMean(name, known))})
		}
	}
}
