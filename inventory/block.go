// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"iter"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/gohcl"
	"github.com/zclconf/go-cty/cty"
)

// Block is a two-label block (image, driver, fabric, handover). Load checks its
// attributes against the kind's KindSpec; their meaning is the kind owner's, who
// decodes them later.
type Block struct {
	Kind  string // first label
	Name  string // second label, unique among its type
	Body  hcl.Body
	Ctx   *hcl.EvalContext // what the body's references mean; read-only
	Value cty.Value        // the evaluated attributes and nested blocks, as references see them
	Decl  hcl.Range        // the header

	// Ranges are the places of the attributes of the body, by name.
	Ranges map[string]hcl.Range
}

// Decode reads the body into a struct with gohcl tags. A secret is decoded into a
// cty.Value field (see SecretRef), a reference to another block likewise (see
// RefName). The diagnostics are sorted.
func (b Block) Decode(into any) hcl.Diagnostics {
	diags := gohcl.DecodeBody(b.Body, b.Ctx, into)
	sortHCL(diags)
	return diags
}

// Place is where an attribute stands, or the header when it is not given.
func (b Block) Place(attribute string) hcl.Range { return PlaceOf(b.Ranges, attribute, b.Decl) }

// PlaceOf is where an attribute or nested block stands by the ranges of what was given,
// or decl, the header of the block, when it is not given.
func PlaceOf(ranges map[string]hcl.Range, attribute string, decl hcl.Range) hcl.Range {
	if at, ok := ranges[attribute]; ok {
		return at
	}
	return decl
}

// Text returns an attribute that is a text; "" when it is not given.
func (b Block) Text(attribute string) string {
	v, ok := Attribute(b.Value, attribute)
	if !ok || v.Type() != cty.String {
		return ""
	}
	return v.AsString()
}

// True reports whether an attribute is given and true.
func (b Block) True(attribute string) bool {
	v, ok := Attribute(b.Value, attribute)
	return ok && v.Type() == cty.Bool && v.True()
}

// Number returns an attribute that is a whole number; 0 when it is not given.
func (b Block) Number(attribute string) int {
	v, ok := Attribute(b.Value, attribute)
	if !ok || v.Type() != cty.Number {
		return 0
	}
	n, _ := v.AsBigFloat().Int64()
	return int(n)
}

// Texts returns the texts of an attribute that is a list, in their order.
func (b Block) Texts(attribute string) []string {
	var list []string
	for _, text := range b.Entries(attribute) {
		list = append(list, text)
	}
	return list
}

// Entries yields the texts of an attribute that is a map, in the order of its
// keys. Of a list the keys are "".
func (b Block) Entries(attribute string) iter.Seq2[string, string] {
	return func(yield func(key, text string) bool) {
		v, ok := Attribute(b.Value, attribute)
		if !ok || !v.CanIterateElements() {
			return
		}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if e.Type() != cty.String || e.IsNull() {
				continue
			}
			key := ""
			if k.Type() == cty.String {
				key = k.AsString()
			}
			if !yield(key, e.AsString()) {
				return
			}
		}
	}
}

// Attribute returns an attribute of an object, such as the value of a block or of
// a block within it; false when it is not given or not known.
func Attribute(object cty.Value, name string) (cty.Value, bool) {
	if object == cty.NilVal || object.IsNull() || !object.IsKnown() || !object.Type().IsObjectType() || !object.Type().HasAttribute(name) {
		return cty.NilVal, false
	}
	v := object.GetAttr(name)
	return v, !v.IsNull() && v.IsWhollyKnown()
}
