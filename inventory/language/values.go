// SPDX-License-Identifier: Apache-2.0

package language

import "github.com/zclconf/go-cty/cty"

const kindAttr = "kind"

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
