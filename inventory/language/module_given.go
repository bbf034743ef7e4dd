// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/ironrail/ironrail/inventory/diag"
)

// given is what a use block says for a variable.
type given struct {
	value cty.Value
	at    hcl.Range // the value
	name  hcl.Range // name and value
}

// reportKey is a variable that a use block misses, or has too much.
type reportKey struct {
	at   hcl.Range
	name string
}

// again reports whether the same was said of this use block before: one that is
// repeated gets it wrong once, not for each key.
func (p *program) again(at hcl.Range, name string) bool {
	before := p.reported[reportKey{at, name}]
	p.reported[reportKey{at, name}] = true
	return before
}

// giveVariable is the value of a module's variable; false when the use block does
// not say one.
func (p *program) giveVariable(v *vertex, want cty.Type, out Variable) bool {
	if slices.Contains(reservedInputs, v.name) {
		p.diags.Add("language.variable", v.decl, "Name that no variable can have", fmt.Sprintf("%q is a word of the use block itself; a variable of a module has another name.", v.name))
		v.broken = true
		return true
	}
	g, ok := p.module.given[v.name]
	if !ok || g.value.IsKnown() && g.value.IsNull() {
		return false
	}
	v.state = visited
	v.values = map[string]cty.Value{v.name: cty.DynamicVal}
	if !g.value.IsKnown() {
		return true
	}
	_, isSecret := SecretOf(g.value)
	if out.Sensitive && !isSecret {
		p.diags.Add("secret.clear", g.at, "Secret in clear", fmt.Sprintf("The variable %q of %s is sensitive; give it a reference such as secret(\"env:NAME\").", v.name, p.module.name)).Also("the variable", v.decl)
		return true
	}
	val, err := convert.Convert(g.value, want)
	if err != nil {
		p.diags.Add("language.type", g.at, "Value of the wrong type", fmt.Sprintf("The variable %q of %s: %s.", v.name, p.module.name, err)).Also("the variable", v.decl)
		return true
	}
	v.values[v.name] = val
	return true
}

// unknownGiven reports values for variables that the module does not have.
func (p *program) unknownGiven(b *Body) {
	if p.partial {
		return
	}
	var known []string
	for name := range p.byName[varRoot] {
		known = append(known, name)
	}
	slices.Sort(known)
	for _, a := range b.spec.Attrs[1:] {
		if at := p.module.given[a.Name].name; !slices.Contains(known, a.Name) && !p.again(at, a.Name) {
			p.diags.Add("language.attribute", at, "Unknown variable of a module",
				fmt.Sprintf("The module %s has no variable %q.%s", p.module.folder.file(""), a.Name, diag.DidYouMean(a.Name, known))).In(b.Decl)
		}
	}
}
