// SPDX-License-Identifier: Apache-2.0

package language

import (
	"github.com/zclconf/go-cty/cty"
)

// Attr is one attribute of a block.
type Attr struct {
	Name     string
	Type     Type
	Required bool
	shallow  bool      // the value may be deep and partly unknown
	Default  cty.Value // used when it is absent; the zero Value: none
}

// Spec is what a body may hold.
type Spec struct {
	Attrs  []Attr
	Blocks []BlockSpec
	// Labelled is what the spec of a kind is where a nested block is written with a label, and Blocks has
	// none for it; nil: it is always this one.
	Labelled *Spec
}

// BlockSpec is one type of block.
type BlockSpec struct {
	Type     string
	Labels   []string // names of the labels; the last one names the block
	Body     Spec
	Kinds    map[string]Spec // by the first label: what each kind adds to Body; nil: no kinds
	Single   bool            // at most one
	Need     bool            // at least one
	Repeat   bool            // may have for_each or count, and name; with a count of its own, for_each only
	Refer    bool            // others refer to it as type.name
	SiteOnly bool            // not in a module
	Scope    string          // its attributes are seen below as scope.attribute; "" for none
}

// attr returns the index of the attribute of that name, or -1.
func (s *Spec) attr(name string) int {
	for i := range s.Attrs {
		if s.Attrs[i].Name == name {
			return i
		}
	}
	return -1
}

// block returns the index of the nested block of that type, or -1.
func (s *Spec) block(name string) int {
	for i := range s.Blocks {
		if s.Blocks[i].Type == name {
			return i
		}
	}
	return -1
}

// names lists the attributes and nested blocks.
func (s *Spec) names() []string {
	var out []string
	for _, a := range s.Attrs {
		out = append(out, a.Name)
	}
	for _, b := range s.Blocks {
		out = append(out, b.Type)
	}
	return out
}

// mergeSpecs returns a with what b adds; b wins where both have an attribute.
func mergeSpecs(a, b Spec) *Spec {
	out := &Spec{Blocks: append(append([]BlockSpec{}, a.Blocks...), b.Blocks...)}
	for _, attr := range a.Attrs {
		if b.attr(attr.Name) < 0 {
			out.Attrs = append(out.Attrs, attr)
		}
	}
	out.Attrs = append(out.Attrs, b.Attrs...)
	return out
}
