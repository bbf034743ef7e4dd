// SPDX-License-Identifier: Apache-2.0

package language

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Body is one evaluated block: one thing, where the block is repeated.
type Body struct {
	Type   string
	Kind   string // the first of two labels; else ""
	Name   string // of the thing
	Label  string // as written in the block
	Key    string // each.key or count.index of a repeated block; else ""
	Decl   hcl.Range
	Words  []string    // all labels
	Labels []hcl.Range // and their places
	Named  hcl.Range   // where Name comes from: the name attribute or the label
	Syntax hcl.Body    // of a block of a kind; else nil
	Ctx    *hcl.EvalContext
	Value  cty.Value // the thing as references see it; only of top-level blocks

	module *module
	spec   *Spec
	source *template
	attrs  []attrValue // parallel to spec.Attrs
	nested [][]*Body   // parallel to spec.Blocks
}

// attrValue is an evaluated attribute.
type attrValue struct {
	raw   cty.Value
	value any // nil: absent, null, unknown or wrong
	given bool
}

// Module says which use of which module the block comes from, as in references:
// "use.row-a"; "" for the site's own files.
func (b *Body) Module() string { return b.module.name }

// ReadFile reads a file whose path is relative to the folder of the block's file.
func (b *Body) ReadFile(name string, limit int) ([]byte, error) {
	at, err := b.module.locate(nil, name)
	if err != nil {
		return nil, err
	}
	return ReadFile(at.fsys, at.dir, limit)
}

// Get returns the attribute as a T: what its Type gives. It is T's zero value
// when the attribute is absent or was reported as wrong.
func Get[T any](b *Body, name string) T {
	var zero T
	if b == nil {
		return zero
	}
	i := b.spec.attr(name)
	if i < 0 {
		return zero
	}
	v, ok := b.attrs[i].value.(T)
	if !ok {
		return zero
	}
	return v
}

// GetList returns a list attribute as a slice of what its elements give.
func GetList[T any](b *Body, name string) []T {
	list := Get[[]any](b, name)
	if len(list) == 0 {
		return nil
	}
	out := make([]T, 0, len(list))
	for _, x := range list {
		if v, ok := x.(T); ok {
			out = append(out, v)
		}
	}
	return out
}

// Given reports whether the attribute was written and is not null; it is true
// also when its value is wrong.
func (b *Body) Given(name string) bool {
	if b == nil {
		return false
	}
	i := b.spec.attr(name)
	return i >= 0 && b.attrs[i].given
}

// Right reports whether the attribute was given and its value was not reported as
// wrong: what Get returns is what the files say.
func (b *Body) Right(name string) bool {
	if b == nil {
		return false
	}
	i := b.spec.attr(name)
	return i >= 0 && b.attrs[i].given && b.attrs[i].value != nil
}

// Range returns the place of the attribute's value; that of the block's header
// when it is absent.
func (b *Body) Range(name string) hcl.Range {
	switch a := b.syntaxOf(name); {
	case a == nil:
		return b.Decl
	case a.expr != nil:
		return a.expr.Range()
	default:
		return a.places[0]
	}
}

// ElementRange returns the place of element i of a list attribute, that of the
// attribute when the elements are not written one by one.
func (b *Body) ElementRange(name string, i int) hcl.Range {
	switch a := b.syntaxOf(name); {
	case a == nil:
		return b.Decl
	case a.expr != nil:
		return elementRange(a.expr, i)
	case i+1 < len(a.places):
		return a.places[i+1]
	default:
		return a.places[0]
	}
}

// syntaxOf is the attribute as written; nil when it is absent.
func (b *Body) syntaxOf(name string) *attrSyntax {
	i := b.spec.attr(name)
	if i < 0 || b.source.attrs[i] == nil || b.source.attrs[i].expr == nil && b.source.attrs[i].places == nil {
		return nil
	}
	return b.source.attrs[i]
}

// AttrNames lists the attributes and nested blocks that were given.
func (b *Body) AttrNames() []string {
	var out []string
	for i, a := range b.attrs {
		if a.given {
			out = append(out, b.spec.Attrs[i].Name)
		}
	}
	for i, list := range b.nested {
		if len(list) > 0 {
			out = append(out, b.spec.Blocks[i].Type)
		}
	}
	return out
}

// Blocks returns the nested blocks of that type.
func (b *Body) Blocks(name string) []*Body {
	if b == nil {
		return nil
	}
	if i := b.spec.block(name); i >= 0 && i < len(b.nested) {
		return b.nested[i]
	}
	return nil
}

// Block returns the only nested block of that type, or nil.
func (b *Body) Block(name string) *Body {
	if list := b.Blocks(name); len(list) > 0 {
		return list[0]
	}
	return nil
}
