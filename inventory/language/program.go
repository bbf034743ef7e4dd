// SPDX-License-Identifier: Apache-2.0

package language

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/ironrail/ironrail/inventory/diag"
)

// Options are the inputs of an evaluation beside the files.
type Options struct {
	Variables map[string]string // values of variables: text, or an expression of literals; a secret reference for a sensitive one
	Allowed   []string          // absolute folders outside the site that file() may read
	Limits    Limits
}

// Variable is a variable block.
type Variable struct {
	Name, Description string
	Sensitive         bool
	Decl              hcl.Range
}

// Result is what the files say. Bodies are complete only when Diags has no error.
type Result struct {
	Bodies    map[string][]*Body // by type of block, in the order of the files
	Variables []Variable
	Files     diag.Files
	Diags     diag.List // not sorted
}

// program is one evaluation; one goroutine uses it.
type program struct {
	top        []BlockSpec
	opt        Options
	budget     *budget
	diags      *diag.List
	module     *module
	sources    map[string]*moduleSource // of modules, by folder
	standard   *hcl.EvalContext         // functions of all modules
	base       *hcl.EvalContext         // and of this one
	vertices   []*vertex
	byRoot     map[string][]*vertex
	byName     map[string]map[string]*vertex
	repeated   map[string][]*vertex
	roots      map[string]bool
	scopeName  string   // the block type whose attributes are seen below: rack
	scopeAttrs []string // of it
	path       []hop
	partial    bool               // a file could not be parsed
	torn       map[string]bool    // the files that could not
	reported   map[reportKey]bool // what a use block that is repeated got wrong once
	joins      joins
	defaults   map[*vertex]variableType
	memo       map[string]cty.Value
	result     *Result
}

// Evaluate reads every *.hcl and *.hcl.json of fsys and evaluates the blocks that
// top says there are, with locals and variables. It never panics on any input and
// ends within the limits.
func Evaluate(fsys fs.FS, top []BlockSpec, opt Options) *Result {
	opt.Limits = opt.Limits.withDefaults()
	result := &Result{Bodies: map[string][]*Body{}, Files: diag.Files{}}
	p := newProgram(top, opt, result, &budget{lim: opt.Limits}, &module{folder: folder{fsys: fsys, dir: "."}})
	p.standard = &hcl.EvalContext{Functions: p.functions()}
	p.base = p.standard.NewChild()
	p.base.Functions = p.fileFunctions()
	files, err := readSources(p.module.folder, opt.Limits, &p.budget.source, p.diags)
	switch {
	case errors.Is(err, errNoFiles):
		*p.diags = append(*p.diags, diag.Diagnostic{Check: "language.file", Summary: "No site here", Detail: "The folder has no *.hcl file. -C DIR names another folder."})
	case err != nil:
		*p.diags = append(*p.diags, diag.Diagnostic{Check: "language.file", Summary: "Folder cannot be read", Detail: fmt.Sprintf("The site's folder %s.", err)})
	}
	for _, f := range files {
		result.Files[f.name] = f.src
		p.torn[f.name] = f.diags.HasErrors()
	}
	p.compileFiles(files)
	p.unknownInputs()
	p.visitAll()
	for _, list := range result.Bodies { // they came in the order of their references
		slices.SortStableFunc(list, func(a, b *Body) int {
			return cmp.Or(cmp.Compare(a.Decl.Filename, b.Decl.Filename), cmp.Compare(a.Decl.Start.Byte, b.Decl.Start.Byte), cmp.Compare(a.module.name, b.module.name))
		})
	}
	return result
}

// newProgram is an evaluation of the files of m.
func newProgram(top []BlockSpec, opt Options, result *Result, budget *budget, m *module) *program {
	p := &program{
		top: top, opt: opt, module: m, result: result, diags: &result.Diags, budget: budget,
		byRoot: map[string][]*vertex{}, byName: map[string]map[string]*vertex{}, repeated: map[string][]*vertex{},
		roots: map[string]bool{localRoot: true, varRoot: true, useRoot: true}, joins: joins{}, defaults: map[*vertex]variableType{}, torn: map[string]bool{}, reported: map[reportKey]bool{}, memo: map[string]cty.Value{},
		sources: map[string]*moduleSource{},
	}
	for i := range top {
		if top[i].Refer {
			p.roots[top[i].Type] = true
		}
		if top[i].Scope != "" {
			p.scopeName, p.scopeAttrs = top[i].Scope, top[i].Body.names()
		}
	}
	return p
}

// compileFiles makes the vertices of all files.
func (p *program) compileFiles(files []*sourceFile) {
	for _, f := range files {
		p.partial = p.partial || p.torn[f.name]
	}
	c := &compiler{lim: p.opt.Limits, budget: p.budget, schemas: map[*Spec]*hcl.BodySchema{}, merged: map[string]*Spec{}, joins: p.joins, diags: p.diags}
	for _, f := range files {
		if f.body != nil {
			p.compileFile(c, f.body)
		}
	}
}

// visitAll evaluates every vertex after what it needs.
func (p *program) visitAll() {
	for _, v := range p.vertices {
		p.visit(v, v.decl)
	}
}

// fileSchema is what stands at the top of a file.
func (p *program) fileSchema() *hcl.BodySchema {
	s := &hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "locals"}, {Type: "variable", LabelNames: []string{"name"}}, {Type: useRoot, LabelNames: []string{"name"}}}}
	for _, b := range p.top {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: b.Type, LabelNames: b.Labels})
	}
	return s
}

// compileFile makes the vertices of one file.
func (p *program) compileFile(c *compiler, body hcl.Body) {
	content, found := body.Content(p.fileSchema())
	p.diags.Import(found, "language.syntax")
	for _, b := range content.Blocks {
		switch b.Type {
		case "locals":
			p.locals(c, b)
		case "variable":
			p.variable(c, b)
		case useRoot:
			p.useBlock(c, b)
		default:
			p.block(c, b)
		}
	}
}

func (p *program) block(c *compiler, b *hcl.Block) {
	i := slices.IndexFunc(p.top, func(s BlockSpec) bool { return s.Type == b.Type })
	spec := &p.top[i]
	if spec.SiteOnly && p.module.by != nil {
		p.diags.Add("language.block", b.DefRange, fmt.Sprintf("%s block in a module", toTitle(b.Type)),
			fmt.Sprintf("A %s block says something about the whole site, so it stands in the site's own files. Move it there.", b.Type))
		return
	}
	v := &vertex{root: b.Type, decl: b.DefRange}
	if n := len(b.Labels); n > 0 {
		v.name = b.Labels[n-1]
	}
	if v.tmpl = c.compile(spec, b, around{}, &v.refs); v.tmpl == nil {
		v.broken = true
	}
	if first := p.byRoot[b.Type]; spec.Single && len(first) > 0 {
		p.diags.Add("language.block", b.DefRange, fmt.Sprintf("More than one %s block", b.Type),
			fmt.Sprintf("There is one %s block in a site. Remove one of the two.", b.Type)).Also("the first one", first[0].decl)
		return
	}
	p.enter(v, spec.Refer)
}

// enter adds a vertex; named ones must have a name of their own.
func (p *program) enter(v *vertex, named bool) {
	switch {
	case v.isRepeated():
		p.repeated[v.root] = append(p.repeated[v.root], v)
	case named:
		if p.byName[v.root] == nil {
			p.byName[v.root] = map[string]*vertex{}
		}
		if first := p.byName[v.root][v.name]; first != nil {
			at := v.decl
			if v.tmpl != nil && len(v.tmpl.labels) > 0 {
				at = v.tmpl.labels[len(v.tmpl.labels)-1]
			}
			p.diags.Add("name.duplicate", at, fmt.Sprintf("Second %s of this name", wordOf(v.root)),
				fmt.Sprintf("The name %q is taken by another %s. Give one of them another name.", v.name, wordOf(v.root))).Also("the first one", first.decl).In(v.decl)
			return
		}
		p.byName[v.root][v.name] = v
	}
	p.vertices = append(p.vertices, v)
	p.byRoot[v.root] = append(p.byRoot[v.root], v)
}

// locals makes a vertex of each attribute.
func (p *program) locals(c *compiler, b *hcl.Block) {
	attrs, found := b.Body.JustAttributes()
	p.diags.Import(found, "language.syntax")
	for _, a := range inOrder(attrs) {
		v := &vertex{root: localRoot, name: a.Name, decl: a.NameRange, expr: &attrSyntax{}}
		c.take(v.expr, a, around{}, &v.refs)
		c.clearName(a.Name, v.expr.expr, a.Range)
		p.enter(v, true)
	}
}

// inOrder returns the attributes as they stand in the file.
func inOrder(attrs hcl.Attributes) []*hcl.Attribute {
	out := make([]*hcl.Attribute, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hcl.Attribute) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return out
}
