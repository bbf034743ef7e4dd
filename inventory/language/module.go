// SPDX-License-Identifier: Apache-2.0

package language

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
)

// useRoot is the block that brings in a module: a folder with *.hcl files of the
// same language, evaluated by itself, with variables that the block gives. What
// it declares belongs to the site. It sees its own blocks, variables and locals
// only; outside, its blocks are use.NAME.type.name.
const (
	useRoot    = "use"
	sourceAttr = "source"
)

// maxModules bounds modules within modules.
const maxModules = 8

// folder is where a site or a module lies: relative paths start there.
type folder struct {
	fsys  fs.FS
	outer string // absolute path of an allowed folder outside of the site; "" within
	dir   string // within fsys
}

// file is the name of a file of the folder in diagnostics.
func (f folder) file(name string) string {
	return filepath.ToSlash(filepath.Join(f.outer, f.dir, name))
}

// module is one use of a folder; the site itself is one without a name.
type module struct {
	folder
	name  string    // "use.row-a"; "" for the site
	by    *module   // who uses it; nil for the site
	at    hcl.Range // of the source
	given map[string]given
}

// moduleSource is the files of a folder that modules are made of, read once.
type moduleSource struct {
	files  []*sourceFile
	broken bool // has findings of its own; further uses would repeat them
	uses   int
}

// useBlock makes the vertex of a use block: source, and a value for each variable.
func (p *program) useBlock(c *compiler, b *hcl.Block) {
	spec := &BlockSpec{Type: useRoot, Labels: []string{"name"}, Repeat: true, Refer: true, Body: Spec{Attrs: []Attr{{Name: sourceAttr, Type: String, Required: true}}}}
	attrs, _ := b.Body.JustAttributes() // nested blocks are reported when the block is compiled
	for _, a := range inOrder(attrs) {
		if !slices.Contains(reservedInputs, a.Name) {
			spec.Body.Attrs = append(spec.Body.Attrs, Attr{Name: a.Name, Type: Any, shallow: true})
		}
	}
	v := &vertex{root: useRoot, name: b.Labels[0], decl: b.DefRange}
	if src := attrs[sourceAttr]; src != nil && len(src.Expr.Variables()) > 0 {
		v.broken = true
		p.diags.Add("language.value", src.Expr.Range(), "Source that is not constant", `The source of a module is written out, such as "modules/row": it says which files there are before anything is evaluated.`).In(b.DefRange)
	}
	v.tmpl = c.compile(spec, b, around{}, &v.refs)
	v.broken = v.broken || v.tmpl.attrs[0] == nil || v.tmpl.attrs[0].expr == nil
	p.enter(v, true)
}

// reservedInputs are words of the use block itself, so no names for variables of
// a module.
var reservedInputs = []string{sourceAttr, forEachAttr, countAttr, nameAttr}

// use evaluates the module of one instance of a use block; its value is what
// references see of it.
func (p *program) use(v *vertex, b *Body) cty.Value {
	source := Get[string](b, sourceAttr)
	if v.broken || source == "" || p.budget.spent {
		v.broken = true
		return cty.DynamicVal
	}
	at := b.Range(sourceAttr)
	f, err := p.module.locate(p.opt.Allowed, source)
	if err != nil {
		p.diags.Add("language.file", at, "Module that cannot be used", fmt.Sprintf("The source %q of %s.%s: %s.", source, useRoot, b.Name, err)).In(b.Decl)
		v.broken = true
		return cty.DynamicVal
	}
	m := &module{folder: f, name: strings.TrimPrefix(p.module.name+"."+useRoot+"."+b.Name, "."), by: p.module, at: at, given: map[string]given{}}
	if !p.mayUse(m, b) {
		v.broken = true
		return cty.DynamicVal
	}
	for i, a := range b.spec.Attrs[1:] {
		if syntax := b.source.attrs[i+1]; syntax != nil && syntax.expr != nil {
			m.given[a.Name] = given{b.attrs[i+1].raw, syntax.expr.Range(), syntax.at}
		}
	}
	return p.evaluateModule(v, m, b)
}

// mayUse refuses a module within itself, and modules too deep within modules.
func (p *program) mayUse(m *module, b *Body) bool {
	hops := []*module{m}
	for up := m.by; up != nil; up = up.by {
		hops = append(hops, up)
		if up.folder.file("") != m.folder.file("") {
			continue
		}
		slices.Reverse(hops)
		var words []string
		for _, h := range hops {
			words = append(words, h.folder.file(""))
		}
		d := p.diags.Add("reference.cycle", m.at, "Module within itself",
			fmt.Sprintf("%s: a module that uses itself has no end. Take one of these use blocks out.", strings.Join(words, " -> "))).In(b.Decl)
		for i := 1; i < len(hops); i++ {
			d.Also(fmt.Sprintf("%s uses %s", words[i-1], words[i]), hops[i].at)
		}
		return false
	}
	if len(hops) > maxModules+1 {
		p.diags.Add("language.limit", m.at, "Modules too deep within modules", fmt.Sprintf("%s is past the limit of %d modules within each other.", m.name, maxModules)).In(b.Decl)
		return false
	}
	return true
}

// evaluateModule reads, compiles and evaluates the files of a module.
func (p *program) evaluateModule(v *vertex, m *module, b *Body) cty.Value {
	src := p.openModule(m, b)
	if src == nil || src.broken {
		v.broken = true
		return cty.DynamicVal
	}
	before := len(*p.diags)
	child := p.child(m)
	child.compileFiles(src.files)
	src.broken = slices.ContainsFunc((*p.diags)[before:], src.wrote)
	child.unknownGiven(b)
	child.visitAll()
	if child.partial {
		v.broken = true
		return cty.DynamicVal
	}
	return child.exports()
}

// wrote reports whether d is about the files of the module, not about their use.
func (s *moduleSource) wrote(d diag.Diagnostic) bool {
	return d.Severity == diag.Error && d.Subject != nil && slices.ContainsFunc(s.files, func(f *sourceFile) bool { return f.name == d.Subject.File })
}

// openModule gives the parsed files of a module; nil when that was reported. Each
// use parses them anew, for evaluation puts its meters into them.
func (p *program) openModule(m *module, b *Body) *moduleSource {
	key := m.folder.file("")
	src := p.sources[key]
	if src == nil {
		src = &moduleSource{}
		p.sources[key] = src
		files, err := readSources(m.folder, p.opt.Limits, &p.budget.source, p.diags)
		if err != nil {
			p.diags.Add("language.file", m.at, "No module here", fmt.Sprintf("The folder %s, source of %s, %s.", key, m.name, err)).In(b.Decl)
			src.broken = true
		}
		src.files = files
		for _, f := range src.files {
			p.result.Files[f.name] = f.src
			p.torn[f.name] = f.diags.HasErrors()
		}
		return src
	}
	if src.uses++; src.broken {
		return src
	}
	for _, f := range src.files {
		if err := p.budget.source.add(f.name, f.src, p.opt.Limits); err != nil {
			p.diags.Add("language.limit", m.at, "Modules past their limit", fmt.Sprintf("The files of a module count for each use of it; %s.", err)).In(b.Decl)
			src.broken = true
			return src
		}
	}
	parseAll(src.files, p.opt.Limits)
	return src
}

// child is the program of a module: names of its own, everything else shared.
func (p *program) child(m *module) *program {
	c := newProgram(p.top, p.opt, p.result, p.budget, m)
	c.joins, c.memo, c.torn, c.reported, c.sources, c.standard = p.joins, p.memo, p.torn, p.reported, p.sources, p.standard
	c.base = c.standard.NewChild()
	c.base.Functions = c.fileFunctions()
	return c
}

// exports is what use.NAME means: the blocks that can be referred to, by type and
// name.
func (p *program) exports() cty.Value {
	out := map[string]cty.Value{}
	for root := range p.roots {
		if root == localRoot || root == varRoot {
			continue
		}
		group := map[string]cty.Value{}
		hidden := false
		for _, v := range p.byRoot[root] {
			hidden = hidden || v.broken && v.isRepeated()
			if v.broken && !v.isRepeated() {
				group[v.name] = cty.DynamicVal
			}
			for name, val := range v.values {
				group[name] = val
			}
		}
		if out[root] = cty.ObjectVal(group); hidden {
			out[root] = cty.DynamicVal
		}
	}
	return cty.ObjectVal(out)
}

// moduleStep checks the words after use.NAME, once the module was evaluated.
func (p *program) moduleStep(ref reference, to *vertex) {
	if to.root != useRoot || to.broken || ref.owner.broken {
		return
	}
	name, _, ok := wordOfStep(ref.steps, 1)
	val, found := to.values[name]
	if !ok || !found {
		return
	}
	for i := 2; i <= 3 && val.IsKnown() && val.Type().IsObjectType(); i++ {
		word, at, ok := wordOfStep(ref.steps, i)
		if !ok {
			return
		}
		if !val.Type().HasAttribute(word) {
			var known []string
			for k := range val.Type().AttributeTypes() {
				known = append(known, k)
			}
			what := "type of block that is referred to by name"
			if i == 3 {
				what, _, _ = wordOfStep(ref.steps, 2)
			}
			p.complain(ref, "reference.unknown", at, "Unknown block of a module", fmt.Sprintf("%s.%s has no %s %q.%s", useRoot, name, what, word, diag.DidYouMean(word, known)))
			return
		}
		val = val.GetAttr(word)
	}
}
