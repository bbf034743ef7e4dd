// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
)

// The roots of references that are no blocks.
const (
	localRoot = "local"
	varRoot   = "var"
	eachRoot  = "each"
	countRoot = "count"
)

// vertex is one thing that is evaluated as a whole: a local, a variable or a
// top-level block with all its instances.
type vertex struct {
	root, name string // how it is referred to; root is the type of a block
	decl       hcl.Range
	expr       *attrSyntax // of a local or a variable
	tmpl       *template   // of a block
	refs       []reference
	deps       []*vertex
	state      visitState
	broken     bool                 // was reported: its value is not known
	values     map[string]cty.Value // by name: what references see
}

type visitState uint8

const (
	unvisited visitState = iota
	visiting
	visited
)

// String is how the vertex is written in a reference.
func (v *vertex) String() string { return v.root + "." + v.name }

// hop is a step of the path that evaluation is on.
type hop struct {
	v  *vertex
	at hcl.Range // where the one before mentions it
}

// maxPath bounds references that lead to references.
const maxPath = 5000

// resolve finds what a reference means and reports what means nothing.
func (p *program) resolve(v *vertex, ref reference) {
	root := ref.steps.RootName()
	switch {
	case root == eachRoot || root == countRoot || root == p.scopeName:
		p.resolveScope(ref, root)
	case p.roots[root]:
		p.resolveName(v, ref, root)
	default:
		known := []string{localRoot, varRoot, eachRoot, countRoot}
		for r := range p.roots {
			known = append(known, r)
		}
		hint := ""
		if near := diag.Nearest(root, known); near != "" {
			hint = fmt.Sprintf(" Did you mean %q?", near)
		}
		p.unknown(ref, ref.steps[0].SourceRange(), "Unknown name", fmt.Sprintf("Nothing is named %q here. Text is written in quotes; references start with a type of block, var or local.%s", root, hint))
	}
}

// resolveScope checks each, count and the scope of the block around.
func (p *program) resolveScope(ref reference, root string) {
	ok := map[string]bool{eachRoot: ref.each, countRoot: ref.count}[root]
	want := map[string]string{eachRoot: forEachAttr, countRoot: countAttr}[root]
	if root == p.scopeName {
		ok = ref.scope
	}
	switch {
	case ok:
		p.scopeStep(ref, root)
	case want != "":
		p.complain(ref, "language.scope", ref.steps[0].SourceRange(), fmt.Sprintf("%s outside of a repeated block", root),
			fmt.Sprintf("%s has a meaning only in a block that has %s.", root, want))
	default:
		p.complain(ref, "language.scope", ref.steps[0].SourceRange(), fmt.Sprintf("%s outside of a %s", root, root),
			fmt.Sprintf("%s.name and its like have a meaning only in blocks within a %s.", root, root))
	}
}

// scopeStep checks the word after each, count or the scope's name.
func (p *program) scopeStep(ref reference, root string) {
	known := map[string][]string{eachRoot: {"key", "value"}, countRoot: {"index"}}[root]
	if root == p.scopeName {
		known = append([]string{nameAttr, eachRoot, countRoot}, p.scopeAttrs...)
	}
	if name, at, ok := wordOfStep(ref.steps, 1); ok && !containsName(known, name) {
		p.complain(ref, "language.reference", at, fmt.Sprintf("Unknown attribute of %s", root),
			fmt.Sprintf("%s has no attribute %q.%s", root, name, diag.DidYouMean(name, known)))
	}
}

// resolveName adds what root.name means to the things that v needs first.
func (p *program) resolveName(v *vertex, ref reference, root string) {
	name, at, ok := wordOfStep(ref.steps, 1)
	if !ok {
		v.deps = append(v.deps, p.byRoot[root]...)
		return
	}
	to := p.byName[root][name]
	if to != nil {
		v.deps = append(v.deps, to)
		p.attributeStep(ref, to)
		return
	}
	if len(p.repeated[root]) > 0 {
		v.deps = append(v.deps, p.repeated[root]...)
		return
	}
	p.unknown(ref, at, fmt.Sprintf("Unknown %s", root), fmt.Sprintf("There is no %s %q.%s", wordOf(root), name, diag.DidYouMean(name, p.names(root))))
}

func wordOf(root string) string {
	if root == varRoot {
		return "variable"
	}
	return root
}

// names lists what can follow a root.
func (p *program) names(root string) []string {
	var out []string
	for _, v := range p.byRoot[root] {
		if !v.isRepeated() {
			out = append(out, v.name)
		}
	}
	return out
}

func (v *vertex) isRepeated() bool { return v.tmpl != nil && v.tmpl.repeated() }

// attributeStep checks the third word of network.oob.cidr.
func (p *program) attributeStep(ref reference, to *vertex) {
	name, at, ok := wordOfStep(ref.steps, 2)
	if !ok || to.tmpl == nil || to.root == useRoot {
		return
	}
	known := append(to.tmpl.body.names(), idAttr, nameAttr)
	if to.tmpl.kind != "" {
		known = append(known, kindAttr)
	}
	if !containsName(known, name) {
		p.complain(ref, "language.reference", at, fmt.Sprintf("Unknown attribute of %s", withArticle(to.root)),
			fmt.Sprintf("%s has no attribute %q.%s", toTitle(withArticle(to.root)), name, diag.DidYouMean(name, known)))
	}
}

// unknown reports a reference to what does not exist; not when a file could not
// be parsed, for it may stand there.
func (p *program) unknown(ref reference, at hcl.Range, summary, detail string) {
	if p.partial {
		ref.owner.broken = true
		return
	}
	p.complain(ref, "reference.unknown", at, summary, detail)
}

// complain reports a reference; its attribute is not evaluated, so that nothing
// is said twice.
func (p *program) complain(ref reference, check string, at hcl.Range, summary, detail string) {
	ref.owner.broken = true
	p.diags.Add(check, at, summary, detail).In(ref.owner.at)
}

// wordOfStep returns word i of a reference, when it is a word, and its place without
// the dot.
func wordOfStep(steps hcl.Traversal, i int) (string, hcl.Range, bool) {
	if i >= len(steps) {
		return "", hcl.Range{}, false
	}
	at := steps[i].SourceRange()
	switch s := steps[i].(type) {
	case hcl.TraverseAttr:
		if at.End.Byte-at.Start.Byte == len(s.Name)+1 {
			at.Start.Byte++
			at.Start.Column++
		}
		return s.Name, at, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), at, true
		}
	}
	return "", at, false
}

func containsName(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// visit evaluates v after all that it needs.
func (p *program) visit(v *vertex, at hcl.Range) {
	switch v.state {
	case visited:
		return
	case visiting:
		p.cycle(v, at)
		return
	}
	v.state = visiting
	p.path = append(p.path, hop{v, at})
	if len(p.path) > maxPath {
		v.broken = true
		p.diags.Add("language.limit", v.decl, "References lead too far", fmt.Sprintf("The chain of references that ends here is past the limit of %d.", maxPath))
	} else {
		p.visitDeps(v)
		p.evaluate(v)
	}
	p.path = p.path[:len(p.path)-1]
	v.state = visited
}

func (p *program) visitDeps(v *vertex) {
	for _, ref := range v.refs {
		before := len(v.deps)
		p.resolve(v, ref)
		for _, to := range v.deps[before:] {
			p.visit(to, ref.steps.SourceRange())
			p.moduleStep(ref, to)
		}
		p.repeatedStep(ref, v.deps[before:])
	}
}

// repeatedStep reports a name that none of the repeated blocks has, once they
// were evaluated.
func (p *program) repeatedStep(ref reference, deps []*vertex) {
	root := ref.steps.RootName()
	name, at, ok := wordOfStep(ref.steps, 1)
	if !ok || ref.owner.broken || len(deps) == 0 {
		return
	}
	for _, to := range deps {
		if _, ok := to.values[name]; ok || !to.isRepeated() || to.broken || to.state != visited {
			return
		}
	}
	known := p.names(root)
	for _, to := range deps {
		known = slices.AppendSeq(known, maps.Keys(to.values))
	}
	slices.Sort(known)
	p.unknown(ref, at, fmt.Sprintf("Unknown %s", root), fmt.Sprintf("There is no %s %q.%s", wordOf(root), name, diag.DidYouMean(name, known)))
}

// cycle reports the circle that closes at v, each hop with its place.
func (p *program) cycle(v *vertex, at hcl.Range) {
	from := len(p.path) - 1
	for p.path[from].v != v {
		from--
	}
	circle := p.path[from:]
	var words []string
	for _, h := range circle {
		words = append(words, h.v.String())
		h.v.broken = true
	}
	words = append(words, v.String())
	d := p.diags.Add("reference.cycle", at, "References go round in a circle",
		fmt.Sprintf("%s: none of them can be evaluated first. Break the circle, for instance with a local that both use.", strings.Join(words, " -> ")))
	for i, h := range circle {
		to, place := v, at
		if i+1 < len(circle) {
			to, place = circle[i+1].v, circle[i+1].at
		}
		d.Also(fmt.Sprintf("%s refers to %s", h.v, to), place)
	}
}
