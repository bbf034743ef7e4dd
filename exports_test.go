// SPDX-License-Identifier: Apache-2.0

package ironrail

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// offered is what a package exports at its top level.
type offered struct {
	kind     map[string]token.Token // by name
	enum     map[string]string      // of a constant: its type
	signed   map[string]bool        // names that exported signatures and types need
	elsewise map[string]bool        // names that another package uses
}

// TestExportsAreUsed: less than a tenth of the exported names is used by no other
// package. Types that signatures need, and constants of a type that is used, count as
// used.
func TestExportsAreUsed(t *testing.T) {
	t.Parallel()
	all := map[string]*offered{}
	of := func(dir string) *offered {
		if all[dir] == nil {
			all[dir] = &offered{map[string]token.Token{}, map[string]string{}, map[string]bool{}, map[string]bool{}}
		}
		return all[dir]
	}
	files(t, parser.SkipObjectResolution, func(dir, file string, f *ast.File) {
		for to, names := range uses(f) {
			for _, n := range names {
				if to != dir {
					of(to).elsewise[n] = true
				}
			}
		}
		if !strings.HasSuffix(file, "_test.go") && f.Name.Name != "main" {
			of(dir).take(f)
		}
	})
	exported, idle := 0, []string{}
	for dir, o := range all {
		for name := range o.kind {
			exported++
			if !o.used(name) {
				idle = append(idle, dir+"."+name)
			}
		}
	}
	if exported < 1000 {
		t.Fatalf("only %d exported names were seen: this test reads the wrong folder", exported)
	}
	if 10*len(idle) >= exported {
		slices.Sort(idle)
		t.Errorf("%d of %d exported names are used by no other package: %s", len(idle), exported, strings.Join(idle, ", "))
	}
	t.Logf("%d of %d exported names are used by no other package", len(idle), exported)
}

// uses are the names that a file uses of packages of this module, by folder.
func uses(f *ast.File) map[string][]string {
	imports, used := map[string]string{}, map[string][]string{}
	for _, i := range f.Imports {
		p, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module)
		if !ours {
			continue
		}
		name := path.Base(p)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = p
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && imports[x.Name] != "" {
				used[imports[x.Name]] = append(used[imports[x.Name]], s.Sel.Name)
			}
		}
		return true
	})
	return used
}

func (o *offered) used(name string) bool {
	enum := o.enum[name]
	return o.elsewise[name] || o.kind[name] == token.TYPE && o.signed[name] || enum != "" && (o.elsewise[enum] || o.signed[enum] || o.kind[enum] != 0)
}

// take adds what a file declares.
func (o *offered) take(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() {
				continue
			}
			o.needs(d.Type)
			if d.Recv == nil {
				o.kind[d.Name.Name] = token.FUNC
			}
		case *ast.GenDecl:
			o.takeSpecs(d)
		}
	}
}

func (o *offered) takeSpecs(d *ast.GenDecl) {
	typ := "" // of the constants of a group
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				o.kind[s.Name.Name] = token.TYPE
				o.needs(s.Type)
			}
		case *ast.ValueSpec:
			if s.Type != nil || len(s.Values) > 0 {
				typ = o.typeOf(s)
			}
			for _, n := range s.Names {
				if n.IsExported() {
					o.kind[n.Name] = d.Tok
					if d.Tok == token.CONST {
						o.enum[n.Name] = typ
					}
				}
			}
		}
	}
}

// typeOf is the type of a constant or variable by its declaration or a conversion.
func (o *offered) typeOf(s *ast.ValueSpec) string {
	var of ast.Expr = s.Type
	if of == nil {
		c, ok := s.Values[0].(*ast.CallExpr)
		if !ok {
			return ""
		}
		of = c.Fun
	}
	o.needs(of)
	id, _ := of.(*ast.Ident)
	if id == nil {
		return ""
	}
	return id.Name
}

// needs notes the exported names of a signature or type.
func (o *offered) needs(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.IsExported() {
			o.signed[id.Name] = true
		}
		return true
	})
}
