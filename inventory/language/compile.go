// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
)

// template is a block as written, checked against its spec: what each of its
// instances is evaluated from.
type template struct {
	block  *BlockSpec
	body   *Spec // of the block, with what its kind adds
	kind   string
	label  string // the last label
	words  []string
	labels []hcl.Range
	decl   hcl.Range
	syntax hcl.Body      // only of a block of a kind, which may read it for itself
	attrs  []*attrSyntax // parallel to body.Attrs; nil: absent
	nested [][]*template
	each   attrSyntax // for_each
	count  attrSyntax
	name   attrSyntax
}

// attrSyntax is an attribute as written; expr is nil when it is absent, and once the
// block has been evaluated.
type attrSyntax struct {
	expr   hclsyntax.Expression
	at     hcl.Range // name and value
	broken bool      // already reported: not evaluated

	// places are, once expr is nil, that of the value and those of the elements of a list
	// that is written out.
	places []hcl.Range
}

// reference is one mention of something else in an expression.
type reference struct {
	steps hcl.Traversal
	owner *attrSyntax
	each  bool // in a block where each has a meaning
	count bool
	scope bool // in a block within one that has a scope
}

// repeated reports whether the block stands for many things.
func (t *template) repeated() bool { return t.each.expr != nil || t.count.expr != nil }

// dropExpressions keeps the places of what was evaluated and lets go of the rest: of a site
// with its nodes written out, expressions take more memory than all that they say.
func (t *template) dropExpressions() {
	for _, a := range t.attrs {
		if a != nil && a.expr != nil {
			a.drop()
		}
	}
	for _, list := range t.nested {
		for _, inner := range list {
			inner.dropExpressions()
		}
	}
}

func (a *attrSyntax) drop() {
	a.places = []hcl.Range{a.expr.Range()}
	if list, diags := hcl.ExprList(a.expr); !diags.HasErrors() {
		for _, e := range list {
			a.places = append(a.places, e.Range())
		}
	}
	a.expr = nil
}

// compiler turns blocks into templates.
type compiler struct {
	lim     Limits
	budget  *budget
	schemas map[*Spec]*hcl.BodySchema
	merged  map[string]*Spec // of typed blocks, by type and kind
	joins   joins
	diags   *diag.List
}

// around is what surrounds a block: which scope names have a meaning there.
type around struct{ each, count, scope bool }

const (
	forEachAttr = "for_each"
	countAttr   = "count"
	nameAttr    = "name"
)

// schema returns what the HCL library needs to know of a body.
func (c *compiler) schema(spec *Spec, repeat bool) *hcl.BodySchema {
	if s := c.schemas[spec]; s != nil {
		return s
	}
	s := &hcl.BodySchema{}
	for _, a := range spec.Attrs {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.Name})
	}
	if repeat {
		for _, name := range []string{forEachAttr, countAttr, nameAttr} {
			if spec.attr(name) < 0 {
				s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name})
			}
		}
	}
	for _, b := range spec.Blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: b.Type, LabelNames: b.Labels})
	}
	c.schemas[spec] = s
	return s
}

// compile checks a block and all that is nested in it; refs collects what its
// expressions mention.
func (c *compiler) compile(spec *BlockSpec, b *hcl.Block, in around, refs *[]reference) *template {
	t := &template{block: spec, body: &spec.Body, decl: b.DefRange, words: b.Labels, labels: b.LabelRanges}
	if n := len(b.Labels); n > 0 {
		t.label = b.Labels[n-1]
	}
	if spec.Kinds != nil {
		if t.syntax = b.Body; !c.kind(t, b) {
			return nil
		}
	}
	content, found := b.Body.Content(c.schema(t.body, spec.Repeat))
	c.diags.Import(found, "language.syntax")
	if spec.Repeat {
		c.take(&t.each, content.Attributes[forEachAttr], in, refs)
		if t.body.attr(countAttr) < 0 {
			c.take(&t.count, content.Attributes[countAttr], in, refs)
		}
		in.each = in.each || t.each.expr != nil
		in.count = in.count || t.count.expr != nil
		c.take(&t.name, content.Attributes[nameAttr], in, refs)
		c.repeat(t)
	}
	c.attributes(t, content, in, refs)
	in.scope = in.scope || spec.Scope != ""
	c.nest(t, content, in, refs)
	return t
}

// kind finds the spec of a typed block's kind.
func (c *compiler) kind(t *template, b *hcl.Block) bool {
	t.kind = b.Labels[0]
	extra, ok := t.block.Kinds[t.kind]
	if !ok {
		var known []string
		for k := range t.block.Kinds {
			known = append(known, k)
		}
		c.diags.Add("language.kind", b.LabelRanges[0], fmt.Sprintf("Unknown kind of %s", b.Type),
			fmt.Sprintf("There is no kind %q of %s.%s", t.kind, b.Type, diag.DidYouMean(t.kind, known))).In(b.DefRange)
		return false
	}
	key := b.Type + "." + t.kind
	if extra.Labelled != nil && hasLabels(b.Body) {
		extra, key = *extra.Labelled, key+" with labels"
	}
	if c.merged[key] == nil {
		c.merged[key] = mergeSpecs(t.block.Body, extra)
	}
	t.body = c.merged[key]
	return true
}

// hasLabels reports whether a block within a body has a label.
func hasLabels(b hcl.Body) bool {
	body, ok := b.(*hclsyntax.Body)
	return ok && slices.ContainsFunc(body.Blocks, func(b *hclsyntax.Block) bool { return len(b.Labels) > 0 })
}

// repeat checks the attributes that repeat a block.
func (c *compiler) repeat(t *template) {
	if t.each.expr != nil && t.count.expr != nil {
		c.diags.Add("language.repeat", t.count.at, "Both for_each and count", "A block is repeated by for_each or by count, not by both. Remove one of them.").In(t.decl)
		t.count.expr = nil
	}
	if t.block.Refer && t.name.expr != nil && !t.repeated() {
		c.diags.Add("language.attribute", t.name.at, "Name of a block that is not repeated",
			fmt.Sprintf("%s is named by its label, %q; name is for blocks with for_each or count.", toTitle(withArticle(t.block.Type)), t.label)).In(t.decl)
		t.name.expr = nil
	}
}

// attributes fills t.attrs and reports what is required and absent.
func (c *compiler) attributes(t *template, content *hcl.BodyContent, in around, refs *[]reference) {
	t.attrs = make([]*attrSyntax, len(t.body.Attrs))
	for i := range t.body.Attrs {
		a := &t.body.Attrs[i]
		if found := content.Attributes[a.Name]; found != nil {
			t.attrs[i] = &attrSyntax{}
			c.take(t.attrs[i], found, in, refs)
			if a.Type.Words != Secret.Words { // where text is an error
				c.clearName(a.Name, t.attrs[i].expr, t.decl)
			}
			continue
		}
		if a.Required {
			c.diags.Add("language.required", t.decl, fmt.Sprintf("No %s given", a.Name),
				fmt.Sprintf("%s needs the attribute %q: %s.", toTitle(withArticle(t.block.Type)), a.Name, a.Type.Words))
		}
	}
}

// take compiles one attribute into place: it collects the references, then puts
// in the meters. The place must not move afterwards; references point to it.
func (c *compiler) take(place *attrSyntax, a *hcl.Attribute, in around, refs *[]reference) {
	if a == nil {
		return
	}
	expr, found := toNative(a.Expr, c.lim)
	c.diags.Import(found, "language.syntax")
	*place = attrSyntax{expr: expr, at: a.Range, broken: found.HasErrors()}
	switch e := expr.(type) { // most attributes by far, and nothing in them to meter
	case *hclsyntax.ScopeTraversalExpr:
		*refs = append(*refs, reference{steps: e.Traversal, owner: place, each: in.each, count: in.count, scope: in.scope})
		return
	case *hclsyntax.TemplateExpr:
		if _, ok := writtenOut(e); ok {
			return
		}
	}
	for _, steps := range expr.Variables() {
		*refs = append(*refs, reference{steps: steps, owner: place, each: in.each, count: in.count, scope: in.scope})
	}
	if c.examine(expr) {
		place.broken = true
	}
	c.joins.note(expr)
	place.expr = addMeters(expr, c.budget)
}

// examine looks at what is written out within an expression: it reports number
// literals that are too large to be printed, and warns of secrets.
func (c *compiler) examine(expr hclsyntax.Expression) bool {
	huge := false
	_ = hclsyntax.VisitAll(expr, func(n hclsyntax.Node) hcl.Diagnostics {
		switch n := n.(type) {
		case *hclsyntax.LiteralValueExpr:
			if n.Val != cty.NilVal && hugeNumber(n.Val) {
				huge = true
				c.diags.Add("language.limit", n.SrcRange, limitSummary, "The number is larger or smaller than any quantity of a site.")
			}
		case *hclsyntax.ObjectConsExpr:
			c.clearKeys(n)
		}
		return nil
	})
	return huge
}

// nest compiles the nested blocks and checks how many there are.
func (c *compiler) nest(t *template, content *hcl.BodyContent, in around, refs *[]reference) {
	t.nested = make([][]*template, len(t.body.Blocks))
	for i := range t.body.Blocks {
		spec := &t.body.Blocks[i]
		seen := map[string]hcl.Range{}
		for _, b := range content.Blocks {
			if b.Type != spec.Type {
				continue
			}
			if spec.Single && len(t.nested[i]) > 0 {
				c.diags.Add("language.block", b.DefRange, fmt.Sprintf("More than one %s block", spec.Type),
					fmt.Sprintf("%s has one %s block at most. Merge the two.", toTitle(withArticle(t.block.Type)), spec.Type)).Also("the first one", t.nested[i][0].decl).In(t.decl)
				continue
			}
			inner := c.compile(spec, b, in, refs)
			if inner == nil {
				continue
			}
			c.sameLabel(inner, seen, b.DefRange)
			t.nested[i] = append(t.nested[i], inner)
		}
		if spec.Need && len(t.nested[i]) == 0 {
			c.diags.Add("language.required", t.decl, fmt.Sprintf("No %s block", spec.Type), fmt.Sprintf("%s needs a block %q.", toTitle(withArticle(t.block.Type)), spec.Type))
		}
	}
}

// sameLabel reports two blocks of one body with the same label; repeated ones are
// judged by the names of their things.
func (c *compiler) sameLabel(t *template, seen map[string]hcl.Range, at hcl.Range) {
	if len(t.labels) == 0 || t.repeated() || t.name.expr != nil {
		return
	}
	if first, dup := seen[t.label]; dup {
		c.diags.Add("name.duplicate", t.labels[len(t.labels)-1], fmt.Sprintf("Second %s %q", t.block.Type, t.label),
			fmt.Sprintf("There are two %s blocks %q here. Give one of them another name.", t.block.Type, t.label)).Also("the first one", first).In(at)
		return
	}
	seen[t.label] = at
}
